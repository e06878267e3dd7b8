"""A network namespace of a test's own: unprivileged if that is possible, else as root (E-40)."""
import os
import shutil
import subprocess
import sys

from guest import Skip

INSIDE = "URNIC_TEST_WORLD"


def enter(make_world, programs=("unshare", "ip"), root_first=False):
    """Runs the calling program again inside a new network namespace; there, runs the shell script
    `make_world` and returns. `root_first`: for what a user namespace has no right to (BPF)."""
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    if os.environ.pop(INSIDE, None):
        done = subprocess.run(["sh", "-ec", make_world], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skip("the namespace cannot be furnished: " + done.stderr.strip())
        return
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")
    reasons = []
    ways = [["unshare", "-Urn"], ["unshare", "-n"]]
    for way in reversed(ways) if root_first and os.geteuid() == 0 else ways:
        done = subprocess.run(way + ["sh", "-ec", make_world], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            os.environ[INSIDE] = "1"
            os.execvp(way[0], way + [sys.executable] + sys.argv)
        reasons.append(" ".join(way) + ": " + done.stderr.strip())
    raise Skip("no network namespace to be had: " + "; ".join(reasons))
