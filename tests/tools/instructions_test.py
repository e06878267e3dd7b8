#!/usr/bin/env python3
"""bench/instructions counts what is ours, and sees a rise, a new case and another compiler."""
import json
import os
import stat
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLAGS = "avx2", "pclmulqdq", "sse4_2"

# 700 instructions of ours: a function of 300, one of 400 with a call that took 9000 elsewhere.
PROFILE = """events: Ir
ob=(1) %s
fl=(1) a.cpp
fn=(1) one
10 100
+1 200
fn=(2) two
20 150
cob=(2) /lib/libc.so.6
cfn=(3) memcpy
calls=7 30
-2 9000
* 250
ob=(2)
fn=(3)
30 9000
ob=(1)
fn=(1)
"""


def program(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def counted(folder, record, *arguments):
    results = os.path.join(folder, "results.json")
    with open(results, "w", encoding="ascii") as f:
        json.dump(record, f)
    env = dict(os.environ, PATH=folder + ":" + os.environ["PATH"])
    done = subprocess.run([sys.executable, os.path.join(TOP, "bench", "instructions"), "--build", folder, "--results",
                           results, *arguments], check=False, capture_output=True, text=True, env=env)
    return done.returncode, done.stdout + done.stderr


def main():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        known = f.read()
    if not all(flag in known for flag in FLAGS):
        print("skipped: this processor is not one that bench/instructions compares on")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "bench"))
        ours = os.path.join(folder, "bench", "bench_counted")
        program(ours, "echo write\n")
        profile = os.path.join(folder, "profile")
        with open(profile, "w", encoding="ascii") as f:
            f.write(PROFILE % ours)
        program(os.path.join(folder, "valgrind"),
                f'for a; do case $a in --callgrind-out-file=*) cp {profile} "${{a#*=}}" ;; esac; done; echo units 7\n')
        program(os.path.join(folder, "compiler"), "echo 12.0.0\n")
        with open(os.path.join(folder, "CMakeCache.txt"), "w", encoding="ascii") as f:
            f.write(f"CMAKE_CXX_COMPILER:STRING={folder}/compiler\nCMAKE_BUILD_TYPE:STRING=Release\n")

        def record(n, compiler="12.0.0 Release"):
            return {"compiler": compiler, "instructions": {"write": n}}

        for n, expected in ((100.0, 0), (97.2, 0), (97.0, 1), (200.0, 0)):
            code, told = counted(folder, record(n))
            assert code == expected, (n, code, told)
            assert "100.0 instructions" in told, told
        code, told = counted(folder, {"compiler": "12.0.0 Release", "instructions": {}})
        assert code == 1 and "none on record" in told, told
        code, told = counted(folder, record(1.0, "13.0.0 Release"))
        assert code == 77 and "13.0.0" in told, told
        code, told = counted(folder, record(100.0), "read")
        assert code == 2 and "no case 'read'" in told, told
    return 0


if __name__ == "__main__":
    sys.exit(main())
