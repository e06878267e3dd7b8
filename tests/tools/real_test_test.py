#!/usr/bin/env python3
"""tools/real-test retries exactly the failures that may be due to chance."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "real-test"
# Prints TEXT, and exits with CODE until it has been started TIMES times.
SCRIPT = """
import pathlib, sys
count = pathlib.Path(sys.argv[1]); times, code, text = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
n = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(n)); print(text)
if n < times:
    if code < 0:
        import os
        os.kill(os.getpid(), -code)
    sys.exit(code)
"""
# Two cases; A.Fails fails in the first run. The report has GoogleTest's format.
GOOGLE = """
import json, pathlib, sys
count = pathlib.Path(sys.argv[1]); n = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(n)); print(sys.argv[2:])
out = [a for a in sys.argv if a.startswith('--gtest_output=json:')]
bad = n < int(sys.argv[2])
if out:
    case = {'name': 'Fails'}
    if bad:
        case['failures'] = [{'failure': 'Expected: this'}]
    pathlib.Path(out[0].split(':', 1)[1]).write_text(json.dumps({'testsuites': [{'name': 'A', 'testsuite': [case, {'name': 'Passes'}]}]}))
sys.exit(bad)
"""


class RealTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def run_tool(self, *command, name="t", run="r"):
        return subprocess.run([str(TOOL), "--results", str(self.path), name, "--", sys.executable, "-c", *command],
                              env=dict(os.environ, URNIC_TEST_RUN=run), capture_output=True, text=True, check=False)

    def script(self, times, code=1, text="said", name="t", run="r"):
        return self.run_tool(SCRIPT, str(self.path / f"count-{name}-{run}"), str(times), str(code), text, name=name, run=run)

    def flaky(self):
        file = self.path / "flaky.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def test_a_script_that_passes_is_run_once(self):
        self.assertEqual(self.script(1).returncode, 0)
        self.assertEqual(self.flaky(), [])

    def test_a_script_that_skips_itself_is_skipped(self):
        self.assertEqual(self.script(9, code=77).returncode, 77)

    def test_a_failure_has_two_more_tries_and_is_recorded(self):
        self.assertEqual(self.script(3).returncode, 0)
        self.assertEqual([(f["test"], f["tries"], f["passed"]) for f in self.flaky()], [("t", 3, True)])
        self.assertEqual(self.script(4, name="u").returncode, 1)
        self.assertFalse(self.flaky()[1]["passed"])

    def test_a_signal_a_report_and_wrong_data_fail_at_once(self):
        for n, (code, text) in enumerate([(-11, "x"), (134, "x"), (1, "ERROR: AddressSanitizer: heap"), (1, "a.cpp:1: runtime error: shift"),
                                          (1, "wrong data at byte 7"),
                                          (1, "Expected equality of these values:\n  std::memcmp(a, b, 4)"),
                                          (1, "  got\n    Which is: { '\\0', 'a' (97, 0x61) }")]):
            self.assertEqual(self.script(2, code=code, text=text, name=str(n)).returncode, 1, text)
        self.assertEqual(self.flaky(), [])

    def test_the_seventh_case_of_a_run_fails(self):
        for n in range(6):
            self.assertEqual(self.script(2, name=str(n)).returncode, 0)
        self.assertEqual(self.script(2, name="seventh").returncode, 1)
        self.assertEqual(self.script(2, name="seventh", run="another").returncode, 0)

    def test_a_case_is_tried_alone_and_the_report_corrected(self):
        report = self.path / "out.json"
        done = self.run_tool(GOOGLE, str(self.path / "n"), "2", f"--gtest_output=json:{report}", "--gtest_filter=-X.*")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("['2', '--gtest_filter=A.Fails']", done.stdout)
        self.assertNotIn("failures", report.read_text())
        self.assertEqual(self.flaky()[0]["case"], "A.Fails")
        self.assertEqual(self.flaky()[0]["said"], "Expected: this")

    def test_a_program_without_a_report_has_no_second_try(self):
        done = self.script(2, name="g")
        self.assertEqual(done.returncode, 0)
        done = self.run_tool(SCRIPT, str(self.path / "m"), "2", "1", "said", f"--gtest_output=json:{self.path}/none.json")
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main()
