#!/usr/bin/env python3
"""tools/test-summary reports failed tests, skipped tests with the reason, and tests that needed a retry."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "test-summary"
CASE = '<testcase name="{}" classname="x" time="{}" status="{}">{}<system-out>{}</system-out></testcase>'


class Summary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def write(self, kind, *cases):
        text = "".join(CASE.format(*case) for case in cases)
        (self.path / f"ctest-{kind}.xml").write_text(f"<testsuite>{text}</testsuite>")

    def summary(self, *words):
        done = subprocess.run([sys.executable, str(TOOL), *words, str(self.path)], env=dict(os.environ, URNIC_TEST_RUN="now"),
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_all_passed(self):
        self.write("virtual", ("room.a", 1.5, "run", "", ""))
        code, said = self.summary("--table")
        self.assertEqual(code, 0)
        self.assertIn("tests: 1 passed, 0 failed, 0 skipped", said)
        self.assertRegex(said, r"room\.a +virtual +passed +1\.5")

    def test_a_failure_is_shown_with_its_assertion(self):
        self.write("virtual", ("room.a", 1, "fail", '<failure message="Failed"/>', "a.cpp:1: Failure\nExpected: this\nlast"))
        self.write("real", ("real.a", 1, "run", "", ""))
        code, said = self.summary()
        self.assertEqual(code, 1)
        self.assertIn("FAILED: room.a\n    a.cpp:1: Failure\n    Expected: this", said)
        self.assertIn("tests: 1 passed, 1 failed, 0 skipped", said)

    def test_a_skip_is_not_a_pass_and_has_its_reason(self):
        self.write("real", ("cli.a", 1, "notrun", '<skipped message="SKIP_RETURN_CODE=77"/>', "x\nno IPv6 here\n"),
                   ("real.b", 1, "run", "", "[  SKIPPED ] B.One (0 ms)\n[  SKIPPED ] B.One\n"))
        code, said = self.summary()
        self.assertEqual(code, 0)
        self.assertIn("skipped: cli.a: no IPv6 here", said)
        self.assertIn("skipped: real.b: 1 of its cases: B.One", said)
        self.assertIn("tests: 1 passed, 0 failed, 1 skipped", said)

    def test_another_try_is_told_of_this_run_alone(self):
        self.write("real", ("real.b", 1, "run", "", ""), ("real.c", 1, "run", "", ""))
        entries = [{"run": run, "test": test, "case": "B.One", "tries": 2, "passed": True, "said": "why"}
                   for run, test in (("now", "real.b"), ("before", "real.c"))]
        (self.path / "flaky.jsonl").write_text("\n".join(map(json.dumps, entries)))
        code, said = self.summary()
        self.assertEqual(code, 0)
        self.assertIn("flaky: real.b: B.One passed at try 2\n    why", said)
        self.assertNotIn("flaky: real.c", said)

    def test_no_test_at_all_fails(self):
        self.assertEqual(self.summary()[0], 1)
        self.write("real", ("cli.a", 1, "notrun", '<skipped message=""/>', ""))
        self.assertEqual(self.summary()[0], 1)


if __name__ == "__main__":
    unittest.main()
