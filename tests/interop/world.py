"""A separate network namespace for a test: unprivileged if possible, else as root (E-40). It sets everything that tests
depend on, because a new namespace inherits settings of the machine, which may forward (every machine with a
container engine does), filter by route or have no IPv6.
"""
import os
import shutil
import subprocess
import sys

from guest import Skip

INSIDE = "URNIC_TEST_WORLD"
# Files that cannot be written (a read-only /proc/sys) stay unchanged; tests that depend on them
# check that.
NEUTRAL = """
neutral() {
  for f in /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv6/conf/*/forwarding \\
           /proc/sys/net/ipv4/conf/*/rp_filter /proc/sys/net/ipv4/conf/*/arp_ignore \\
           /proc/sys/net/ipv4/conf/*/arp_filter /proc/sys/net/ipv4/conf/*/arp_announce; do
    { [ ! -e "$f" ] || echo 0 >"$f"; } 2>/dev/null || true
  done
}
neutral
"""
# URNIC_TEST_NO_IPV6: simulates a machine without IPv6.
WITHOUT_IPV6 = """
for f in all default lo; do echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done
"""


def enter(make_world, programs=("unshare", "ip"), root_first=False):
    """Runs the calling program again inside a new network namespace; there, runs the shell script
    `make_world` and returns. `root_first`: for operations that a user namespace may not do (BPF)."""
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    script = NEUTRAL + (WITHOUT_IPV6 if os.environ.get("URNIC_TEST_NO_IPV6") else "") + make_world
    if os.environ.pop(INSIDE, None):
        done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skip("the namespace cannot be furnished: " + done.stderr.strip())
        return
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")
    reasons = []
    ways = [["unshare", "-Urn"]] + ([["unshare", "-n"]] if os.geteuid() == 0 else [])
    for way in reversed(ways) if root_first and os.geteuid() == 0 else ways:
        done = subprocess.run(way + ["sh", "-ec", script], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            os.environ[INSIDE] = "1"
            os.execvp(way[0], way + [sys.executable] + sys.argv)
        reasons.append(" ".join(way) + ": " + done.stderr.strip())
    raise Skip("no network namespace to be had: " + "; ".join(reasons))


def has_ipv6():
    """True if the namespace of this process has it."""
    try:
        with open("/proc/sys/net/ipv6/conf/all/disable_ipv6", encoding="ascii") as f:
            return f.read().strip() == "0"
    except OSError:
        return False


def forwards(interface="all"):
    """True if the kernel of this namespace forwards packets from `interface`."""
    try:
        with open(f"/proc/sys/net/ipv4/conf/{interface}/forwarding", encoding="ascii") as f:
            return f.read().strip() != "0"
    except OSError:
        return False
