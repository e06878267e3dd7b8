#!/usr/bin/env python3
"""tools/check-places on trees made here: what is named and not there is found, what is there is not."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "..", "..", "tools", "check-places")
CODE = "class Delivery {\n void take_fin();\n};\nenum class Stage { Opening };\n"


def run(text):
    with tempfile.TemporaryDirectory() as root:
        for path, octets in {"src/iwarp/delivery.h": CODE, "src/iwarp/delivery.cpp": "", "docs/a/b.md": text}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(octets)
        done = subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def main():
    there = "`src/iwarp/delivery.h`, `src/iwarp/delivery`, `src/iwarp/*.h`, `src/iwarp/`, `Delivery::take_fin()`, `Stage::Opening`\n"
    cases = [
        (there, []),
        (there + "`src/iwarp/away.h`\n", ["docs/a/b.md:2: src/iwarp/away.h"]),
        (there + "`iwarp::Delivery::away`, `Away::take_fin`\n",
         ["docs/a/b.md:2: Delivery::away", "docs/a/b.md:2: Away::take_fin"]),
    ]
    problems = []
    for text, want in cases:
        code, found = run(text)
        if found != want or code != (1 if want else 0):
            problems.append(f"{text!r}: exit {code}, {found}, not {want}")
    if run("nothing named\n")[0] == 0:
        problems.append("no names at all pass")
    print("\n".join(problems) or f"{len(cases) + 1} cases")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
