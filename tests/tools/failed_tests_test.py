#!/usr/bin/env python3
"""tools/failed-tests says what failed of what ctest said, and gives a second try to rooms that look at real time, where an
assertion did not hold, and to nothing else."""
import os
import subprocess
import sys
import tempfile

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "failed-tests")


def line(name, how="   Passed"):
    return f"  6/108 Test  #20: {name} ........{how}  108.84 sec\n"


FAILED = "***Failed"
ASSERTION = "[ RUN      ] A.B\na_test.cpp:1: Failure\nExpected: this\n  Actual: that\nnothing\n" + "more\n" * 9


def run(log, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".log") as f:
        f.write(log)
        f.flush()
        done = subprocess.run([sys.executable, TOOL, *options, f.name], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr


def main():
    good = line("room.tcp") + "        Start  19: room.engine\n" + line("cli.previous", "***Skipped") + \
        line("library", "***Not Run (Disabled)")
    device = good + line("room.device", FAILED) + ASSERTION + "        Start  46: package.install\nnot of it\n"
    problems = []
    for log, want in [
        (good, []),
        (device, ["room.device"]),
        (device + line("library", FAILED), ["room.device", "library"]),
        (device + line("proof.conformance", FAILED), ["room.device", "proof.conformance"]),
        (line("proof.conformance", FAILED), []),
        (device + line("room.tcp", FAILED), []),
        (device + line("tree.words", FAILED), []),
        (line("room.device", "***Timeout"), []),
        (line("room.device", "***Exception: SegFault"), []),
        (line("room.device", "Subprocess aborted***Exception:"), []),
        (line("room.device", FAILED) + "ERROR: AddressSanitizer: heap-use-after-free\n", []),
        (line("room.device", FAILED) + "a.cpp:1:2: runtime error: shift exponent\n", []),
        (device + line("room.device"), []),
    ]:
        said = run(log, "--again")
        if said.split() != want:
            problems.append(f"{log}: wanted {want}: {said}")
    said = run(device).splitlines()
    if said[0] != "room.device: Failed" or "  Expected: this" not in said or said.count("  more") != 8 or "  not of it" in said:
        problems.append(f"said {said}")
    short = line("room.device", FAILED) + "a_test.cpp:1: Failure\nExpected: this\n"
    if run(short).count("Expected: this") != 1:
        problems.append(f"said twice: {run(short)}")
    if run(good) or "room.device: Subprocess aborted Exception:" not in run(line("room.device", "Subprocess aborted***Exception:")):
        problems.append(f"said {run(good)}")
    print("\n".join(problems) or "16 cases")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
