#!/usr/bin/env python3
"""tools/check-includes finds exactly the breaches written into tests/tools/breach (each marked with
`breach: <part of the message>` on its line) and none in tests/tools/clean."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "..", "..", "tools", "check-includes")


def run(tree):
    done = subprocess.run([sys.executable, TOOL, os.path.join(HERE, tree)], capture_output=True,
                          text=True, check=False)
    found = {}
    for line in done.stdout.splitlines():
        where, message = line.split(": ", 1)
        found.setdefault(where, []).append(message)
    return done.returncode, found


def expected(tree):
    marks = {}
    root = os.path.join(HERE, tree)
    for base, _, files in os.walk(root):
        for name in files:
            path = os.path.join(base, name)
            with open(path, encoding="utf-8") as f:
                for number, line in enumerate(f, 1):
                    mark = re.search(r"// breach: (.+)$", line)
                    if mark:
                        marks[f"{os.path.relpath(path, root)}:{number}"] = mark.group(1).strip()
    return marks


def main():
    problems = []
    status, found = run("breach")
    marks = expected("breach")
    if status != 1:
        problems.append(f"breach tree: exit status {status}, not 1")
    if len(marks) < 20:
        problems.append(f"breach tree: only {len(marks)} marks")
    for where, part in marks.items():
        if not any(part in message for message in found.get(where, [])):
            problems.append(f"not found: {where}: {part}")
    for where in found:
        if where not in marks:
            problems.append(f"wrongly found: {where}: {found[where]}")
    status, found = run("clean")
    if status != 0 or found:
        problems.append(f"clean tree: exit status {status}, {found}")
    print("\n".join(problems) or f"{len(marks)} breaches found, none invented")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
