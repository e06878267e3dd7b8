#!/usr/bin/env python3
"""tools/check-texts finds words that a stranger stumbles over in texts of src/, and lists all of them."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check-texts"


class Texts(unittest.TestCase):
    def run_on(self, source, *options):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "src" / "a").mkdir(parents=True)
            (pathlib.Path(folder) / "src" / "a" / "x.cpp").write_text(source)
            done = subprocess.run([sys.executable, str(TOOL), *options, folder], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_words_that_need_deciphering_are_found(self):
        for text in ("up to 16 octets", "as the letter has it", "limit (R-42)", "see section 7", "who hears nothing asks", "limit: who waits",
                     "the peer is told"):
            code, said = self.run_on(f'const char* c = "{text}";\n')
            self.assertEqual(code, 1, text)
            self.assertIn("src/a/x.cpp:1: ", said)

    def test_a_text_in_several_pieces_is_one(self):
        self.assertEqual(self.run_on('f("the "\n  "letter");')[0], 1)

    def test_others_are_not(self):
        for text in ('f("anyone who can reach it");', "// of octets\n", '#include "a/octet.h"\n', 'key("octets");', 'f("bytes, 1 to 16"); /* "octets of it" */'):
            self.assertEqual(self.run_on(text)[0], 0, text)

    def test_the_list_has_them_all(self):
        self.assertIn("src/a/x.cpp:2: at most 3 of them", self.run_on('f("port");\nf("at most "\n "3 of them");', "--list")[1])


if __name__ == "__main__":
    unittest.main()
