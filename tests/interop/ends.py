"""The two ends of a case: urnic over its own TCP, urnic over the kernel's, Linux siw in the guest.

Each runs one end of a protocol ("rping", "write", "read", "send", "write-lat", "echo", "reject",
...): the unmodified program or siw/verbs_peer in the guest, our peers (rping_peer, perftest_peer,
verbs_peer) elsewhere. `serve` returns when the server listens; `Run.result` returns its result.
"""
import json
import re
import subprocess

from guest import CASE_TIMEOUT, Failure, expect

PERFTEST = {"write": "ib_write_bw", "read": "ib_read_bw", "send": "ib_send_bw",
            "write-lat": "ib_write_lat"}


class Run:
    """One end of a program that has been started."""

    def result(self):
        """Counters (urnic) or the output's text (siw); Failure if it did not end well."""
        raise NotImplementedError

    def stop(self):
        pass


class PeerRun(Run):
    """One of our peer programs."""

    def __init__(self, command, folder):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, cwd=folder)

    def wait_listening(self):
        line = self.process.stdout.readline()
        if not line.startswith("listening"):
            self.result()
            raise Failure("our server did not say that it listens")

    def result(self):
        try:
            output, complaint = self.process.communicate(timeout=CASE_TIMEOUT + 10)
        except subprocess.TimeoutExpired as e:
            self.stop()
            raise Failure("our peer did not end") from e
        if self.process.returncode:
            raise Failure(f"our peer: {complaint.strip()[-300:]}")
        return json.loads(output.strip().splitlines()[-1])

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class Urnic:
    """A urnic end. `settings` apply to every program of the case (-o name=value)."""
    is_siw = False

    def __init__(self, name, address, programs, folder, settings):
        self.name, self.address, self.programs = name, address, programs
        self.folder, self.own = folder, dict(settings)
        self.settings = {}

    def start(self, case, *role):
        what = case.what
        program = "rping" if what == "rping" else "perftest" if what in PERFTEST else "verbs"
        command = [self.programs[program], "-t", str(CASE_TIMEOUT), "-p", str(case.port),
                   "-C", str(case.count), "-S", str(case.size), *role]
        if program != "rping":
            command += ["-m", what]
        if program == "verbs":
            command += ["-d", str(case.private)]
        for name, value in {**self.own, **self.settings}.items():
            command += ["-o", f"{name}={value}"]
        return PeerRun(command, self.folder)

    def serve(self, case):
        run = self.start(case)
        case.runs.append(run)
        run.wait_listening()
        return run

    def connect(self, case, address):
        run = self.start(case, "-c", address)
        case.runs.append(run)
        return run


class GuestServer(Run):
    def __init__(self, guest):
        self.guest = guest

    def result(self):
        status, output = self.guest.served()
        expect(status == "0", f"the guest's server ended with {status}: {output[-300:]}")
        return output


class GuestClient(Run):
    """Runs when its result is requested: the guest does one thing at a time."""

    def __init__(self, guest, command):
        self.guest, self.command = guest, command

    def result(self):
        status, output = self.guest.client(self.command)
        expect(status == 0, f"the guest's client ended with {status}: {output[-300:]}")
        return output


class Siw:
    """The guest."""
    is_siw = True

    def __init__(self, guest, address):
        self.name, self.guest, self.address = "siw", guest, address

    def command(self, case, server):
        """The command line of one end; `server`: address of the server if this is the client."""
        what, size, count = case.what, case.size, case.count
        if what == "rping":
            role = f"-c -a {server}" if server else f"-s -a {self.address}"
            return f"rping {role} -p {case.port} -S {size} -C {count} -v -V"
        if what in PERFTEST:
            return f"{PERFTEST[what]} -R -d siw0 -F -p {case.port} -n {count} -s {size} {server or ''}"
        role = f"-c {server}" if server else f"-l {self.address}"
        return f"verbs_peer {role} -p {case.port} -m {what} -C {count} -S {size} -d {case.private}"

    def serve(self, case):
        self.guest.serve(f"timeout {CASE_TIMEOUT - 5} {self.command(case, '')}", case.port)
        return GuestServer(self.guest)

    def connect(self, case, address):
        return GuestClient(self.guest, self.command(case, address))


def check_rping_output(output, word, count, size):
    """rping -v prints each ping; the text is cut at the first NUL, which is its last byte."""
    pings = re.findall(rf"^{word}: (rdma-ping-\d+: .*)$", output, re.M)
    expect(len(pings) == count, f"rping printed {len(pings)} pings: {output[-300:]}")
    expect(all(len(p) == size - 1 for p in pings), "rping printed pings of another length")


def perftest_rate(output, size, count):
    """Average MB/s (or the typical latency) in perftest's result line: size, iterations, peak, average."""
    row = re.search(rf"^\s*{size}\s+{count}\s+([\d.]+)\s+([\d.]+)", output, re.M)
    expect(row, f"perftest printed no result: {output[-300:]}")
    return float(row.group(2))
