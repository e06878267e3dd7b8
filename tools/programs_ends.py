"""One end of a row of tools/programs: a running program and its output."""
import os
import resource
import signal
import subprocess
import time


def listening(pid=None):
    """Listening TCP ports in the network namespace of that process; None: our own."""
    ports = set()
    for name in ("tcp", "tcp6"):
        with open(f"/proc/{pid or 'self'}/net/{name}", encoding="ascii") as f:
            for line in f.readlines()[1:]:
                words = line.split()
                if words[3] == "0A":
                    ports.add(int(words[1].split(":")[1], 16))
    return ports


class Process:
    """A program on this machine."""

    in_guest = False

    def __init__(self, words, folder, name, descriptors=None):
        self.name, self.folder = name, folder
        with open(self.path("out"), "w", encoding="utf-8") as out, open(self.path("err"), "w", encoding="utf-8") as err:
            self.process = subprocess.Popen(words, stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=folder,
                                            start_new_session=True,  # its children are stopped with it
                                            preexec_fn=(lambda: resource.setrlimit(
                                                resource.RLIMIT_NOFILE, (descriptors, descriptors))) if descriptors else None)

    def path(self, of):
        return os.path.join(self.folder, f"{self.name}.{of}")

    def poll(self):
        """Its exit code, None while it runs."""
        return self.process.poll()

    def wait(self, until):
        """Its exit code, or None if it still runs at that time."""
        try:
            return self.process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None

    def end(self, killed=False):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL if killed else signal.SIGTERM)
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def text(self, of):
        """Its standard output ("out") or standard error ("err")."""
        with open(self.path(of), encoding="utf-8", errors="replace") as f:
            return f.read()
