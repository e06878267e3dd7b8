#!/usr/bin/env python3
"""tools/texts finds exactly the messages of a source and the forbidden words; the command's texts have none."""
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "texts"


def load():
    loader = importlib.machinery.SourceFileLoader("texts", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("texts", loader))
    loader.exec_module(module)
    return module


class Texts(unittest.TestCase):
    def test_adjacent_literals_are_one_message_and_comments_are_none(self):
        source = '#include "a b.h"\n// "not a message"\nfail("first half "\n     "and second");\nf("word"); g("see http://x and more");\n'
        self.assertEqual(load().messages(source), [(3, "first half and second"), (5, "see http://x and more")])

    def test_forbidden_words_are_found(self):
        for text in ("9 octets lost", "as the letter has it", "downgraded (R-42)", "at once (S-5)", "limits (section 7)", "who may connect",
                     "it is told what came", "a NAK that is owed", "whoever reaches it"):
            self.assertTrue(load().broken_rules(text), text)

    def test_other_words_are_not(self):
        for text in ("the whole file", "9 bytes lost", "letters and digits", "RFC 5681, 6582", "the section [device.NAME]", "borrowed (SACK)"):
            self.assertEqual(load().broken_rules(text), [], text)

    def test_texts_of_the_command_keep_the_rules(self):
        done = subprocess.run([sys.executable, str(TOOL), "--check", *sys.argv_rest], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    sys.argv_rest = ["--urnic", sys.argv.pop(1)] if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else []
    unittest.main()
