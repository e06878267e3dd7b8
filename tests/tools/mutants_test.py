#!/usr/bin/env python3
"""tools/mutants distinguishes a mutant killed by a test from one that survived, crashed the program, did not end, is stale, or was
detected only once; and it selects the mutants that a change affects."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "mutants"

# Replaces test_mutants: does what the name of the mutant says.
PROGRAM = r'''#!/usr/bin/env python3
import json, os, signal, sys
name, here = os.environ["URNIC_MUTANT"], os.path.dirname(os.path.abspath(__file__))
out = next(a for a in sys.argv if a.startswith("--gtest_output=json:"))[20:]
runs = os.path.join(here, name + ".runs")
with open(runs, "a") as f:
    f.write(".")
first = os.path.getsize(runs) == 1
if name == "Crashes" or name == "CrashesFirst" and first:
    os.kill(os.getpid(), signal.SIGSEGV)
if name == "UsesItsTime":
    os.kill(os.getpid(), signal.SIGXCPU)
if name == "ExitsOdd":
    sys.exit(3)
failed = name in ("Killed", "FailsAlways", "CrashesFirst") or name == "FailsFirst" and first or name == "FailsLater" and not first
tests = [] if name == "NoSuchTest" else [{"name": "T", "status": "RUN", "result": "SKIPPED" if name == "Skips" else "COMPLETED"}]
if failed:
    tests[0]["failures"] = [{}]
json.dump({"failures": int(failed), "testsuites": [{"name": "S", "testsuite": tests}]}, open(out, "w"))
sys.exit(failed)
'''
TEST = "// proves: R-1\nTEST(S, T) {}\n"
TABLE = 'file = "a.cpp"\nfunction = "f"\nfind = "1"\nput = "2"\ntext = "breaks"\n'


class Mutants(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self, *args):
        done = subprocess.run([sys.executable, TOOL, "--root", self.root, *args], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def run_mutants(self, names, noop="NoOp", real=False, claims=TEST, exceptions="", stale="", args=()):
        tables = f'[[mutant]]\nname = "{noop}"\nchanges_nothing = true\n{TABLE}' if noop else ""
        tables += "".join(f'[[mutant]]\nname = "{n}"\nitems = ["R-1"]\ntest = "S.T"\n{TABLE}' for n in names)
        self.write("tests/mutants/room.toml", tables)
        self.write("tests/mutants/exceptions.toml", exceptions)
        self.write("tests/room/a_test.cpp", claims)
        self.write("tests/real_tests.txt", "# a comment\n" + ("tests/room/a_test.cpp\n" if real else ""))
        self.write("mutated/stale.txt", stale)
        for old in self.root.glob("*.runs"):
            old.unlink()
        for old in self.root.glob("results/*"):
            old.unlink()
        self.write("program", PROGRAM)
        os.chmod(self.root / "program", 0o755)
        return self.run_tool("--program", self.root / "program", *args)

    def expect(self, names, code, text, last=None, **options):
        with self.subTest(names=names, **options):
            got, out = self.run_mutants(names, **options)
            self.assertEqual(got, code, out)
            self.assertIn(text, out)
            if last:
                self.assertEqual(out.splitlines()[-1], last, out)

    def test_only_an_assertion_kills(self):
        self.expect(["Killed"], 0, "killed", "1 of 1 killed")
        self.expect(["Killed", "Survives"], 1, "not proven: Survives (breaks): S.T: survived", "1 of 2 killed")
        self.expect(["Crashes"], 1, "crashed by signal 11", "0 of 1 killed")
        self.expect(["UsesItsTime"], 1, "no end within 120 s of CPU time", "0 of 1 killed")
        self.expect(["ExitsOdd"], 1, "exit 3")
        self.expect(["NoSuchTest"], 1, "no such test")
        self.expect(["Skips", "Killed"], 0, "1 were not tried", "1 of 1 killed")

    def test_a_crash_is_tried_once_more(self):
        self.expect(["CrashesFirst"], 0, "crashed by signal 11 at first, killed alone", "1 of 1 killed")
        self.expect(["CrashesFirst"], 0, "1 of 1 shown", args=["--claims"])

    def test_a_kill_by_a_real_test_repeats(self):
        self.expect(["Killed"], 0, "killed", "1 of 1 killed", real=True)
        self.expect(["FailsFirst"], 1, "survived the second of two runs", "0 of 1 killed", real=True)
        self.expect(["FailsFirst"], 0, "killed", "1 of 1 killed")
        self.expect(["FailsFirst"], 1, "not shown: R-1 S.T", real=True, args=["--claims"])
        self.expect(["FailsLater"], 0, "survived at first, killed alone", "1 of 1 killed", real=True)
        self.expect(["FailsLater"], 1, "survived", "0 of 1 killed")

    def test_the_mutant_that_changes_nothing_survives(self):
        self.expect(["Killed"], 1, "FailsAlways must survive", noop="FailsAlways")
        self.expect(["Killed"], 1, "FailsAlways must survive", noop="FailsAlways", real=True)
        self.expect(["Killed"], 0, "S.T: failed at first, survived alone", noop="FailsFirst", real=True)
        self.expect(["Killed"], 1, "no mutant that changes nothing", noop=None)

    def test_a_stale_mutant_is_listed(self):
        stale = "Old\troom.toml:9: no function f\n"
        self.expect(["Killed", "Old"], 1, "stale: Old: room.toml:9: no function f", "1 stale, 1 of 1 killed", stale=stale)
        self.expect(["Killed", "Old"], 0, "1 of 1 killed", stale=stale, args=["--only", "Killed"])

    def test_claims(self):
        two = TEST + "// proves: R-1\nTEST(S, Other) {}\n"
        but = '[[exception]]\nitem = "R-1"\ntest = "S.{}"\nreason = "why not"\n'
        for names, text, exceptions, code, said in [
                (["Killed"], TEST, "", 0, "1 of 1 shown, 0 exceptions"),
                (["Survives"], TEST, "", 1, "not shown: R-1 S.T"),
                (["Crashes"], TEST, "", 1, "Crashes: crashed by signal 11"),
                (["Killed"], two, "", 1, "not shown: R-1 S.Other"),
                (["Killed"], two, but.format("Other"), 0, "1 of 2 shown, 1 exceptions"),
                (["Killed"], TEST, but.format("T"), 1, "no exception any more: R-1 S.T"),
                (["Killed"], TEST, but.format("Gone"), 1, "no such claim: R-1 S.Gone")]:
            self.expect(names, code, said, claims=text, exceptions=exceptions, args=["--claims"])

    def git(self, *args):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a", *args], check=True, capture_output=True)

    def test_changed(self):
        source = "int one() {\n  return 1;\n}\n\nint two() {\n  return 2;\n}\n"
        test = "int help() { return 0; }\n\n// proves: R-1\nTEST(S, One) {\n  one();\n}\n\nTEST(S, Two) {\n  two();\n}\n"
        table = '[[mutant]]\nname = "{0}"\nfile = "a.cpp"\nfunction = "{0}"\nfind = "return"\nput = ""\nitems = ["R-1"]\ntest = "S.{1}"\ntext = ""\n'
        tables = table.format("one", "One") + table.format("two", "Two")

        def commit(name):
            for path, text in (("src/a.cpp", source), ("tests/room/a_test.cpp", test), ("tests/mutants/room.toml", tables)):
                self.write(path, text)
            self.git("add", "-A")
            self.git("commit", "-q", "--allow-empty", "-m", name)

        self.git("init", "-q")
        commit("all")
        for path, old, new, want in [
                ("src/a.cpp", "return 2", "return 3", ["two"]),
                ("src/a.cpp", "  return 1;\n", "", ["one"]),
                ("src/a.cpp", "two", "three", ["two"]),
                ("src/a.cpp", "}\n\nint", "}\n\nint more() { return 0; }\n\nint", []),
                ("tests/room/a_test.cpp", "  one();\n", "  one();\n  one();\n", ["one"]),
                ("tests/room/a_test.cpp", "return 0", "return 1", ["one", "two"]),
                ("tests/mutants/room.toml", 'function = "two"', 'function = "two" # here', ["two"])]:
            with self.subTest(path=path, new=new):
                commit("back")
                text = (self.root / path).read_text()
                self.assertIn(old, text)
                self.write(path, text.replace(old, new))
                for base in ([], ["HEAD"]):
                    code, out = self.run_tool("--list", "--changed", *base)
                    self.assertEqual((code, [line.split()[0] for line in out.splitlines()[1::2]]), (0, want), out)
        self.git("commit", "-qam", "change")  # no uncommitted changes: the last commit counts
        self.assertIn("1 mutants of what differs from HEAD~1", self.run_tool("--list", "--changed")[1])


if __name__ == "__main__":
    unittest.main()
