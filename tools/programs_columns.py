"""The columns of tools/programs: over what the two ends of a row meet.

A column is entered in a network namespace of its own, where nothing is but loopback, and left with it."""
import os
import subprocess
import time


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Column:
    """Both ends in one namespace, over the kernel's TCP, the server at `here`."""

    def __init__(self, name, here, text):
        self.name, self.here, self.text = name, here, text
        self.server_prefix = []  # before the server's command
        self.settings = {}  # of the environment of both ends

    def enter(self, folder):
        ip("link", "set", "lo", "up")

    def leave(self):
        pass

    def wait_ready(self, row, until, listening):
        """True when the server can be reached; it is still running."""
        return row.port in listening(None)

    def namespaces(self):
        """Process ids whose namespaces are looked at for what was left; None: ours."""
        return [None]


class TwoHosts(Column):
    """The server in a second namespace, at the other end of a veth pair."""

    def __init__(self):
        super().__init__("veth", "10.99.0.1", "the kernel's TCP between two network namespaces")
        self.other = None

    def enter(self, folder):
        super().enter(folder)
        self.other = subprocess.Popen(["unshare", "-n", "sleep", "3600"])
        pid = self.other.pid
        ours = os.stat("/proc/self/ns/net").st_ino
        until = time.monotonic() + 10
        while os.stat(f"/proc/{pid}/ns/net").st_ino == ours and time.monotonic() < until:
            time.sleep(0.01)
        self.server_prefix = ["nsenter", "-t", str(pid), "-n", "--"]
        ip("link", "add", "client", "type", "veth", "peer", "name", "server", "netns", str(pid))
        ip("addr", "add", "10.99.0.2/24", "dev", "client")
        ip("link", "set", "client", "up")
        for words in (["link", "set", "lo", "up"], ["addr", "add", "10.99.0.1/24", "dev", "server"],
                      ["link", "set", "server", "up"]):
            subprocess.run(self.server_prefix + ["ip"] + words, check=True)

    def leave(self):
        if self.other is not None:
            self.other.kill()
            self.other.wait()

    def wait_ready(self, row, until, listening):
        return row.port in listening(self.other.pid)

    def namespaces(self):
        return [None, self.other.pid]


class Memif(Column):
    """Both ends in one namespace over memif, without the kernel: own TCP. The sockets that programs have besides (for their
    options, their results) are the kernel's: the same addresses are there on loopback."""

    def __init__(self):
        super().__init__("memif", "10.77.0.1", "own TCP over memif, MTU 9000")
        self.socket = None

    def enter(self, folder):
        super().enter(folder)
        for address in ("10.77.0.1/32", "10.77.0.2/32"):
            ip("addr", "add", address, "dev", "lo")
        self.socket = os.path.join(folder, "m.sock")
        self.settings = {"URNIC_PORT": f"memif:socket={self.socket},mtu=9000"}

    def wait_ready(self, row, until, listening):
        # What listens inside the wire cannot be seen from here: a moment behind the wire itself.
        if row.port in listening(None):
            return True
        if not os.path.exists(self.socket):
            return False
        time.sleep(0.7)
        return True


def columns():
    return [Column("127.0.0.1", "127.0.0.1", "the kernel's TCP over loopback"),
            Column("::1", "::1", "the kernel's TCP over loopback, IPv6"), TwoHosts(), Memif()]
