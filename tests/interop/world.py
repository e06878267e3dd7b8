"""A network namespace of a test's own: unprivileged if that is possible, else as root (E-40). What a test depends on
is set there: a new namespace inherits much from the machine, which may forward (every machine with a
container engine does), filter by route or have no IPv6.
"""
import os
import shutil
import subprocess
import sys

from guest import Skip

INSIDE = "URNIC_TEST_WORLD"
# What is not to be had (a read-only /proc/sys) stays as it is; who cannot do without it looks.
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
# URNIC_TEST_NO_IPV6: as on a machine without it.
WITHOUT_IPV6 = """
for f in all default lo; do echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done
"""


def enter(make_world, programs=("unshare", "ip"), root_first=False):
    """Runs the calling program again inside a new network namespace; there, runs the shell script
    `make_world` and returns. `root_first`: for what a user namespace has no right to (BPF)."""
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
    """The namespace this process is in does."""
    try:
        with open("/proc/sys/net/ipv6/conf/all/disable_ipv6", encoding="ascii") as f:
            return f.read().strip() == "0"
    except OSError:
        return False


def forwards(interface="all"):
    """The kernel of this namespace is a router for what comes in by `interface`."""
    try:
        with open(f"/proc/sys/net/ipv4/conf/{interface}/forwarding", encoding="ascii") as f:
            return f.read().strip() != "0"
    except OSError:
        return False
