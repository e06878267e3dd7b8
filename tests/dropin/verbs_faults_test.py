#!/usr/bin/env python3
"""verbs_faults_test.py URNIC [KIND...] - every fault of `urnic run --verbs-faults`, injected into unmodified programs.

A program must end by itself, not by a signal, and urnic may say nothing but which faults it injected. Prints how each
program ended, as the table of docs/fault.md: its exit code, or - where it never does what the fault is about.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

# The end that the fault is injected into is the client, except for what only a server does.
OF_SERVERS = ("rdma_bind_addr", "rdma_listen", "rdma_accept")
# Kind: at which place it is injected, if not at the first.
PLACES = {"send_wr": 3, "recv_wr": 2, "ibv_post_send": 2, "ibv_post_recv": 2, "ibv_poll_cq": 3, "cq_full": 2,
          "port_err": 3, "gid_change": 3, "device_fatal": 3, "qp_fatal": 3, "qp_req_err": 3, "qp_access_err": 3,
          "srq_limit": 2}
BY_CHANCE = {"late": "late=0.2:5ms", "split": "split=0.5"}
# Server and client. They connect by rdma_cm, except ib_write_bw and ibv_srq_pingpong, which exchange numbers.
PROGRAMS = {
    "rping": ("rping -s -a 127.0.0.1 -C 20", "rping -c -a 127.0.0.1 -C 20"),
    "ib_send_bw -R": ("ib_send_bw -R -F -n 200", "ib_send_bw -R -F -n 200 127.0.0.1"),
    "ib_write_bw": ("ib_write_bw -F -n 200", "ib_write_bw -F -n 200 127.0.0.1"),
    "ibv_srq_pingpong": ("ibv_srq_pingpong -g 0 -n 100", "ibv_srq_pingpong -g 0 -n 100 127.0.0.1"),
}
# Programs that wait for ever after the call has failed, over any device: rping joins the thread that waits for
# completions before it destroys their queue, and waits for that thread after it has ended.
WAIT_FOR_EVER = {("rping", "rdma_connect"), ("rping", "ibv_req_notify_cq"), ("rping", "ibv_get_cq_event")}
MOST_SECONDS = 15


SETTINGS = ["--identity", "ib-like", "--port", "tcp:bind=127.0.0.1"]


def kinds():
    header = os.path.join(os.path.dirname(__file__), "../../src/fault/verbs_plan.h")
    with open(header, encoding="utf-8") as f:
        body = re.search(r"enum class VerbsKind[^{]*{(.*?)  Count", f.read(), re.S).group(1)
    return re.findall(r"^  (\w+),", body, re.M)


def start(command, out):
    return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)


def ended(process, seconds):
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


class Run:
    """One fault in one end of a program."""

    def __init__(self, urnic, program, kind, folder):
        server, client = (words.split() for words in PROGRAMS[program])
        plan = BY_CHANCE.get(kind, f"at={kind}:{PLACES.get(kind, 1)}")
        self.log = os.path.join(folder, "log")
        open(self.log, "w").close()
        faulty = [urnic, "run", *SETTINGS, "--verbs-faults", plan, "--verbs-faults-log", self.log, "--"]
        plain = [urnic, "run", *SETTINGS, "--"]
        at_server = kind in OF_SERVERS
        files = [open(os.path.join(folder, name), "w+", encoding="utf-8", errors="replace") for name in ("server", "client")]
        first = start((faulty if at_server else plain) + server, files[0])
        time.sleep(0.4)
        if first.poll() is None:
            second = start((plain if at_server else faulty) + client, files[1])
            code = ended(second, MOST_SECONDS) if not at_server else None
        else:
            second, code = None, None
        if at_server:
            code = ended(first, MOST_SECONDS)
            if second is not None:
                ended(second, 2)
        else:
            ended(first, 2)
        self.code = code
        with open(self.log, encoding="utf-8") as f:
            self.injected = len(f.readlines())
        self.said = ""
        for f in files:
            f.seek(0)
            self.said += f.read()
            f.close()

    def wrong(self, program, kind):
        if self.code is None:
            return None if (program, kind) in WAIT_FOR_EVER else f"does not end within {MOST_SECONDS} s"
        if self.code < 0:
            return f"ended by signal {-self.code}"
        lines = [line for line in self.said.split("\n") if line.startswith("urnic")]
        other = [line for line in lines if "verbs faults are injected" not in line and "completion queue overrun" not in line]
        if other:
            return f"urnic says: {other[0]}"
        if kind in BY_CHANCE and self.code != 0:
            return f"exit {self.code}, where nothing is lost"
        return None

    def cell(self):
        if self.injected == 0:
            return "-"
        return "waits" if self.code is None else str(self.code)


def main():
    urnic = os.path.realpath(sys.argv[1])
    programs = [p for p in PROGRAMS if shutil.which(PROGRAMS[p][0].split()[0])]
    for p in sorted(set(PROGRAMS) - set(programs)):
        print(f"skipped: {p} is not installed")
    if not programs:
        return 77
    failed = 0
    print("| fault | " + " | ".join(programs) + " |\n|---" * 1 + "|---" * len(programs) + "|")
    for kind in sys.argv[2:] or kinds():
        cells = []
        for program in programs:
            with tempfile.TemporaryDirectory() as folder:
                run = Run(urnic, program, kind, folder)
            wrong = run.wrong(program, kind)
            if wrong:
                failed += 1
                print(f"FAILED: {program}, {kind}: {wrong}\n{run.said}", file=sys.stderr)
            cells.append(run.cell())
        print(f"| `{kind}` | " + " | ".join(cells) + " |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
