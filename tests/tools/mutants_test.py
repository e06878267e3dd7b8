#!/usr/bin/env python3
"""tools/mutants tells a mutant that a test killed from one that survived, crashed the program, hung, or
was noticed by no such test; and wants the one that changes nothing to survive. --claims wants every test
that claims an item to fail under a mutant of it, or an exception that is one."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "..", "..", "tools", "mutants")

# Stands for test_mutants: does what the name of the mutant says.
PROGRAM = r'''#!/usr/bin/env python3
import json, os, signal, sys, time
name = os.environ["URNIC_MUTANT"]
out = next(a for a in sys.argv if a.startswith("--gtest_output=json:"))[20:]
if name == "Crashes":
    os.kill(os.getpid(), signal.SIGSEGV)
if name == "ExitsOdd":
    sys.exit(3)
# Ends when more of them are under way than may compute.
if name.startswith("Waits"):
    here = os.path.dirname(os.path.abspath(__file__))
    open(os.path.join(here, name), "w").close()
    end = time.monotonic() + 40
    while time.monotonic() < end and sum(n.startswith("Waits") for n in os.listdir(here)) < os.cpu_count() + 4:
        time.sleep(0.1)
    name = "Killed" if time.monotonic() < end else "Survives"
# The other way round the second time.
if name.startswith("Once"):
    mark = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".was")
    first = not os.path.exists(mark)
    open(mark, "w").close()
    name = "Killed" if (name == "OnceFails") == first else "Survives"
failed = name in ("Killed", "FailsAlways")
tests = [] if name == "NoSuchTest" else [{"name": "T", "status": "RUN", "result": "COMPLETED"}]
if failed:
    tests[0]["failures"] = [{}]
json.dump({"failures": int(failed), "testsuites": [{"name": "S", "testsuite": tests}]}, open(out, "w"))
sys.exit(failed)
'''


def run(names, noop="NoOp", claims=None, exceptions=""):
    with tempfile.TemporaryDirectory() as root:
        folder = os.path.join(root, "tests", "mutants")
        os.makedirs(folder)
        edit = 'file = "a.cpp"\nfunction = "f"\nfind = "1"\nput = "2"\ntext = "breaks"\n'
        with open(os.path.join(folder, "room.toml"), "w", encoding="utf-8") as f:
            if noop:
                f.write(f'[[mutant]]\nname = "{noop}"\nchanges_nothing = true\n{edit}')
            for n in names:
                f.write(f'[[mutant]]\nname = "{n}"\nitems = ["R-1"]\ntest = "S.T"\n{edit}')
        if claims is not None:
            os.makedirs(os.path.join(root, "tests", "room"))
            with open(os.path.join(root, "tests", "room", "a_test.cpp"), "w", encoding="utf-8") as f:
                f.write(claims)
            with open(os.path.join(folder, "exceptions.toml"), "w", encoding="utf-8") as f:
                f.write(exceptions)
        program = os.path.join(root, "program")
        with open(program, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        os.chmod(program, 0o755)
        done = subprocess.run([sys.executable, TOOL, "--program", program, root] + (["--claims"] if claims is not None else []), capture_output=True,
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
        (["Killed", "OnceUnseen"], "NoOp", 0, "OnceUnseen: S.T: survived beside others, killed alone"),
        (["Killed", "OnceUnseen", "Survives"], "NoOp", 1, "killed 2 of 3"),
        (["Killed"], "OnceFails", 0, "OnceFails: S.T: failed beside others, survived alone"),
        (["OnceUnseen"] + [f"Survives{i}" for i in range(40)], "NoOp", 1, "killed 0 of 41"),
    ]
    problems = []
    for names, noop, want, text in cases:
        code, out = run(names, noop)
        if code != want or text not in out:
            problems.append(f"{names} {noop}: exit {code}: {out}")
        # Logs are cut: what is wrong stands at the very end.
        if code and not out.splitlines()[-1].startswith("not proven: "):
            problems.append(f"{names} {noop}: ends with {out.splitlines()[-1]}")
    # Tests that wait do not keep others from beginning.
    code, out = run([f"Waits{i}" for i in range(os.cpu_count() + 4)])
    if code:
        problems.append(f"waiting: exit {code}: {out}")
    one = "// proves: R-1\nTEST(S, T) {}\n"
    two = one + "// proves: R-1\nTEST(S, Other) {}\n"
    but = '[[exception]]\nitem = "R-1"\ntest = "S.{}"\nreason = "why not"\n'
    claims = [
        (["Killed"], one, "", 0, "shown 1 of 1, 0 exceptions"),
        (["Survives"], one, "", 1, "not shown: R-1 S.T"),
        (["Killed"], two, "", 1, "not shown: R-1 S.Other"),
        (["Killed"], two, but.format("Other"), 0, "shown 1 of 2, 1 exceptions"),
        (["Killed"], one, but.format("T"), 1, "no exception any more: R-1 S.T"),
        (["Killed"], one, but.format("Gone"), 1, "no such claim: R-1 S.Gone"),
        (["Crashes"], one, "", 1, "not shown: R-1 S.T"),
        (["OnceUnseen"], one, "", 0, "R-1 S.T: not shown beside others, shown alone by OnceUnseen"),
    ]
    for names, text, exceptions, want, said in claims:
        code, out = run(names, claims=text, exceptions=exceptions)
        if code != want or said not in out:
            problems.append(f"--claims {names} {exceptions}: exit {code}: {out}")
        if code and said not in out.splitlines()[-1]:
            problems.append(f"--claims {names} {exceptions}: ends with {out.splitlines()[-1]}")
    print("\n".join(problems) or f"{len(cases) + len(claims) + 1} cases")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
