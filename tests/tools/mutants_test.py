#!/usr/bin/env python3
"""tools/mutants tells a mutant that a test killed from one that survived, crashed the program, hung, or
was noticed by no such test; and wants the one that changes nothing to survive."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "..", "..", "tools", "mutants")

# Stands for test_mutants: does what the name of the mutant says.
PROGRAM = r'''#!/usr/bin/env python3
import json, os, signal, sys
name = os.environ["URNIC_MUTANT"]
out = next(a for a in sys.argv if a.startswith("--gtest_output=json:"))[20:]
if name == "Crashes":
    os.kill(os.getpid(), signal.SIGSEGV)
if name == "ExitsOdd":
    sys.exit(3)
failed = name in ("Killed", "FailsAlways")
tests = [] if name == "NoSuchTest" else [{"name": "T", "status": "RUN", "result": "COMPLETED"}]
json.dump({"failures": int(failed), "testsuites": [{"testsuite": tests}]}, open(out, "w"))
sys.exit(failed)
'''


def run(names, noop="NoOp"):
    with tempfile.TemporaryDirectory() as root:
        folder = os.path.join(root, "tests", "mutants")
        os.makedirs(folder)
        edit = 'file = "a.cpp"\nfunction = "f"\nfind = "1"\nput = "2"\ntext = "breaks"\n'
        with open(os.path.join(folder, "room.toml"), "w", encoding="utf-8") as f:
            if noop:
                f.write(f'[[mutant]]\nname = "{noop}"\nchanges_nothing = true\n{edit}')
            for n in names:
                f.write(f'[[mutant]]\nname = "{n}"\nitems = ["R-1"]\ntest = "S.T"\n{edit}')
        program = os.path.join(root, "program")
        with open(program, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        os.chmod(program, 0o755)
        done = subprocess.run([sys.executable, TOOL, "--program", program, root], capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def main():
    cases = [
        (["Killed"], "NoOp", 0, "killed 1 of 1"),
        (["Killed", "Survives"], "NoOp", 1, "killed 1 of 2"),
        (["Crashes"], "NoOp", 1, "crashed by signal 11"),
        (["ExitsOdd"], "NoOp", 1, "exit 3"),
        (["NoSuchTest"], "NoOp", 1, "no such test"),
        (["Killed"], "FailsAlways", 1, "FailsAlways must survive"),
        (["Killed"], None, 1, "no mutant that changes nothing"),
    ]
    problems = []
    for names, noop, want, text in cases:
        code, out = run(names, noop)
        if code != want or text not in out:
            problems.append(f"{names} {noop}: exit {code}: {out}")
    print("\n".join(problems) or f"{len(cases)} cases")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
