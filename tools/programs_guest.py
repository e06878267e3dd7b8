"""The columns of tools/programs whose other end is a Linux kernel device, siw or rdma_rxe, in the guest of tests/interop.

One guest serves all cells of its kind. It is on a bridge in its own network namespace, which each cell enters;
ends in the guest run there unmodified, without urnic.

  programs_guest.py KIND FOLDER    creates the namespace, boots the guest, prints "ready" and runs until its
                                   standard input ends (tools/programs starts this)
"""
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "interop"))

import wire_judge  # noqa: E402
import world  # noqa: E402
from guest import Failure, Guest, Skip, find_image  # noqa: E402
from programs_columns import Column  # noqa: E402
from programs_ends import Process  # noqa: E402
from programs_guest_rows import rows as guest_rows  # noqa: E402
from rows import PATIENCE, DumpcapCapture  # noqa: E402

KERNEL, GUEST = "10.77.0.1", "10.77.0.3"
OWN = [f"10.77.0.{5 + i}" for i in range(6)]  # for urnic's own TCP: a TAP interface for each process
UDP = [KERNEL] + [f"10.77.0.{21 + i}" for i in range(5)]  # for RoCE: one socket for each address can have port 4791
PLAIN = "tx off tso off gso off gro off"
MAKE_WORLD = f"""
ip link set lo up
ip link add br0 type bridge forward_delay 0 mcast_snooping 0
for a in {' '.join(UDP)}; do ip addr add $a/24 dev br0; done
for t in {' '.join(f'own{i}' for i in range(len(OWN)))} gst0; do
  ip tuntap add $t mode tap
  ethtool -K $t {PLAIN}
  ip link set $t master br0 up
done
ethtool -K br0 {PLAIN}
ip link set br0 up
"""
# Debian programs missing in the guest's image: copied from this machine with their libraries.
LENT = ("fio", "qperf", "iperf3")
HERE = "PROGRAMS_GUEST"  # of the environment: folder of the guest
CELL = "/tmp/cell"  # in the guest, where a cell's files are


def lend(folder):
    """Copies the programs LENT; the guest sees them at /host."""
    for name in ("bin", "lib"):
        os.makedirs(os.path.join(folder, name))
    for program in LENT:
        path = shutil.which(program)
        if path is None:
            continue
        shutil.copy(os.path.realpath(path), os.path.join(folder, "bin", program))
        for line in subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout.splitlines():
            for word in line.split():
                if word.startswith("/"):
                    library = os.path.join(folder, "lib", os.path.basename(word))
                    if not os.path.exists(library):
                        shutil.copy(os.path.realpath(word), library)


# ---- the process that keeps namespace and guest ----------------------------------------------------

def stay(kind, folder):
    try:
        world.enter(MAKE_WORLD, ("unshare", "nsenter", "ip", "ethtool", "tshark", "dumpcap"))
        image = find_image()
        host = os.path.join(folder, "host")
        os.makedirs(host)
        lend(host)
        guest = Guest(image, folder, GUEST, tap="gst0", options=("--rdma", kind, "--share", host))
        try:
            guest.start()
            guest.run("for p in /host/bin/*; do n=${p##*/}; printf '#!/bin/sh\\nexec /host/lib/ld-linux-x86-64.so.2 "
                      "--library-path /host/lib %s \"$@\"\\n' $p >/bin/$n; chmod 755 /bin/$n; done")
            print("ready", flush=True)
            sys.stdin.read()
        finally:
            guest.stop()
    except (Skip, Failure) as e:
        print(f"no guest: {e}", flush=True)


class GuestWorld:
    """A guest of one kind, from open to close."""

    def __init__(self, kind):
        self.kind = kind
        self.process = self.folder = None

    def open(self):
        """Boots the guest. Returns the reason why it failed, empty on success."""
        self.folder = tempfile.mkdtemp(prefix="urnic-programs-", dir="/tmp")
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), self.kind, self.folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.strip() == "ready":
                os.environ[HERE] = self.folder
                return ""
            if line.startswith("no guest: "):
                return line[len("no guest: "):].strip()
            print(line.rstrip(), flush=True)
        return "the process that runs the guest ended"

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    def is_alive(self):
        try:
            guest = Guest("", self.folder, GUEST)
            # Bit 7 of the taint flags: the kernel has had an oops or BUG.
            return guest.call("exec", guest.name, "[ $(($(cat /proc/sys/kernel/tainted) & 128)) = 0 ]", timeout=15).returncode == 0
        except Failure:
            return False

    def way_in(self):
        pid = self.process.pid
        own_user = os.stat(f"/proc/{pid}/ns/user").st_ino != os.stat("/proc/self/ns/user").st_ino
        return ["nsenter", "-t", str(pid), "-n"] + (["-U", "--preserve-credentials"] if own_user else []) + ["--"]


# ---- an end in the guest -----------------------------------------------------------------------------

class GuestProcess:
    """A program in the guest, with the interface of programs_ends.Process."""

    in_guest = True

    def __init__(self, guest, words, name):
        self.guest, self.name = guest, name
        self.path = f"{CELL}/{name}"
        # A group of its own: what it forks is stopped with it.
        self.run(f"cat >{self.path}.sh <<'END'\n{shlex.join(words)} >{self.path}.out 2>{self.path}.err\necho $? >{self.path}.code\nEND\n"
                 f"cd {CELL}; setsid sh {self.path}.sh >/dev/null 2>&1 & echo $! >{self.path}.pid")

    def run(self, script):
        return self.guest.run(script)[1]

    def poll(self):
        code = self.run(f"cat {self.path}.code 2>/dev/null").strip()
        return int(code) if code else None

    def wait(self, until):
        while True:
            left = until - time.monotonic()
            self.run(f"for i in $(seq {max(1, min(50, int(left * 10)))}); do [ -s {self.path}.code ] && break; usleep 100000; done")
            code = self.poll()
            if code is not None or time.monotonic() >= until:
                return code

    def end(self, killed=False):
        group = f"-$(cat {self.path}.pid)"
        if self.poll() is None and not killed:
            self.run(f"kill -TERM {group}; for i in $(seq 30); do kill -0 {group} 2>/dev/null || break; usleep 100000; done")
        self.run(f"kill -KILL {group}")

    def text(self, of):
        return self.run(f"tail -c 20000 {self.path}.{of}")


# ---- columns -------------------------------------------------------------------------------------------

class GuestColumn(Column):
    """One end in the guest, which serves or not; ours over the kernel's TCP (or UDP), or over its own at a TAP interface."""

    tries = 2  # an emulated kernel in real time, beside whatever else the machine does

    def __init__(self, kind, guest_serves, own):
        name = f"{kind}-{'serves' if guest_serves else 'calls'}" + ("-own" if own else "")
        ours = "RoCEv2 through the kernel's UDP" if kind == "rxe" else "own TCP at a TAP interface" if own else "the kernel's TCP"
        here = GUEST if guest_serves else OWN[0] if own else KERNEL
        super().__init__(name, here, f"Linux {kind} {'serves' if guest_serves else 'is the client'}; urnic over {ours}")
        self.group, self.guest_serves, self.own = kind, guest_serves, own
        self.transport = "roce" if kind == "rxe" else "iwarp"
        self.guest = self.capture = self.started = None

    def rows(self):
        # Ports of this column only: those of other columns may be in TIME-WAIT.
        return guest_rows(self.group, self.guest_serves, self.here, 20000 + 1000 * (self.guest_serves + 2 * self.own))

    def enter(self, folder, urnic):
        self.guest = Guest("", os.environ[HERE], GUEST)
        self.guest.run(f"rm -rf {CELL}; mkdir {CELL}; dmesg -c >/dev/null")

    def prefix(self, i):
        settings = {}
        if self.group == "rxe":
            settings = {"TRANSPORT": "roce", "PORT": f"udp:bind={UDP[i]},mtu=1500"}
        elif self.own:
            settings = {"PORT": f"tap:name=own{i},mtu=1500,offload=off", "ADDRESS": OWN[i] + "/24", "TIME_WAIT_MS": "100"}
        if self.group == "siw" and self.guest_serves:
            settings.update({name.upper(): value for name, value in PATIENCE.items()})
        return ["env"] + [f"URNIC_{name}={value}" for name, value in settings.items()]

    def begin(self, row, folder):
        super().begin(row, folder)
        if self.name in row.siw:
            self.guest.become(row.siw[self.name], 1500)
        for name, text in row.files.items():
            self.guest.run(f"cat >{CELL}/{name} <<'END'\n{text}END\n")
        if row.captured:
            name = re.sub(r"[^\w]+", "-", f"{row.name} {self.name}") + ".pcapng"
            # The filter excludes the last segments of the row before.
            self.capture = DumpcapCapture(os.path.join(self.keep or folder, name), "gst0", f"tcp port {row.port} and host {GUEST}")
            self.capture.start()

    def server(self, row, run, folder):
        self.started = time.monotonic()
        if self.guest_serves:
            return GuestProcess(self.guest, row.server, "server")
        return Process(self.prefix(0) + run + row.server, folder, "server", row.descriptors)

    def client(self, row, run, folder, i, name):
        if not self.guest_serves:
            return GuestProcess(self.guest, row.client, name)
        return Process(self.prefix(i) + run + row.client, folder, name, row.descriptors)

    def prepare(self, row, folder):
        if self.guest_serves:
            return super().prepare(row, folder)
        for command in row.prepare:
            code, output = self.guest.run(f"cd {CELL}; {command.format(folder=CELL)}")
            if code:
                return f"{command}: {output.strip()[-120:]}"
        return None

    def wait_ready(self, row):
        if self.guest_serves:
            # rdma_cm lists listeners of RoCE, the TCP table those of kernel sockets.
            return self.guest.run(f"grep -q ':{row.port:04X} 0*:0000 0A' /proc/net/tcp /proc/net/tcp6 || "
                                  f"rdma resource show cm_id | grep LISTEN | grep -q ':{row.port} '")[0] == 0
        if self.group == "rxe":  # the kernel does not know ports of RoCE: wait a fixed time
            return super().wait_ready(row) or time.monotonic() > self.started + 1.5
        if self.own:  # invisible here, but a connection without an MPA Request does not reach the program
            try:
                socket.create_connection((self.here, row.port), timeout=1).close()
                return True
            except OSError:
                return False
        return super().wait_ready(row)

    def finish(self, row):
        """After the ends of a row: an error text from the capture or the guest's kernel log, or None."""
        wrong = None
        if self.capture:
            self.capture.stop()
            wrong = self.judge_wire(self.capture)
        told = [line for line in self.guest.run("dmesg -c")[1].splitlines() if "siw" in line or "BUG" in line or "Oops" in line]
        if told and not wrong and not row.complaints:
            wrong = "the guest's kernel says: " + " | ".join(told[-3:])
        self.guest.become("", 1500)
        return wrong

    def judge_wire(self, capture):
        if self.group != "siw":
            return None
        # Programs may close a connection with unread bytes, which causes a RST.
        rules = wire_judge.Rules(linux=(GUEST,) if self.own else (GUEST, KERNEL), ends_badly=True)
        wrong = capture.tolerate(wire_judge.judge(capture.path, rules).wrong)
        return "wire: " + "; ".join(wrong[:3]) if wrong else None


def columns():
    return [GuestColumn("siw", serves, own) for own in (False, True) for serves in (True, False)] + \
           [GuestColumn("rxe", serves, False) for serves in (True, False)]


if __name__ == "__main__":
    stay(*sys.argv[1:])
