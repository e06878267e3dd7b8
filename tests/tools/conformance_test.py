#!/usr/bin/env python3
"""tools/conformance --check notices an item without a test, a test that did not run or failed, a page
that is out of date, and a mutant whose test does not claim what the mutant breaks."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TOOL = os.path.join(ROOT, "tools", "conformance")


def write(root, path, text):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as f:
        f.write(text)


def tree(root, drop=None):
    """Every item proven by one test, with its result."""
    shutil.copytree(os.path.join(ROOT, "docs"), os.path.join(root, "docs"))
    lines = [line.split(":")[0] for line in open(os.path.join(root, "docs", "items.txt"), encoding="utf-8")
             if line[:1] in "RTLHEISDA" and "-" in line.split(":")[0]]
    ids = [i for i in lines if i != drop]
    # Qualifications of the real list are not wanted here.
    text = open(os.path.join(root, "docs", "items.txt"), encoding="utf-8").read().splitlines()
    write(root, "docs/items.txt", "\n".join(t for t in text if not t.startswith(" ")) + "\n")
    tests = "\n".join(f"TEST(All, Proves_{i.replace('-', '')}) {{}}" for i in ids if i != "R-45")
    tests += "\n// Two lines of comment.\n// proves: R-45\nTEST(All, Forgets) {}\n"
    write(root, "tests/room/all_test.cpp", tests)
    edit = 'file = "room/a.cpp"\nfunction = "f"\nfind = "1"\nput = "2"\ntext = "keeps them"\n'
    write(root, "tests/mutants/room.toml",
          f'[[mutant]]\nname = "NoOp"\nchanges_nothing = true\n{edit}'
          f'[[mutant]]\nname = "Keeps"\nitems = ["R-45"]\ntest = "All.Forgets"\n{edit}')
    write(root, "src/room/a.cpp", "// R-45..R-47: here\nint f() { return 1; }\n")
    write(root, "build/test_room", "")
    names = [f"Proves_{i.replace('-', '')}" for i in ids if i != "R-45"] + ["Forgets"]
    results(root, [{"name": n, "status": "RUN", "result": "COMPLETED"} for n in names])
    subprocess.run([sys.executable, TOOL, root], check=True, capture_output=True)


def results(root, tests):
    write(root, "build/results/room.json",
          json.dumps({"testsuites": [{"name": "All", "testsuite": tests}]}))
    later = time.time() + 5
    os.utime(os.path.join(root, "build/results/room.json"), (later, later))


def check(root, skips):
    done = subprocess.run([sys.executable, TOOL, "--check", "--skips", skips, root], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout + done.stderr


def outcome(tests, name, **change):
    return [dict(t, **change) if t["name"] == name else t for t in tests]


def main():
    problems = []

    def case(what, breach, expected, drop=None, skips="count"):
        with tempfile.TemporaryDirectory() as root:
            tree(root, drop)
            breach(root)
            code, text = check(root, skips)
            if (code == 0) != (expected is None) or (expected and expected not in text):
                problems.append(f"{what}: exit {code}: {text[-600:]}")

    def reload(root):
        with open(os.path.join(root, "build/results/room.json"), encoding="utf-8") as f:
            return json.load(f)["testsuites"][0]["testsuite"]

    def replace(path, old, new):
        def breach(root):
            with open(os.path.join(root, path), encoding="utf-8") as f:
                text = f.read()
            assert old in text
            write(root, path, text.replace(old, new))
        return breach

    case("all is well", lambda root: None, None)
    case("an item without a test", lambda root: None, "R-60 has no test", drop="R-60")
    case("a test that is gone", replace("tests/room/all_test.cpp", "TEST(All, Proves_R61) {}", ""),
         "R-61 has no test")
    case("a test that did not run",
         lambda root: results(root, [t for t in reload(root) if t["name"] != "Proves_R62"]),
         "All.Proves_R62 (tests/room/all_test.cpp), which proves R-62: not run")
    case("a test that was skipped",
         lambda root: results(root, outcome(reload(root), "Forgets", result="SKIPPED")),
         "which proves R-45: skipped")
    case("a test that was skipped for want of a right",
         lambda root: results(root, outcome(reload(root), "Forgets", result="SKIPPED")), None, skips="excused")
    def skips_itself(others):
        def breach(root):
            text = "// proves: R-45, if undisturbed\nTEST(All, Forgets) {}\n"
            with open(os.path.join(root, "tests/room/all_test.cpp"), encoding="utf-8") as f:
                before = f.read()
            claim = before[before.index("// proves: R-45"):before.index("TEST(All, Forgets) {}")]
            more = [{"name": "More", "status": "RUN"}] if others else []
            write(root, "tests/room/all_test.cpp", before.replace(claim + "TEST(All, Forgets) {}\n", text)
                  + ("// proves: R-45\nTEST(All, More) {}\n" if others else ""))
            results(root, outcome(reload(root), "Forgets", result="SKIPPED") + more)
            subprocess.run([sys.executable, TOOL, root], capture_output=True, check=True)
        return breach

    case("a test that a busy machine does not let show it, beside others", skips_itself(True), None)
    case("a test that a busy machine does not let show it, alone", skips_itself(False), "which proves R-45: skipped")
    case("a test that did not run, where skipped ones are excused",
         lambda root: results(root, [t for t in reload(root) if t["name"] != "Proves_R62"]),
         "which proves R-62: not run", skips="excused")
    case("a test that failed",
         lambda root: results(root, outcome(reload(root), "Proves_R63", failures=[{}])),
         "which proves R-63: failed")
    case("results of an older build",
         lambda root: os.utime(os.path.join(root, "build/test_room"), (time.time() + 60,) * 2),
         "older than test_room")
    case("no results at all", lambda root: shutil.rmtree(os.path.join(root, "build/results")),
         "run the room tests first")
    case("a page out of date", replace("docs/conformance.md", "**R-45**", "**R-45** stale"),
         "run tools/conformance")
    case("a new test the page does not know",
         replace("tests/room/all_test.cpp", "TEST(All, Forgets)", "// proves: R-44\nTEST(All, Forgets)"),
         "run tools/conformance")
    case("a claim that does not exist",
         replace("tests/room/all_test.cpp", "proves: R-45", "proves: R-45, R-118"),
         "claims R-118, which does not exist")
    case("an item that was dropped from the list", replace("docs/items.txt", "R-77:", "R-777:"),
         "lacks R-77")
    case("an excuse where a rule has none", replace("docs/items.txt", "R-78:", "R-78: x\n  open: later\nR-778:"),
         "for E-n only")
    case("a mutant of another item", replace("tests/mutants/room.toml", '"R-45"', '"R-46"'),
         "breaks R-46, which All.Forgets does not claim")
    case("a mutant without its test", replace("tests/mutants/room.toml", "All.Forgets", "All.Gone"),
         "no test All.Gone")
    print("\n".join(problems) or "19 cases")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
