"""V1, V2, V3, V6 to V9 of bench/run: unmodified programs under `urnic run` over the kernel's TCP on loopback, beside
iperf3, `urnic perf`, ping-pongs and redis over the kernel's TCP; and P19, `urnic perf` beside iperf3 on a busy machine."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import states

START = 0.7  # seconds for a server to start listening
PORT = 20000 + os.getpid() % 10000  # of all servers, used one after another


# `m` is bench/run itself: run(*command), program(o, name), find(tree, key). `r` is its report, `o` its options.

def under_urnic(m, o, words):
    """The command of a program with the drop-in libraries, independent of the settings of this machine."""
    return [m.program(o, "urnic"), "run", "--port", "tcp", "--crc", "on", "--", *words]


def needs(*tools):
    for tool in tools:
        if not shutil.which(tool):
            sys.exit(f"bench/run: {tool} is not installed")


def both(server, client, cpus):
    """The client's output; with `cpus` each end has its own core, or one of the two that it names."""
    on = [["taskset", "-c", str(cpu)] for cpu in (cpus if isinstance(cpus, tuple) else (0, 1))] if cpus else [[], []]
    peer = subprocess.Popen(on[0] + server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        time.sleep(START)
        done = subprocess.run(on[1] + client, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            sys.exit(f"bench/run: {' '.join(client)}: {(done.stderr or done.stdout).strip()[-200:]}")
        return done.stdout
    finally:
        if peer.poll() is None:
            peer.terminate()
        peer.wait()


def perftest(m, o, words, cpus):
    """The figures of perftest's last row."""
    command = under_urnic(m, o, [*words, "-p", str(PORT)])
    rows = re.findall(r"^ *\d+ +\d+ +[\d. \t]+$", both(command, command + ["127.0.0.1"], cpus), re.M)
    if not rows:
        sys.exit(f"bench/run: {' '.join(words)} printed no figures")
    return [float(v) for v in rows[-1].split()]


def waiting_latency(m, o, rounds, cpus=False):
    """Half a round trip of a program that waits in ibv_get_cq_event, typical; nothing pinned, or its ends on `cpus`."""
    needs("ib_send_lat")
    return perftest(m, o, ["ib_send_lat", "-R", "-e", "-s", "8", "-n", str(rounds)], cpus)[4]


def iperf(seconds, cpus, length="64K"):
    """Bits per second."""
    out = both(["iperf3", "-s", "-1", "-p", str(PORT)],
               ["iperf3", "-c", "127.0.0.1", "-p", str(PORT), "-t", str(seconds), "-l", length, "-J"], cpus)
    return json.loads(out)["end"]["sum_received"]["bits_per_second"]


def bandwidth(m, o, op, seconds, cpus):
    """Gb/s."""
    return perftest(m, o, [f"ib_{op}_bw", "-R", "-s", "65536", "-D", str(seconds), "--report_gbits"], cpus)[3]


def own_perf(m, o, op, seconds, cpus=True, port="tcp", server="127.0.0.1"):
    """Gb/s."""
    urnic = m.program(o, "urnic")
    common = ["--port", port, "--stat", "off", "--crc", "on"]
    out = both([urnic, "perf", *common], [urnic, "perf", server, "--json", *common, "--op", op, "--test", "bw",
                                          "-s", "65536", "-D", f"{seconds}s"], cpus)
    return m.find(json.loads(out[out.index("{"):]), "bw_average_gbit_per_second")


@contextlib.contextmanager
def busy_loops(n):
    """Other processes that compute continuously meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) for _ in range(n)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def v1(m, r, o):
    needs("ib_write_bw", "iperf3", "taskset")
    seconds = max(1, round(o.seconds or 3))
    ops, kernel = {"write": 1.0, "send": 0.9, "read": 0.9}, "iperf3 -l 64K, pinned"

    def once():
        got = {kernel: iperf(seconds, True) * 1e-9}
        for op in ops:
            got[f"ib_{op}_bw -R, 64 KiB, pinned"] = bandwidth(m, o, op, seconds, True)
            got[f"urnic perf --op {op}, 64 KiB, pinned"] = own_perf(m, o, op, seconds)
        return got

    def judge(values):
        got = r.medians(values, "Gb/s")
        for op, target in ops.items():
            mine = got[f"ib_{op}_bw -R, 64 KiB, pinned"]
            r.ratio(f"ib_{op}_bw / iperf3, pinned", mine / got[kernel], target)
            r.ratio(f"ib_{op}_bw / urnic perf, pinned", mine / got[f"urnic perf --op {op}, 64 KiB, pinned"], 0.95)

    states.repeat(m, r, o, o.reps or 5, once, judge)


def v2(m, r, o):
    needs("ib_write_bw", "iperf3")
    seconds = max(1, round(o.seconds or 3))
    ops, kernel = ("write", "send", "read"), "iperf3 -l 64K"

    def once():
        got = {kernel: iperf(seconds, False) * 1e-9}
        return got | {f"ib_{op}_bw -R, 64 KiB": bandwidth(m, o, op, seconds, False) for op in ops}

    def judge(values):
        got = r.medians(values, "Gb/s")
        for op in ops:
            r.ratio(f"ib_{op}_bw / iperf3, nothing pinned", got[f"ib_{op}_bw -R, 64 KiB"] / got[kernel], 0.8)

    states.repeat(m, r, o, o.reps or 5, once, judge)


def v3(m, r, o):
    needs("ib_send_lat", "taskset")
    rounds = str(int((o.seconds or 1) * 20000))

    def once():
        row = perftest(m, o, ["ib_send_lat", "-R", "-s", "8", "-n", rounds], True)
        p50, p99 = (float(v) for v in m.run(m.program(o, "bench_tcp_pingpong"), rounds).split()[:2])
        return {"ib_send_lat -R, 8 bytes, typical": row[4], "ib_send_lat -R, 8 bytes, p99": row[7],
                "kernel TCP, both spin on recv, p50": p50, "kernel TCP, both spin on recv, p99": p99}

    def judge(values):
        typical, tail, kernel, kernel_tail = r.medians(values, "us").values()
        r.ratio("ib_send_lat typical / kernel TCP", typical / kernel, 1.4, at_most=True)
        r.ratio("ib_send_lat p99 / kernel TCP", tail / kernel_tail, 3, at_most=True)

    states.repeat(m, r, o, o.reps or 9, once, judge)


def v6(m, r, o):
    needs("ib_write_bw", "iperf3", "taskset")
    seconds = max(1, round(o.seconds or 2))
    words = ["ib_write_bw", "-R", "-s", "64", "-D", str(seconds)]

    def once():
        return {"ib_write_bw -R -s 64": perftest(m, o, words, True)[4],
                "ib_write_bw -R -s 64 -l 32": perftest(m, o, words + ["-l", "32"], True)[4],
                "iperf3 -l 64, sends": iperf(seconds, True, "64") / 512 * 1e-6}

    def judge(values):
        one, many, kernel = r.medians(values, "M/s").values()
        r.ratio("64-byte Writes one by one / sends of iperf3", one / kernel, 1)
        r.ratio("64-byte Writes in lists of 32 / sends of iperf3", many / kernel, 8)

    states.repeat(m, r, o, o.reps or 5, once, judge)


def v7(m, r, o):
    calls, over_tcp = [[], [], [], []], os.environ | {"URNIC_PORT": "tcp"}
    for _ in range(o.reps or 5):
        for values, value in zip(calls, m.run(m.program(o, "bench_verbs_calls"), env=over_tcp).split(), strict=True):
            values.append(float(value))
    empty = r.figure("empty ibv_poll_cq, over kernel TCP", calls[0], "ns")
    clock = r.figure("clock_gettime", calls[1], "ns")
    one = r.figure("register and deregister 1 GiB, 1 queue pair", calls[2], "us")
    many = r.figure("register and deregister 1 GiB, 1000 queue pairs", calls[3], "us")
    r.ratio("empty ibv_poll_cq / clock_gettime", empty / clock, 4, at_most=True)
    r.ratio("register and deregister, 1 queue pair [us]", one, 0.5, at_most=True)
    r.ratio("register and deregister, 1000 queue pairs [us]", many, 0.5, at_most=True)


def seconds_of_cpu(group):
    """The CPU time of all processes in a process group."""
    used = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                words = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[2]) == group:
            used += int(words[11]) + int(words[12])
    return used / os.sysconf("SC_CLK_TCK")


def rping(command, rounds):
    """Seconds of a whole client run, from start to end."""
    server = subprocess.Popen([*command, "-C", str(rounds), "-s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(START)
        begin = time.monotonic()
        done = subprocess.run([*command, "-C", str(rounds), "-c", "-a", "127.0.0.1"], capture_output=True, text=True,
                              timeout=120, check=False)
        took = time.monotonic() - begin
        if done.returncode != 0 or server.wait(10) != 0:
            sys.exit(f"bench/run: rping: {(done.stderr or done.stdout).strip()[-200:] or 'the server failed'}")
        return took
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()


def idle_share(command, seconds):
    """The percentage of a core that a server without clients uses."""
    server = subprocess.Popen([*command, "-s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        time.sleep(START)
        before = seconds_of_cpu(server.pid)
        time.sleep(seconds)
        used = seconds_of_cpu(server.pid) - before
        if server.poll() is not None:
            sys.exit("bench/run: rping -s ended")
        return 100 * used / seconds
    finally:
        server.kill()
        server.wait()


def v8(m, r, o):
    needs("rping", "taskset")
    command = under_urnic(m, o, ["rping", "-p", str(PORT)])
    one_core = ["taskset", "-c", "0"]
    mine, kernel = "rping -C 2000, whole program", "12000 half round trips of kernel TCP, blocking"

    def once():
        # 6000 rounds are 12000 half round trips: six messages for each of rping's 2000 rounds.
        on_one = m.run(*one_core, m.program(o, "bench_wake"), "tcp-event", "--rounds", "6000")
        return {mine: rping(command, 2000), "rping -C 1, whole program": rping(command, 1),
                kernel: 12000 * m.wake(o, 6000, "tcp-event")[2] * 1e-6,
                "rping -C 2000, all on one core": rping(one_core + command, 2000),
                "kernel TCP, blocking, all on one core": 12000 * float(on_one.split()[2]) * 1e-6}

    def judge(values):
        got = r.medians(values, "s")
        r.ratio("rping -C 2000 / kernel TCP", got[mine] / got[kernel], 3, at_most=True)

    states.repeat(m, r, o, o.reps or 5, once, judge)
    share = idle_share(command, 5)
    r.figure("an idle rping -s", [share], "% of a core")
    r.ratio("an idle server [% of a core]", share, 1, at_most=True)


def redis_sets(prefix, port, pipelined, requests):
    """Thousand SETs a second of 50 connections."""
    with tempfile.TemporaryDirectory(prefix="urnic-v9-") as folder:
        server = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        client = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "-t", "set", "-n", str(requests), "-c", "50",
                  "-P", str(pipelined), "--csv"]
        row = both(prefix + server, prefix + client, False).strip().splitlines()[-1]
    return float(row.split(",")[1].strip('"')) * 1e-3


def v9(m, r, o):
    """redis, whose sockets are rsockets."""
    needs("redis-server", "redis-benchmark")
    sockets = [m.program(o, "urnic"), "run", "--sockets", "--port", "tcp", "--crc", "on", "--"]
    targets, requests = {1: 0.6, 16: 1.0}, int((o.seconds or 1) * 50000)

    def once():
        return {f"{side}, {pipelined} in turn": redis_sets(prefix, PORT, pipelined, requests * min(pipelined, 4))
                for pipelined in targets for side, prefix in (("rsockets", sockets), ("kernel TCP", []))}

    def judge(values):
        got = r.medians(values, "thousand SETs/s")
        for pipelined, target in targets.items():
            mine, kernel = (got[f"{side}, {pipelined} in turn"] for side in ("rsockets", "kernel TCP"))
            r.ratio(f"redis SET, {pipelined} in turn: rsockets / kernel TCP", mine / kernel, target)

    states.repeat(m, r, o, o.reps or 5, once, judge)


def beside_loops(m, r, o, loops):
    seconds, beside = max(1, round(o.seconds or 2)), f"{loops} busy loops"

    def once():
        # The loops run only meanwhile: beside them the line would show how the cores are shared.
        with busy_loops(loops), tempfile.TemporaryDirectory(prefix="urnic-p19-") as folder:
            wire = f"memif:socket={folder}/wire.sock,mtu=9000"
            return {f"{beside}: urnic perf over memif": own_perf(m, o, "write", seconds, False, wire, "10.77.0.1"),
                    f"{beside}: urnic perf over the kernel's TCP": own_perf(m, o, "write", seconds, False),
                    f"{beside}: iperf3 -l 64K": iperf(seconds, False) * 1e-9}

    def judge(values):
        memif, tcp, kernel = r.medians(values, "Gb/s").values()
        r.ratio(f"{beside}: memif / kernel TCP transport", memif / tcp, 1)
        r.ratio(f"{beside}: kernel TCP transport / iperf3", tcp / kernel, 0.8)

    states.repeat(m, r, o, o.reps or 5, once, judge)


def p19(m, r, o):
    """A busy machine: both transports compared with iperf3, nothing pinned."""
    needs("iperf3")
    for loops in (0, 1, 2, 4):
        beside_loops(m, r, o, loops)


MEASURES = {"P19": p19, "V1": v1, "V2": v2, "V3": v3, "V6": v6, "V7": v7, "V8": v8, "V9": v9}
