#!/usr/bin/env python3
"""tools/check-links detects exactly the broken links and paths of pages."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check-links"


class Links(unittest.TestCase):
    def check(self, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            subprocess.run(["git", "init", "-q", folder], check=True)
            for name, content in {"docs/a.md": text, "docs/b.md": "# Top\n## `run` and *more*, twice\n## Again\n## Again\n", "src/x.h": ""}.items():
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(content)
            done = subprocess.run([sys.executable, str(TOOL), folder], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_what_leads_nowhere_is_found(self):
        for text, what in (("x\n[b](c.md)", "docs/a.md:2: c.md"), ("[b](b.md#topp)", "b.md#topp: no such heading"), ("`src/y.h`", "src/y.h"),
                           ("[b](b.md#again-2)", "b.md#again-2"), ("![p](p.svg)", "p.svg"), ("[here](#gone)", "#gone"), ("[b](../b.md)", "../b.md")):
            code, said = self.check(text)
            self.assertEqual(code, 1, text)
            self.assertIn(what, said)

    def test_what_leads_somewhere_is_not(self):
        for text in ("[b](b.md)", "[b](b.md#run-and-more-twice)", "[b](b.md#again-1)", "`src/x.h`", "# Here\n[h](#here)", "[u](https://example.org/x)",
                     "[up](../src/x.h)", "`a[.](Read|Write)[x](y)`", "```\n[b](c.md)\n```", "`src/*.h`", "`build/x.h`"):
            self.assertEqual(self.check(text)[0], 0, text)


if __name__ == "__main__":
    unittest.main()
