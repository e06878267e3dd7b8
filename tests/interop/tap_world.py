"""Two ends of urnic for the interop tests: its own TCP on a TAP interface, the kernel's TCP beside it in a
network namespace of the test, or any other port; and the processes of the current case.
"""
import json
import os
import subprocess
import time

import world
from guest import Failure, Skip  # pylint: disable=unused-import

KERNEL4, KERNEL6 = "10.78.0.1", "fd78::1"
OURS4, OURS6 = "10.78.0.2", "fd78::2"
TAP = "tap:name=tap0,mtu=1500"
# The interface is permanent; each case attaches to it again.
MAKE_WORLD = ("ip link set lo up && ip tuntap add tap0 mode tap vnet_hdr && ip link set tap0 up mtu 1500 && "
              f"ip addr add {KERNEL4}/24 dev tap0 && "
              "if [ \"$(cat /proc/sys/net/ipv6/conf/tap0/disable_ipv6 2>/dev/null)\" = 0 ]; then "
              f"ip -6 addr add {KERNEL6}/64 dev tap0 nodad; fi")
# The arguments for a urnic command at one end or the other.
OWN = ["--port", TAP, "--address", f"{OURS4}/24,{OURS6}/64"]
KERNEL = ["--port", "tcp"]


def enter_world():
    """Restarts this program in the namespace. Skip if none can be created."""
    world.enter(MAKE_WORLD)


class World:
    """The command lines of both ends, and the processes of the current case."""

    def __init__(self, urnic, folder):
        self.urnic, self.folder, self.running = urnic, folder, []
        self.environment = dict(os.environ, URNIC_CONFIG="/dev/null", XDG_RUNTIME_DIR=folder)

    def command(self, end, *arguments):
        return [self.urnic, *arguments, *end]

    def start(self, end, *arguments):
        """Starts a server; returns when it is reachable."""
        log = open(os.path.join(self.folder, "server.log"), "w", encoding="utf-8")
        process = subprocess.Popen(self.command(end, *arguments), stdout=log, stderr=log,
                                   env=self.environment)
        self.running.append(process)
        self.until(lambda: os.path.getsize(log.name) > 0, "the server says nothing", process)
        if end[1].startswith("tap:"):
            reachable = (OURS4, OURS6) if world.has_ipv6() else (OURS4,)
            for address in reachable:  # wait for duplicate address detection
                self.until(lambda a=address: subprocess.run(
                    ["ping", "-c", "1", "-W", "1", a], capture_output=True, check=False).returncode == 0,
                    f"{address} does not answer", process)
        return process

    def until(self, condition, complaint, process):
        for _ in range(300):
            if condition():
                return
            if process.poll() is not None:
                with open(os.path.join(self.folder, "server.log"), encoding="utf-8") as f:
                    raise Failure(f"ended with {process.returncode}: {f.read().strip()[-300:]}")
            time.sleep(0.05)
        raise Failure(complaint)

    def run(self, end, *arguments):
        process = subprocess.Popen(self.command(end, *arguments), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=self.environment)
        self.running.append(process)
        try:
            out, complaint = process.communicate(timeout=60)
        except subprocess.TimeoutExpired as e:
            raise Failure("the client did not end in time") from e
        if process.returncode:
            raise Failure(f"exit {process.returncode}: {complaint.strip()[-300:]}")
        return out

    def stat(self, process):
        """Counters of the engine of a running process."""
        out = subprocess.run([self.urnic, "stat", str(process.pid), "--json"], capture_output=True, text=True,
                             env=self.environment, check=False)
        if out.returncode:
            raise Failure(f"stat: {out.stderr.strip()}")
        return json.loads(out.stdout)[0]

    def case(self, name, function, *arguments):
        """Runs a case and prints its line; False if it passed."""
        try:
            said, failed = "ok " + function(self, *arguments), False
        except (Failure, ValueError, OSError, RuntimeError, KeyError, subprocess.CalledProcessError) as e:
            said, failed = f"FAILED: {type(e).__name__ if not str(e) else ''}{e}", True
        finally:
            self.stop()
        print(f"{name:<44} {said}", flush=True)
        return failed

    def stop(self):
        for process in self.running:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        self.running.clear()
