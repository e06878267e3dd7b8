"""tools/programs --faults: kills one end of a row, stops it for good, or stops it for a second, while data is in flight, and checks
the other end.

The other end must end within the bound, not by a signal, and leave nothing. A program that never ends on any device
(programs_faults_known.py) must have been notified: its connections are gone, and it can be killed. After a stop of one second both ends
must finish as usual."""
import json
import os
import re
import signal
import subprocess
import sys
import time

from programs_faults_known import known
from programs_run import READY, Outcome, judge, prepare_run, wait_for
from programs_ends import listening

KINDS = ("kill", "stop", "pause")
SIDES = ("server", "client")
UNDER_WAY = 20_000  # bytes that a row has moved before the fault
PATIENCE = 6  # seconds for them to move
HELD = 1  # seconds that a pause takes
# A silent peer is probed after 1 s (docs/config.md), so that a whole run fits into an evening.
SETTINGS = {"URNIC_KEEPALIVE_S": "1"}
CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL}
# Seconds within which the other end must have ended, by transport: (killed, stopped). The kernel's TCP reports a death at once, and gives
# up a stopped peer that takes no data after 1 + 3 s; own TCP probes after 1 s and gives up 1 s later; RoCE probes likewise, and repeats
# a request 7 times, 2.1 s apart (rdma_cm). Each program also has a second to clean up.
BOUNDS = {"tcp": (5, 10), "memif": (8, 8), "roce": (24, 24)}


def bound(row, column, kind):
    wire = "roce" if column.transport == "roce" or "as RoCE" in row.name else "memif" if column.name == "memif" or "memif" in row.name or "lab" in row.name else "tcp"
    return BOUNDS[wire][0 if kind == "kill" else 1]


PERFTEST = r"ib_(write|read|send|atomic)_(bw|lat)"


def longer(row, seconds):
    """Changes `row` so that it runs for at least so many seconds."""
    def change(text):
        if re.match(PERFTEST, text):
            text = re.sub(r" -[nD] \d+", "", text)
            return text + (" -n 20000" if " -a" in text else f" -n {seconds * 10_000}" if " -e" in text else f" -D {seconds}")
        for program, pattern, put in (
                ("rping", r"-C \d+", f"-C {seconds * 1000}"), ("qperf", r"-t \d+", f"-t {seconds}"), ("cmtime", r"-c \d+", f"-c {min(seconds * 300, 3000)}"),
                ("iscsi-perf", r"-t \d+", f"-t {seconds}"), ("ucx_perftest", r"-n \d+", f"-n {seconds * 50_000}"),
                ("r(io)?stream", r"-C \d+", f"-C {seconds * seconds}"), ("r(io)?stream", r"-I \d+", f"-I {seconds * 10}")):
            if re.match(program, text):
                text = re.sub(pattern, put, text)
        if re.match("ibv_.*_pingpong", text):
            return re.sub(r" -n \d+", "", text) + f" -n {seconds * 30_000}"
        if re.match("ucmatose|udaddy", text):
            text = re.sub(r" -[cCS] \d+", "", text)
            return text + (" -c 20 -C 1000 -S 1000" if text.startswith("udaddy") else " -c 20 -C 2000 -S 65536")
        text = re.sub("fi_pingpong", f"fi_pingpong -I {seconds * 10_000}", text)
        text = re.sub("curl -sS", f"curl -sS --limit-rate {64 // min(seconds, 32)}M", text)
        return re.sub(r"(iperf3 -c .*-t) \d+", rf"\1 {seconds}", text)

    def of(words):
        if words is None:
            return None
        if words[0] == "sh":
            return words[:2] + [change(words[2])]
        text = change(" ".join(words))
        return text.split() if "'" not in text else words

    # perftest and pingpongs take the peer's address last, but accept options after it.
    row.client, row.server = of(row.client), of(row.server)
    row.files = {name: text.replace("size=64m", f"size={seconds * 256}m") for name, text in row.files.items()}
    row.prepare = tuple(c.replace("dd if=/dev/urandom of=in bs=1M count=64", f"truncate -s {32 * seconds}M in") if "rcopy" in row.name else c
                        for c in row.prepare)


STAT = 20  # seconds for `urnic stat`


class Watch:
    """Reads `urnic stat` for the programs of a row."""

    def __init__(self, urnic):
        self.urnic = urnic

    def of(self, *ends):
        done = subprocess.run([self.urnic, "stat", "--json"], capture_output=True, text=True, timeout=STAT)
        try:
            processes = json.loads(done.stdout)
        except ValueError:
            return []
        members = set().union(*(tree(e) for e in ends))
        return [p for p in processes if p["pid"] in members]

    def bytes(self, *ends):
        try:
            return sum(p["port"]["rx_bytes"] + p["port"]["tx_bytes"] for p in self.of(*ends))
        except subprocess.TimeoutExpired:  # thousands of connections, on a busy machine
            return 0

    def connected(self, end):
        """Number of connections that the end considers established."""
        try:
            return sum(c["state"].lower() in ("established", "rts") for p in self.of(end) for c in p["connections"])
        except subprocess.TimeoutExpired:
            sys.exit(f"urnic stat took more than {STAT} s")


def parents():
    """{process: its parent} of all processes in our namespace."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                    state, parent = f.read().rpartition(")")[2].split()[:2]
                if state != "Z":
                    found[int(name)] = int(parent)
            except OSError:
                pass
    return found


def tree(end):
    """The processes of an end, also fio's jobs, which leave its session."""
    members, above = {end.process.pid}, parents()
    while True:
        more = {p for p, parent in above.items() if parent in members} - members
        if not more:
            return members
        members |= more


def strike(end, with_signal):
    for pid in tree(end):
        try:
            os.kill(pid, with_signal)
        except ProcessLookupError:
            pass


def wait_under_way(watch, server, clients, least):
    """Waits until data is in flight. Returns "under way", "ended" or "at rest"."""
    until = time.monotonic() + PATIENCE
    before = 0
    while time.monotonic() < until:
        if any(c.poll() is not None for c in clients) or server.poll() is not None:
            return "ended"
        now = watch.bytes(server, *clients)
        if now > least and now > before > 0:
            return "under way"
        before = now
        time.sleep(0.02)
    return "at rest"


def ports_left(column):
    """Ports still listening after all ends are gone; a killed process takes a moment to disappear."""
    until = time.monotonic() + 2
    while True:
        left = set().union(*(listening(pid) for pid in column.namespaces()))
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.02)


def wait_all(ends, seconds):
    until = time.monotonic() + seconds
    return [e.wait(until) for e in ends]


# These finish too soon: their server is stopped beforehand, so that the fault comes while they connect.
QUICK = r"rdma_client|rdma_xclient|iscsi-(inq|ls|readcap)"


class Case:
    """One row, one fault, one side. Called like programs_run.run_ends."""

    def __init__(self, kind, side):
        self.kind, self.side = kind, side

    def __call__(self, row, column, urnic, folder):
        os.environ.update(SETTINGS)
        longer(row, 4 if self.kind == "pause" else 60)
        row.seconds = max(row.seconds, 120)
        watch = Watch(urnic)
        run = prepare_run(row, column, urnic, folder)
        begin = time.monotonic()
        server = column.server(row, run, folder)
        if not wait_for(row, column, server, begin + READY):
            server.end(True)
            return Outcome(False, f"the server did not listen: {server.text('err').strip()[-120:]}")
        clients = []
        try:
            wrong = column.prepare(row, folder)
            if wrong:
                return Outcome(False, wrong)
            quick = re.search(QUICK, row.name)
            if quick:
                strike(server, signal.SIGSTOP)
            for i in range(row.clients):
                clients.append(column.client(row, run, folder, i, f"client{i}"))
                if i + 1 < row.clients:
                    time.sleep(0.05)
            if quick:
                time.sleep(1)
            said = self.struck(row, column, watch, server, clients, quick)
        finally:
            for e in (*clients, server):
                strike(e, signal.SIGKILL)
                e.end(True)
        against = column.finish(row)
        left = ports_left(column)
        if said.ok and (against or left):
            said = Outcome(False, against or f"ports left: {sorted(left)}")
        return said

    def struck(self, row, column, watch, server, clients, quick):
        moment = "connecting" if quick else wait_under_way(watch, server, clients, 0 if self.kind == "pause" else UNDER_WAY)
        if moment == "ended":
            return Outcome(True, "too quick: had ended before")
        victim = server if self.side == "server" else clients[0]
        others = clients if victim is server else [server]
        begin = time.monotonic()
        strike(victim, signal.SIGKILL if self.kind == "kill" else signal.SIGSTOP)
        if quick and victim is not server:
            strike(server, signal.SIGCONT)
        if self.kind == "pause":
            return self.resumed(row, server, clients, victim)
        if victim is not server and row.server_stays:
            return self.served_on(row, column, watch, victim, server, begin)
        return self.survived(row, column, watch, victim, others, begin, moment)

    def resumed(self, row, server, clients, victim):
        time.sleep(HELD)
        strike(victim, signal.SIGCONT)
        ends = [(c, code, False) for c, code in zip(clients, wait_all(clients, row.seconds))]
        if not row.server_stays:
            ends.append((server, server.wait(time.monotonic() + 20), False))
        wrong = judge(row, ends)
        if wrong is None and row.wanted and not re.search(row.wanted, clients[0].text("out")):
            wrong = f"its output lacks '{row.wanted}': {' '.join(clients[0].text('out').split())[-120:]}"
        return Outcome(wrong is None, wrong or "went on to its end")

    def kernel_answers(self, column):
        """True if the kernel of a stopped process acknowledges in its place."""
        return self.kind == "stop" and column.transport == "iwarp" and column.name != "memif"

    def served_on(self, row, column, watch, victim, server, begin):
        """A server of many clients lost one: it must run on without that connection."""
        said = self.without_it(row, watch, server, begin, bound(row, column, self.kind))
        if said is None and self.kernel_answers(column):
            strike(victim, signal.SIGKILL)
            said = self.without_it(row, watch, server, time.monotonic(), bound(row, column, "kill"))
            if said is not None and said.ok:
                said.text = f"waits, because its peer's kernel answers; killed then: {said.text}"
        return said or self.waits(row, column, watch, [server], begin)

    def without_it(self, row, watch, server, begin, allowed):
        """The server's outcome within that time, or None."""
        while time.monotonic() < begin + allowed:
            if server.poll() is not None:
                return self.ended(row, [server], begin, "")
            if watch.connected(server) < row.clients:
                return Outcome(True, f"serves on, without the connection after {time.monotonic() - begin:.1f} s")
            time.sleep(0.1)
        return None

    def survived(self, row, column, watch, victim, others, begin, moment):
        allowed = bound(row, column, self.kind)
        codes = wait_all(others, allowed)
        when = {"under way": "", "connecting": ", while it connected"}.get(moment, ", nothing under way")
        if None not in codes:
            return self.ended(row, others, begin, when)
        said = self.waits(row, column, watch, [o for o, c in zip(others, codes) if c is None], begin)
        if not said.ok and self.kernel_answers(column):
            strike(victim, signal.SIGKILL)
            since = time.monotonic()
            codes = wait_all(others, bound(row, column, "kill"))
            if None not in codes:
                done = self.ended(row, others, since, when)
                return Outcome(done.ok, f"waits, because its peer's kernel answers; killed then: {done.text}")
            said = self.waits(row, column, watch, others, since)
            said.text = f"waits; killed then: {said.text}"
        return said

    def ended(self, row, others, begin, when):
        seconds = time.monotonic() - begin
        for o in others:
            code = o.poll()
            text = o.text("err")
            if code in CRASHES and known(row, "crashes", self):
                return Outcome(True, f"crashes: {known(row, 'crashes', self)}")
            if code in CRASHES:
                return Outcome(False, f"{o.name} crashed: signal {-code}: {text.strip()[-120:]}")
            if "AddressSanitizer" in text or "LeakSanitizer" in text:
                return Outcome(False, f"{o.name}: {text.strip()[-200:]}")
        codes = sorted({o.poll() for o in others})
        return Outcome(True, f"ended after {seconds:.1f} s, exit code {', '.join(map(str, codes))}{when}")

    def waits(self, row, column, watch, others, begin):
        """The program has not ended: checks that it was notified."""
        left = sum(watch.connected(o) for o in others)
        seconds = time.monotonic() - begin
        why = known(row, "waits", self)
        if left == 0:
            return Outcome(bool(why), f"notified within {seconds:.0f} s, and waits: {why}" if why else f"notified within {seconds:.0f} s, but waits")
        why = known(row, "untold", self)
        return Outcome(bool(why), f"waits: {why}" if why else f"after {seconds:.0f} s still {left} connections")
