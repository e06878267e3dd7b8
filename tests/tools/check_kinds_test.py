#!/usr/bin/env python3
"""tools/check-kinds detects unlisted tests that depend on the machine, and lines that name no test."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check-kinds"


class Kinds(unittest.TestCase):
    def check(self, files, real="", outside=""):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in dict(files, **{"tests/real_tests.txt": real, "tests/outside_tests.txt": outside}).items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            done = subprocess.run([sys.executable, str(TOOL), folder], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_a_thread_a_clock_and_a_header_are_found(self):
        for text in ("std::thread t;", "usleep(5);", "auto t = steady_clock::now();", "int s = socket(1, 2, 3);", '#include "ends.h"\n'):
            code, said = self.check({"tests/a/x_test.cpp": text, "tests/a/ends.h": "auto d = Device::open(c);"})
            self.assertEqual(code, 1, text)
            self.assertTrue(said.startswith("tests/a/x_test.cpp: tests/a/"), said)

    def test_a_comment_and_a_virtual_test_are_not(self):
        self.assertEqual(self.check({"tests/a/x_test.cpp": "// no std::thread\nhost.socket(3); cq.poll(done);"}), (0, ""))

    def test_a_listed_test_may(self):
        files = {"tests/a/x_test.cpp": "TEST(X, Waits) { fork(); }"}
        self.assertEqual(self.check(files, real="# why\ntests/a/x_test.cpp\n")[0], 0)
        self.assertEqual(self.check(files, outside="tests/a/x_test.cpp\n")[0], 0)
        self.assertEqual(self.check(files, real="tests/a/x_test.cpp\n", outside="tests/a/x_test.cpp X.Waits\n")[0], 0)

    def test_a_line_that_names_nothing_is_found(self):
        files = {"tests/a/x_test.cpp": "TEST(X, Waits) {}"}
        self.assertIn("does not exist", self.check(files, real="tests/a/y_test.cpp\n")[1])
        self.assertIn("has no test X.Gone", self.check(files, outside="tests/a/x_test.cpp X.Gone\n")[1])
        self.assertIn("twice", self.check(files, real="tests/a/x_test.cpp\n", outside="tests/a/x_test.cpp\n")[1])

    def test_no_test_at_all_fails(self):
        self.assertEqual(self.check({})[0], 1)


if __name__ == "__main__":
    unittest.main()
