"""Cases: the traffic of one pair of ends, and the requirements for both ends and for the wire afterwards.

A Case is run by `carry_out`. The same code serves every pair of {urnic own TCP, urnic kernel TCP,
Linux siw} in either role; siw_test and tools/interop choose which.
"""
import copy
import os
import re
import signal
import subprocess
import time

import wire_judge
from ends import PERFTEST, check_rping_output, perftest_rate
from guest import Failure, expect

# siw loses data that a client sends before siw has taken over the socket (docs/interop.md).
PATIENCE = {"first_fpdu_delay_ms": "100"}
# A server that sends first and follows RFC 5044, 7.1.3 waits for an FPDU from the client: it must
# request peer-to-peer mode (RFC 6581), which siw supports only by a module parameter. siw's own
# server does not wait.
SPEAKS_FIRST = {"write-lat"}
SIW_PEER_TO_PEER = "peer_to_peer=1"
ERRORS = {"bad-write", "bad-read", "invalidate"}  # one side is denied access: Terminate
FNV_OFFSET, FNV_PRIME, FNV_MASK = 0xcbf29ce484222325, 0x100000001b3, 0xffffffffffffffff


def fnv1a(moved):
    h = FNV_OFFSET
    for byte in moved:
        h = (h ^ byte) * FNV_PRIME & FNV_MASK
    return f"{h:016x}"


class Case:
    """`what` is the protocol between `server` and `client` (ends.py).

    settings    of urnic, either end (-o)
    fast        is urnic's own TCP FAST at the end?
    misaligned  siw sends FPDU and CRC in segments of their own (docs/interop.md)
    crc, lossy  as wire_judge.Rules
    siw, mtu    parameters of the guest's siw ("" for the pristine one) and its interface's MTU
    """
    next_port = 7200

    def __init__(self, what, server, client, *, size=16384, count=10, private=0, settings=(), fast=True,
                 misaligned=False, crc=True, lossy=False, siw="", mtu=1500, note="", checks=None):
        self.what, self.server, self.client = what, server, client
        self.size, self.count, self.private = size, count, private
        self.settings, self.fast, self.misaligned = dict(settings), fast, misaligned
        if what in SPEAKS_FIRST and client.is_siw and not server.is_siw:
            siw = siw or SIW_PEER_TO_PEER
        self.crc, self.lossy, self.siw, self.mtu = crc, lossy, siw, mtu
        self.note, self.checks = note, checks
        self.said, self.judgement, self.moved, self.refused = "", None, 0, False
        self.placed_again, self.runs = [], []
        self.take_port()

    def take_port(self):
        Case.next_port += 1  # a separate port: TIME-WAIT of the previous case does not matter
        self.port = Case.next_port

    def once_more(self):
        """A fresh copy of the case, for another try."""
        again = copy.copy(self)
        again.said, again.judgement, again.moved, again.refused = "", None, 0, False
        again.placed_again, again.runs = [], []
        again.take_port()
        return again

    @property
    def name(self):
        label = f"{self.what} {self.size}" if self.what in PERFTEST or self.what == "rping" else self.what
        return f"{label}: {self.client.name} to {self.server.name}" + (f", {self.note}" if self.note else "")

    # ---- running -----------------------------------------------------------------------------------

    def run(self, capture):
        for end in (self.server, self.client):
            if not end.is_siw:
                end.settings = {**self.settings, **capture.settings(end)}
                if end is self.client and self.server.is_siw:
                    end.settings.update(PATIENCE)
        server = self.server.serve(self)
        client = self.client.connect(self, self.server.address)
        complaint = ""
        results = {}
        for role, run in (("client", client), ("server", server)):
            try:
                results[role] = run.result()
            except Failure as e:  # report both; the other end often knows the reason
                complaint += ("; " if complaint else "") + f"{role}: {e}"
        if complaint:
            raise Failure(complaint)
        return results

    def check(self, results):
        """Checks the results of both ends."""
        for role, end in (("server", self.server), ("client", self.client)):
            result = results[role]
            if end.is_siw:
                self.check_siw(role, result)
            else:
                self.check_urnic(role, end, result)
        if self.checks:
            self.checks(results)

    def check_siw(self, role, output):
        if self.what == "rping":
            check_rping_output(output, "ping data" if role == "client" else "server ping data",
                               self.count, self.size)
        elif self.what in PERFTEST:
            rate = perftest_rate(output, self.size, self.count)
            self.said += f" {rate:.1f} " + ("us" if self.what == "write-lat" else "MB/s")

    def check_urnic(self, role, end, counters):
        if self.what != "reject":
            expect(counters["crc"] == self.crc, f"CRC is {'on' if counters['crc'] else 'off'} at our {role}")
            fast = self.fast and self.crc and end.name == "own"
            if self.what not in ERRORS and not (self.misaligned and counters["downgrades"]):
                expect(counters["fast"] == fast, f"our {role} ended "
                       f"{'FAST' if counters['fast'] else 'SLOW'} ({counters['slow_reason']})")
        if counters["recovery_attempts"] or counters["downgrades"]:
            self.refused = True
            self.said += (f" refused {counters['recovery_attempts']}, "
                          f"downgrades {counters['downgrades']}")
        moved = self.count * self.size
        sent, received = ("sent", "received") if role == "client" else ("received", "sent")
        want = {}
        if self.what == "rping":  # the server Reads from the client and Writes to it
            want = {f"read_response_bytes_{sent}": moved, f"write_bytes_{received}": moved}
        elif self.what == "write":
            want = {f"write_bytes_{sent}": moved}
        elif self.what == "read":
            want = {f"read_response_bytes_{received}": moved}
        elif self.what == "send":
            want = {f"sends_{sent}": self.count}
        elif self.what == "write-lat":
            want = {"write_bytes_sent": moved, "write_bytes_received": moved}
        elif self.what == "echo":
            want = {"sends_sent": self.count, "sends_received": self.count}
        elif self.what in ERRORS:
            # The active side is refused: the client, except that the server uses an invalidated
            # STag.
            actor = "server" if self.what == "invalidate" else "client"
            name = "terminates_received" if role == actor else "terminates_sent"
            want = {name: 1}
        for name, value in want.items():
            again = counters[name] - value
            if counters["downgrades"] and again > 0 and name.endswith("_bytes_received"):
                sender = self.server if role == "client" else self.client
                self.placed_again.append((name, again, counters["mss"], sender.address))  # compared with the capture later
                self.said += f", {again} bytes counted again"
                continue
            expect(again == 0, f"{name} is {counters[name]} at our {role}, not {value}")

    def check_memory(self, results, capture):
        """Compares the receiver's memory with the sender's, or with the data on the wire."""
        if self.what not in ("write", "read"):
            return
        sink, source = ("server", "client") if self.what == "write" else ("client", "server")
        ends = {"server": self.server, "client": self.client}
        if ends[sink].is_siw:
            return
        if not ends[source].is_siw:
            expect(results[sink]["fnv1a"] == results[source]["fnv1a"], "memory differs between the ends")
        elif capture.path and not self.lossy:
            painted = wire_judge.tagged_bytes(capture.path, ends[source].address,
                                              "0x00" if self.what == "write" else "0x02")
            expect(len(painted) == self.size, f"the capture holds {len(painted)} bytes of a message")
            expect(fnv1a(painted) == results[sink]["fnv1a"], "memory differs from what is on the wire")

    def check_refusals(self):
        """siw splits FPDUs if it uses zero copy, or if its TCP has SACK blocks to send (docs/interop.md)."""
        if not self.refused or self.misaligned or self.lossy:
            return
        theirs = [e.address for e in (self.server, self.client) if e.is_siw]
        expect(self.judgement and any(self.judgement.sacks_with_data[a] for a in theirs),
               "we refused segments of a peer that keeps alignment")

    def check_placed_again(self):
        """A downgrade forgets data placed out of order (R-45, R-49). That data arrives and is counted a second time,
        so the surplus never exceeds the retransmitted data."""
        for name, again, mss, sender in self.placed_again:
            sent_again = self.judgement.retransmits[sender] if self.judgement else 0
            expect(again <= sent_again * mss,
                   f"{name} is {again} bytes too many for {sent_again} retransmitted segments")

    def rules(self):
        return wire_judge.Rules(
            linux=tuple(e.address for e in (self.server, self.client) if e.name != "own"),
            crc=self.crc, lossy=self.lossy, terminates=self.what in ERRORS, rejects=self.what == "reject",
            ends_badly=self.what in ERRORS or self.what in ("abort", "reject"))

    def carry_out(self, capture):
        """Runs the case and returns the failure, or an empty text. `capture`: Capture or a subclass."""
        failure = ""
        guests = {e.guest for e in (self.server, self.client) if e.is_siw}
        try:
            for guest in guests:
                guest.become(self.siw, self.mtu)
            capture.start()
            results = self.run(capture)
            capture.stop()
            self.moved = self.count * self.size
            self.check(results)
            self.check_memory(results, capture)
        except (Failure, RuntimeError) as e:
            failure = str(e)
        for run in self.runs:
            run.stop()
        capture.stop()
        try:
            if capture.path:
                self.judgement = wire_judge.judge(capture.path, self.rules())
                wrong = capture.tolerate(self.judgement.wrong)
                if wrong and not failure:
                    failure = "wire: " + "; ".join(wrong[:5])
            self.check_refusals()
            self.check_placed_again()
        except (Failure, RuntimeError, OSError) as e:
            failure = failure or str(e)
        for guest in guests:
            try:
                complaints = guest.complaints()
            except Failure as e:
                raise Failure(f"{self.name}: {failure}; after that {e}; its console says "
                              f"{guest.console()}") from e
            if complaints and not failure and self.what not in ERRORS | {"abort", "reject"}:
                failure = "the guest's kernel says: " + " | ".join(complaints[-3:])
        return failure


class Capture:
    """No capture."""

    path = ""

    def start(self):
        pass

    def stop(self):
        pass

    def settings(self, end):
        """Additional settings of a urnic end."""
        del end
        return {}

    def tolerate(self, wrong):
        return wrong


class OwnCapture(Capture):
    """Written by `end` itself, a urnic with its own TCP."""

    def __init__(self, path, end):
        self.path, self.end = path, end

    def settings(self, end):
        return {"capture": self.path} if end is self.end else {}


class DumpcapCapture(Capture):
    """By dumpcap on an interface: all traffic; `only`: a capture filter."""

    def __init__(self, path, interface, only=""):
        self.path, self.interface, self.only, self.dumpcap = path, interface, only, None

    def start(self):
        self.dumpcap = subprocess.Popen(
            ["dumpcap", "-q", "-i", self.interface, "-w", self.path, "-f", self.only], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            if os.path.exists(self.path) and os.path.getsize(self.path):
                break
            time.sleep(0.05)

    def stop(self):
        if self.dumpcap is None:
            return
        time.sleep(0.5)  # the last frames are still being written to the file
        self.dumpcap.send_signal(signal.SIGINT)
        self.dumpcap.wait(10)
        self.dumpcap = None

    def tolerate(self, wrong):
        """Ignores peculiarities of a kernel at either end: its retransmissions need no visible cause, and it
        writes a checksum of zero as 0xffff, which also verifies."""
        odd = {w.split(":")[0] for w in wrong if "0xffff instead of 0x0000" in w}
        return [w for w in wrong if "without cause" not in w and w.split(":")[0] not in odd]


def file_name(case):
    return re.sub(r"[^\w]+", "-", case.name) + ".pcapng"
