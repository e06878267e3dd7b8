#!/usr/bin/env python3
"""tools/check-words notices a path of the machine and leaves look-alikes alone."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "..", "..", "tools", "check-words")
# Put together here, so that this file is no breach itself.
MACHINE = "/" + "work" + "/"


def run(text):
    with tempfile.TemporaryDirectory() as tree:
        with open(os.path.join(tree, "a.txt"), "w", encoding="utf-8") as f:
            f.write(text)
        done = subprocess.run([sys.executable, TOOL, tree], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


def main():
    cases = [
        (f"cd {MACHINE}main\n", 1),
        (f"-B{MACHINE[:-1]}-x\n", 0),
        (f"first\nsecond \"{MACHINE}x\"\n", 1),
        ("docs/" + MACHINE[1:] + "x and net" + MACHINE + "queue.h\n", 0),
        ("nothing to see\n", 0),
    ]
    problems = [f"{text!r}: exit {run(text)[0]}, not {want}" for text, want in cases
                if run(text)[0] != want]
    print("\n".join(problems) or f"{len(cases)} cases")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
