#!/usr/bin/env python3
"""tools/mutants --sample chooses the same places for the same seed, replaces places that do not compile, runs virtual tests before
real ones, trusts a real test only if it fails again, and names the survivors."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "mutants"
sys.path.insert(0, str(ROOT / "tools"))
import proof_sample  # noqa: E402

# Replaces test_mutants: lists a virtual and a real test of each folder. The comment of a line in
# a.cpp names the tests that fail under the line's mutant.
PROGRAM = r'''#!/usr/bin/env python3
import json, os, re, signal, sys
here = os.path.dirname(os.path.abspath(__file__))
out = next(a for a in sys.argv if a.startswith("--gtest_output=json:"))[20:]
all = {"V.a": "tests/a/v_test.cpp", "R.a": "tests/a/r_test.cpp", "V.b": "tests/b/v_test.cpp", "R.b": "tests/b/r_test.cpp",
       "R.out": "tests/a/r_test.cpp", "V.always": "tests/b/v_test.cpp"}
def suites(names, **more):
    return {"failures": 0, "testsuites": [{"name": n[0], "testsuite": [{"name": n[2:], "file": all[n], **more}]} for n in names]}
if "--gtest_list_tests" in sys.argv:
    json.dump(suites(all), open(out, "w"))
    sys.exit()
flags = open(next(a for a in sys.argv if "flagfile" in a).split("=")[1]).read()
chosen = [n for n in all if re.search(r"[=:]" + re.escape(n) + ":", flags)]
name = os.environ["URNIC_MUTANT"]
rule = "" if name == "none" else open(os.path.join(here, "src/a/a.cpp")).read().split("\n")[int(name.split(":")[1]) - 1].split("// ")[1]
open(os.path.join(here, "ran"), "a").write(f"{rule}: {' '.join(chosen)}\n")
if rule == "crashes" and "V.a" in chosen:
    os.kill(os.getpid(), signal.SIGSEGV)
once = os.path.join(here, "once")
data = suites(chosen, status="RUN", result="COMPLETED")
for s in data["testsuites"]:
    n = f"{s['name']}.{s['testsuite'][0]['name']}"
    if n in rule or n == "V.always" or "R.b once" in rule and n == "R.b" and not os.path.exists(once):
        if "once" in rule:
            if n != "R.b" or os.path.exists(once):
                continue
            open(once, "w").close()
        s["testsuite"][0]["failures"] = [{}]
        data["failures"] += 1
json.dump(data, open(out, "w"))
sys.exit(data["failures"] > 0)
'''
RULES = ("V.a", "V.b", "R.a R.b", "R.b once", "crashes", "nothing")


def source(*rules):
    return "void f() {\n" + "".join(f"  g();  // {rule}\n" for rule in rules) + "}\n"


class Sample(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("cmake/Mutants.cmake", "set(URNIC_MUTANT_ROOMS a b)\n")
        self.write("src/a/a.cpp", source(*RULES))
        self.write("src/b/b.cpp", '#include "a/a.h"\nint f(int x) {\n  if (x < 3) return 1;\n  return x;\n}\n')
        self.write("tests/real_tests.txt", "tests/a/r_test.cpp\ntests/b/r_test.cpp\n")
        self.write("tests/outside_tests.txt", "tests/a/r_test.cpp R.out\n")
        self.write("program", PROGRAM)
        os.chmod(self.root / "program", 0o755)

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self, *args):
        done = subprocess.run([sys.executable, TOOL, "--root", self.root, "--jobs", "1", *args], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout + done.stderr

    def test_a_seed_chooses_the_same_places(self):
        listed = [self.run_tool("--sample", "5", "--seed", seed, "--list")[1].split("\n", 1)[1] for seed in ("1", "1", "2")]
        self.assertEqual(listed[0], listed[1])
        self.assertNotEqual(listed[0], listed[2])
        self.assertEqual(listed[0].count("src/"), 5)
        self.assertNotIn("src/a", self.run_tool("--sample", "99", "--seed", "1", "--list", "b")[1])
        self.assertIn("no room c", self.run_tool("--sample", "1", "--seed", "1", "c")[1])

    def test_what_notices(self):
        code, out = self.run_tool("--sample", "6", "--seed", "1", "--program", self.root / "program",
                                  "--json", self.root / "out.json", "a")
        by = {m["line"]: m["noticed"] for m in json.loads((self.root / "out.json").read_text())["mutants"]}
        # b includes a, but its real tests run only for its own places.
        self.assertEqual(by, {2: "a: V.a", 3: "b: V.b", 4: "a: R.a", 5: None, 6: "a: crashed by signal 11", 7: None}, out)
        self.assertIn("survived: src/a/a.cpp:7 (call)\n    g(); // nothing\n  → ; // nothing\n    tests of: a, b; real: a\n", out)
        self.assertIn("left out: V.always fails without a mutant", out)
        self.assertIn("a            4 of 6 noticed\nall others: 4 of 6, 67 % (at least 75 %)\n4 of 6 noticed, seed 1, ", out)
        self.assertEqual(code, 1)
        ran = (self.root / "ran").read_text().splitlines()
        self.assertIn("nothing: R.a", ran)
        self.assertNotIn("V.a: V.b", ran)  # the first detection is sufficient
        self.assertEqual(ran.count("R.a R.b: R.a"), 2)

    def test_a_real_failure_repeats(self):
        self.write("src/engine/engine.cpp", '#include "a/a.h"\n')
        program = PROGRAM.replace("/b/r_test", "/engine/r_test")
        self.write("program", program)
        self.write("tests/real_tests.txt", "tests/a/r_test.cpp\ntests/engine/r_test.cpp\n")
        self.write("src/a/a.cpp", source("R.b once", "R.b"))
        code, out = self.run_tool("--sample", "2", "--seed", "1", "--program", self.root / "program", "a")
        self.assertIn("a/a.cpp:2                            call       SURVIVED", out)
        self.assertIn("a/a.cpp:3                            call       noticed by engine: R.b", out)

    def test_folders_of_the_library_are_part_of_a_room(self):
        self.write("CMakeLists.txt", "urnic_room(a FOLDERS in\n           LINK urnic_b)\n")
        for folder in ("in", "plugin"):
            self.write(f"src/a/{folder}/c.cpp", "int f(int x) {\n  if (x < 3) return 1;\n  return x;\n}\n")
        files = {p.file for p in proof_sample.order(self.root, ["a"], "1")}
        self.assertEqual(files, {"a/a.cpp", "a/in/c.cpp"})

    def test_what_does_not_compile_is_known(self):
        self.write("src/a/a.cpp", "void g(int, const char*);\nint f(int a, const char* b) {\n  g(a, b);\n"
                                "  if (a < 3) return a;\n  return 1;\n}\n")
        self.write("src/a/box.h", "#pragma once\ninline int g(int* a, int b) {\n  h(a, b);\n  return b;\n}\n")
        folder = self.root / "build"
        command = {"directory": str(self.root), "file": "x.cpp", "output": "urnic_mutated_src.dir/x.o",
                   "command": f"ccache {os.environ.get('CXX', 'c++')} -std=c++20 -I{ROOT} -o urnic_mutated_src.dir/x.o -c x.cpp"}
        self.write("build/compile_commands.json", json.dumps([command]))
        ordered = proof_sample.order(self.root, ["a"], "1")
        proof_sample.write(self.root, folder, ordered)
        compiler = proof_sample.Compiler(folder)
        swapped = next(p for p in ordered if p.kind == "arguments" and p.file == "a/a.cpp")
        self.assertEqual(compiler.check("a/a.cpp"), {proof_sample.name_of(swapped)})
        # If the compiler names no line, all mutants are considered wrong.
        self.assertEqual(compiler.check("a/box.h"), {proof_sample.name_of(p) for p in ordered if p.file == "a/box.h"})


if __name__ == "__main__":
    unittest.main()
