"""The columns of tools/programs: the wire between the two ends of a row.

Each column runs in its own network namespace, which only has loopback."""
import os
import subprocess
import time

import programs_rows
from programs_ends import Process, listening

MEMBERS = 24  # ports of the switch: at least the processes of a row


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Column:
    """Both ends in one namespace, over the kernel's TCP, the server at `here`."""

    transport = "iwarp"
    group = "urnic"  # columns of a group have their rows in common, and a table
    tries = 1
    keep = ""  # folder for captures

    def __init__(self, name, here, text):
        self.name, self.here, self.text = name, here, text

    def rows(self):
        return programs_rows.rows(self.here)

    def enter(self, folder, urnic):
        ip("link", "set", "lo", "up")

    def server_prefix(self):
        """Before the server's command."""
        return []

    def client_prefix(self, i):
        return []

    def server(self, row, run, folder):
        """Starts the server; `run` goes before its command."""
        return Process(self.server_prefix() + run + row.server, folder, "server", row.descriptors)

    def client(self, row, run, folder, i, name):
        return Process(self.client_prefix(i) + run + row.client, folder, name, row.descriptors)

    def begin(self, row, folder):
        """Before the ends of a row are started."""
        for name, text in row.files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)

    def prepare(self, row, folder):
        """Runs the row's commands once its server listens. Returns an error text or None."""
        for command in row.prepare:
            done = subprocess.run(command.format(folder=folder).split(), cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                return f"{command}: {(done.stderr or done.stdout).strip()[-120:]}"
        return None

    def finish(self, row):
        """After the ends of a row. Returns an error text or None."""
        return None

    def leave(self):
        pass

    def wait_ready(self, row):
        """True when the server can be reached."""
        return row.port in listening()

    def namespaces(self):
        """Process ids whose namespaces are checked for open ports; None: our own."""
        return [None]


class TwoHosts(Column):
    """The server in a second namespace, at the other end of a veth pair."""

    def __init__(self):
        super().__init__("veth", "10.99.0.1", "the kernel's TCP between two network namespaces")
        self.other = None

    def enter(self, folder, urnic):
        super().enter(folder, urnic)
        self.other = subprocess.Popen(["unshare", "-n", "sleep", "3600"])
        pid = self.other.pid
        ours = os.stat("/proc/self/ns/net").st_ino
        until = time.monotonic() + 10
        while os.stat(f"/proc/{pid}/ns/net").st_ino == ours and time.monotonic() < until:
            time.sleep(0.01)
        ip("link", "add", "client", "type", "veth", "peer", "name", "server", "netns", str(pid))
        ip("addr", "add", "10.99.0.2/24", "dev", "client")
        ip("link", "set", "client", "up")
        for words in (["link", "set", "lo", "up"], ["addr", "add", "10.99.0.1/24", "dev", "server"],
                      ["link", "set", "server", "up"]):
            subprocess.run(self.server_prefix() + ["ip"] + words, check=True)

    def server_prefix(self):
        return ["nsenter", "-t", str(self.other.pid), "-n", "--"]

    def leave(self):
        if self.other is not None:
            self.other.kill()
            self.other.wait()

    def wait_ready(self, row):
        return row.port in listening(self.other.pid)

    def namespaces(self):
        return [None, self.other.pid]


class Switch(Column):
    """Both ends in one namespace, members of one `urnic switch`: own TCP over memif. Programs also open kernel sockets (to exchange
    options and results); for these, loopback has the same addresses."""

    def __init__(self):
        super().__init__("memif", "10.77.0.1", "own TCP over memif, MTU 9000, through `urnic switch`")
        self.process = self.folder = self.began = None

    def enter(self, folder, urnic):
        super().enter(folder, urnic)
        self.folder = os.path.join(folder, "lan")
        os.mkdir(self.folder)
        for i in range(1, MEMBERS + 1):
            ip("addr", "add", f"10.77.0.{i}/32", "dev", "lo")
        self.process = subprocess.Popen([urnic, "switch", "--quiet", "--dir", self.folder, "--sockets", str(MEMBERS)])
        until = time.monotonic() + 10
        while not os.path.exists(self.member(MEMBERS)) and time.monotonic() < until:
            time.sleep(0.02)

    def leave(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()

    def member(self, i):
        return os.path.join(self.folder, f"{i}.sock")

    def prefix(self, i):
        return ["env", f"URNIC_PORT=memif:socket={self.member(i)},role=client,mtu=9000", f"URNIC_ADDRESS=10.77.0.{i}/24"]

    def server_prefix(self):
        self.began = time.monotonic()
        return self.prefix(1)

    def client_prefix(self, i):
        return self.prefix(2 + i)

    def wait_ready(self, row):
        # A listener in the switch's LAN is invisible here: wait a fixed time.
        return row.port in listening() or time.monotonic() > self.began + 1.5


class Datagrams(Column):
    """Both ends in one namespace, RoCE through the kernel's UDP. Only one socket for each address can have port 4791."""

    transport = "roce"

    def __init__(self):
        super().__init__("roce-udp", "127.0.0.1", "RoCEv2 through the kernel's UDP over loopback, path MTU 4096, each end at an address of its own")
        self.began = None

    def prefix(self, address):
        return ["env", "URNIC_TRANSPORT=roce", f"URNIC_PORT=udp:bind={address},mtu=5000"]

    def server_prefix(self):
        self.began = time.monotonic()
        return self.prefix(self.here)

    def client_prefix(self, i):
        return self.prefix(f"127.0.1.{1 + i}")

    def wait_ready(self, row):
        # The kernel does not know ports of RoCE: wait a fixed time.
        return row.port in listening() or time.monotonic() > self.began + 1.5


class RoceSwitch(Switch):
    """As Switch, with RoCE."""

    transport = "roce"

    def __init__(self):
        super().__init__()
        self.name, self.text = "roce-memif", "RoCEv2 over memif, MTU 9000, through `urnic switch`"

    def prefix(self, i):
        return super().prefix(i) + ["URNIC_TRANSPORT=roce"]


def columns():
    return [Column("127.0.0.1", "127.0.0.1", "the kernel's TCP over loopback"),
            Column("::1", "::1", "the kernel's TCP over loopback, IPv6"), TwoHosts(), Switch(), Datagrams(), RoceSwitch()]
