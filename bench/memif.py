"""P4, P5, P6, P8 of bench/run: two processes over memif, beside the kernel's TCP, UCX and the bare wire."""
import json
import os
import shutil
import subprocess
import time

import states

WARM_UP = 1  # seconds at the beginning of a run that P4 ignores, on every side

# `m` is bench/run itself: run(*command), program(o, name). `r` is its report, `o` its options.


# One namespace for each end. Its content disappears with the processes.
KERNEL = r"""
set -e
ip link set lo up
ip link add v0 mtu {mtu} type veth peer name v1 mtu {mtu}
unshare -n sleep 600 & peer=$!
trap 'kill $peer $server 2>/dev/null || true' EXIT
sleep 0.2
ip link set v1 netns $peer
if [ {offload} = off ]; then
  ethtool -K v0 tso off gso off gro off tx off rx off >/dev/null
  nsenter -t $peer -n ethtool -K v1 tso off gso off gro off tx off rx off >/dev/null
fi
ip addr add 10.98.0.1/24 dev v0; ip link set v0 up
nsenter -t $peer -n sh -c 'ip addr add 10.98.0.2/24 dev v1; ip link set v1 up; ip link set lo up'
taskset -c 0 iperf3 -s -1 >/dev/null & server=$!
sleep 0.3
nsenter -t $peer -n taskset -c 1 iperf3 -c 10.98.0.1 -O {warm_up} -t {seconds} -l 64K -J
"""


def kernel_goodput(mtu, offload, seconds):
    """Gb/s of iperf3 over veth between two namespaces, or the reason why there is none."""
    for tool in ("iperf3", "ethtool", "ip", "unshare", "nsenter", "taskset"):
        if not shutil.which(tool):
            return f"{tool} is not installed (packages.txt, section [test])"
    script = KERNEL.format(mtu=mtu, offload=offload, seconds=max(1, round(seconds)), warm_up=WARM_UP)
    world = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-Urn"]
    done = subprocess.run([*world, "bash", "-c", script], capture_output=True, text=True,
                          timeout=seconds + WARM_UP + 30, check=False)
    try:
        return json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] * 1e-9
    except (ValueError, KeyError):
        return "no network namespaces: " + (done.stderr.strip().splitlines() or ["?"])[-1]


def beside_the_kernel(m, r, o, mtu, of_pipeline, of_kernel):
    seconds, reasons = o.seconds or 1, []
    urnic, pipeline, plain, offloaded = (f"MTU {mtu}: {side}" for side in (
        "urnic, Writes of 64 KiB", "pipeline without protocol", "kernel TCP, offloads off", "kernel TCP, TSO and GRO"))

    def once():
        got = {urnic: float(m.run(m.program(o, "bench_write_bw"), "--mtu", str(mtu), "--seconds", str(seconds),
                                  "--warm-up", str(WARM_UP))),
               pipeline: float(m.run(m.program(o, "bench_pipeline"), str(mtu), str(seconds)))}
        for kind, side in (("off", plain), ("on", offloaded)):
            speed = reasons[0] if reasons else kernel_goodput(mtu, kind, seconds)
            if isinstance(speed, str):
                reasons.append(speed)
            else:
                got[side] = speed
        return got

    def judge(values):
        got = r.medians(values, "Gb/s")
        for side, target in ((plain, of_kernel), (offloaded, 1.0)):
            if of_kernel and side in got:
                r.ratio(f"{urnic} / {side.partition(': ')[2]}", got[urnic] / got[side], target)
        r.ratio(f"{urnic} / pipeline", got[urnic] / got[pipeline], of_pipeline)

    states.repeat(m, r, o, o.reps or 5, once, judge)
    if reasons:
        print(f"  MTU {mtu}: kernel TCP left out: {reasons[0]}")


def p4(m, r, o):
    for mtu, of_pipeline, of_kernel in ((1500, 0.7, 3.5), (9000, 0.8, 2.0), (65000, 0.9, None)):
        beside_the_kernel(m, r, o, mtu, of_pipeline, of_kernel)


def p5(m, r, o):
    rounds = str(int((o.seconds or 1) * 20000))
    names = [f"{side}, half round trip {part}" for side in ("urnic, 8-byte Write", "kernel TCP loopback")
             for part in ("p50", "p99")]
    frames = "urnic, TCP segments sent for each Write"

    def once():
        *ours, sent = m.run(m.program(o, "bench_write_lat"), "--rounds", rounds).split()
        figures = map(float, [*ours, *m.run(m.program(o, "bench_tcp_pingpong"), rounds).split()])
        return dict(zip(names, figures, strict=True)) | {frames: float(sent)}

    def judge(values):
        sent = values.pop(frames)
        u50, u99, k50, k99 = r.medians(values, "us").values()
        r.figure(frames, sent, "")
        r.ratio("p50: urnic / kernel TCP", u50 / k50, 0.3, at_most=True)
        r.ratio("p99: urnic / kernel TCP", u99 / k99, 0.3, at_most=True)

    states.repeat(m, r, o, o.reps or 9, once, judge)


# One FPDU per segment: Ethernet, IPv4, TCP, MPA's length, DDP, 64 bytes, CRC.
FRAME_OF_64 = 14 + 20 + 20 + 2 + 14 + 64 + 2 + 4


def ucx_puts(m, seconds):
    """Millions of 64-byte puts per second by UCX over kernel TCP on loopback, or the reason why there is none."""
    if not shutil.which("ucx_perftest"):
        return "ucx_perftest is not installed (packages.txt, section [test])"
    env = dict(os.environ, UCX_TLS="tcp,self", UCX_NET_DEVICES="lo")
    port = str(20000 + os.getpid() % 20000)
    server = subprocess.Popen(["taskset", "-c", "0", "ucx_perftest", "-p", port], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env=env)
    try:
        time.sleep(0.5)
        out = m.run("taskset", "-c", "1", "ucx_perftest", "-p", port, "-t", "ucp_put_bw", "-s", "64", "-n",
                    str(int(150000 * seconds)), "-f", "127.0.0.1", timeout=120, env=env)
    finally:
        server.terminate()
        server.wait()
    return float(out.split()[-1]) * 1e-6  # last column: messages per second over the whole run


def p6(m, r, o):
    seconds, reasons = str(o.seconds or 1), []
    auto, few = ["--progress", "auto"], ["--signal-every", "8"]
    # Sixteen connections share the depth of 256, so they have a completion for each 8 Writes. The one
    # that they are compared with has as many.
    kinds = {"packed": [], "packed, auto": auto, "alone": ["--alone"], "RoCE": ["--roce"],
             "RoCE, auto": ["--roce", *auto], "1 connection": few, "16 connections": [*few, "--connections", "16"]}
    raw, ucx = f"frames of {FRAME_OF_64} bytes over the same wire", "UCX tcp, ucp_put_bw"

    def writes(more):
        signal = [] if "--signal-every" in more else ["--signal-every", "64"]
        got = json.loads(m.run(m.program(o, "bench_write_bw"), "--json", "--size", "64", "--depth", "256",
                               "--seconds", seconds, *signal, *more))
        return got["messages"] / got["seconds"] * 1e-6

    def once():
        got = {kind: writes(more) for kind, more in kinds.items()}
        got[raw] = float(m.run(m.program(o, "bench_pipeline"), "1500", seconds, str(FRAME_OF_64)))
        puts = reasons[0] if reasons else ucx_puts(m, float(seconds))
        if isinstance(puts, str):
            reasons.append(puts)
        else:
            got[ucx] = puts
        return got

    def judge(values):
        named = {f"64-byte Writes, {key}" if key in kinds else key: some for key, some in values.items()}
        got = dict(zip(values, r.medians(named, "million/s").values(), strict=True))
        packed = got["packed"]
        r.ratio("packed, many FPDUs a segment / frames of one Write", packed / got[raw], 0.3)
        r.ratio("alone, one FPDU a segment / frames of one Write", got["alone"] / got[raw], 0.3)
        r.ratio("RoCE / packed", got["RoCE"] / packed, 0.6)
        r.ratio("packed: --progress auto / poll", got["packed, auto"] / packed, 0.95)
        r.ratio("RoCE: --progress auto / poll", got["RoCE, auto"] / got["RoCE"], 0.95)
        r.ratio("packed [million/s]", packed, 8 if r.line <= 80 else 5)
        spread = (max(values["packed"]) - min(values["packed"])) / packed
        r.ratio("spread of the packed runs", spread, 0.15, at_most=True)
        r.ratio("16 connections / 1 connection, same memory", got["16 connections"] / got["1 connection"], 0.9)
        if ucx in got:
            r.ratio("packed / UCX tcp, ucp_put_bw", packed / got[ucx], 30)

    states.repeat(m, r, o, o.reps or 9, once, judge)
    if reasons:
        print("  UCX left out: " + reasons[0])


def p8(m, r, o):
    reps, seconds = o.reps or 4, (o.seconds or 60)
    corrupted, slice_seconds = seconds / reps, max(seconds / reps / 2, 0.5)
    # The fault line inspects every frame and has its own cost. So there are two denominators: the
    # same line, where only the corruption differs, and the connection without any line.
    line = "skip_handshake=on,payload_only=100,corrupt="
    plain, clean = "the connection without a fault line", "the same line without corruption"
    faulty, ended = f"0.1 % corrupted, one connection, {corrupted:g} s", []

    def one(length, *more):
        return json.loads(m.run(m.program(o, "bench_write_bw"), "--json", "--seconds", str(length), *more))

    def once():
        got = one(corrupted, "--faults", line + "0.001")
        ended.append((got["refused"], got["downgrades"], got["terminates"]))
        return {plain: one(slice_seconds)["gbits"], clean: one(slice_seconds, "--faults", line + "1e-9")["gbits"],
                faulty: got["gbits"]}

    def judge(values):
        got = r.medians(values, "Gb/s")
        r.ratio("goodput with corruption / without, both through the fault line", got[faulty] / got[clean], 0.9)
        r.ratio("goodput with corruption / the same connection without the fault line", got[faulty] / got[plain], 0.9)

    states.repeat(m, r, o, reps, once, judge)
    refused, downgrades, terminates = (sum(column) for column in zip(*ended, strict=True))
    r.figure("segments refused for their CRC, all repetitions", [refused], "segments")
    r.figure("downgrades to SLOW, all repetitions", [downgrades], "times")
    r.figure("Terminates, all repetitions", [terminates], "times")
    r.ratio("downgrades and Terminates", downgrades + terminates, 0, at_most=True)
    r.passed_on([m.program(o, "bench_p8")])


MEASURES = {"P4": p4, "P5": p5, "P6": p6, "P8": p8}
