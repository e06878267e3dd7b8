#!/usr/bin/env python3
"""tools/conformance --check detects an item without a test and a mutant whose test does not claim the broken item; with --results
also a test that did not run or failed."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "conformance"


class Conformance(unittest.TestCase):
    def setUp(self):
        """A tree in which one test proves each item, with its result."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        lines = (ROOT / "docs" / "items.txt").read_text().splitlines()
        items = [line for line in lines if not line.startswith(" ")]  # qualifications would only interfere
        self.write("docs/items.txt", "\n".join(items) + "\n")
        ids = [line.split(":")[0] for line in items if ":" in line and not line.startswith("#")]
        tests = {i: f"Proves{i.replace('-', '')}" for i in ids} | {"R-45": "Forgets"}
        self.write("tests/room/all_test.cpp",
                   "".join(f"// Two lines of comment.\n// proves: {i}\nTEST(All, {n}) {{}}\n" for i, n in tests.items()))
        edit = 'file = "room/a.cpp"\nfunction = "f"\nfind = "1"\nput = "2"\ntext = "keeps them"\n'
        self.write("tests/mutants/room.toml",
                   f'[[mutant]]\nname = "NoOp"\nchanges_nothing = true\n{edit}'
                   f'[[mutant]]\nname = "Keeps"\nitems = ["R-45"]\ntest = "All.Forgets"\n{edit}')
        self.write("src/room/a.cpp", "// R-45..R-47: here\nint f() { return 1; }\n")
        self.write("build/test_room_real", "")
        self.results([{"name": n, "status": "RUN", "result": "COMPLETED"} for n in tests.values()])

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def replace(self, path, old, new):
        text = (self.root / path).read_text()
        self.assertIn(old, text)
        self.write(path, text.replace(old, new))

    def results(self, tests):
        self.tests = tests
        self.write("build/results/real.room.json", json.dumps({"testsuites": [{"name": "All", "testsuite": tests}]}))
        later = time.time() + 5
        os.utime(self.root / "build/results/real.room.json", (later, later))

    def outcome(self, name, **change):
        self.results([dict(t, **change) if t["name"] == name else t for t in self.tests])

    def expect(self, code, text, *args):
        done = subprocess.run([sys.executable, TOOL, "--check", *args, self.root], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(text, done.stdout)

    def expect_of_results(self, code, text):
        self.expect(0, "0 problems")  # the tree alone is correct
        self.expect(code, text, "--results", self.root / "build" / "results")

    def test_all_is_well(self):
        self.expect_of_results(0, "0 problems, 0 tests skipped")

    def test_the_tree(self):
        for path, old, new, text in [
                ("tests/room/all_test.cpp", "// proves: R-61\n", "\n", "R-61 has no test"),
                ("tests/room/all_test.cpp", "proves: R-45\n", "proves: R-45, R-118\n", "claims R-118, which does not exist"),
                ("docs/items.txt", "R-77:", "R-777:", "lacks R-77"),
                ("docs/items.txt", "R-78:", "R-78: x\n  open: later\nR-778:", "for E-n only"),
                ("tests/mutants/room.toml", '"R-45"', '"R-46"', "breaks R-46, which All.Forgets does not claim"),
                ("tests/mutants/room.toml", "All.Forgets", "All.Gone", "no test All.Gone")]:
            with self.subTest(text=text):
                before = (self.root / path).read_text()
                self.replace(path, old, new)
                self.expect(1, text)
                self.write(path, before)

    def test_a_test_that_did_not_run(self):
        self.results([t for t in self.tests if t["name"] != "ProvesR62"])
        self.expect_of_results(1, "All.ProvesR62 (tests/room/all_test.cpp), which proves R-62: not run")

    def test_a_test_that_failed(self):
        self.outcome("ProvesR63", failures=[{}])
        self.expect_of_results(1, "which proves R-63: failed")

    def test_a_skipped_test_is_counted(self):
        self.outcome("Forgets", result="SKIPPED")
        self.expect_of_results(0, "which proves R-45: skipped")
        self.expect_of_results(0, "0 problems, 1 tests skipped")

    def test_results_of_an_older_build(self):
        later = time.time() + 60
        os.utime(self.root / "build/test_room_real", (later, later))
        self.expect_of_results(1, "older than test_room_real")

    def test_no_results(self):
        (self.root / "build/results/real.room.json").unlink()
        self.expect_of_results(1, "run the tests first")

    def test_the_page(self):
        subprocess.run([sys.executable, TOOL, self.root], check=True, capture_output=True)
        page = (self.root / "build" / "conformance.md").read_text()
        for text in ("**R-45**", "code: `src/room/a.cpp`", "test: `tests/room/all_test.cpp`: All.Forgets", "mutants: Keeps"):
            self.assertIn(text, page)


if __name__ == "__main__":
    unittest.main()
