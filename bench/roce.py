"""RoCE. P10, P11, P12, P17, P18: its cost. P13 to P16: behaviour over a bad network in virtual time, with two engines in `urnic sim`,
independent of the machine and its load."""
import json
import os
import shutil
import tempfile

import roce_guest
import states

HEAD = """
transport = "roce"
runs = {runs}
limit = "600s"
[wire]
rate = "10gbit"
delay = "{delay}"
"""
WRITES = """
[work]
op = "write"
size = 65536
depth = 32
count = {count}
"""
# Behaves by the specification, like Linux rxe in the measured aspects: go-back-N, keeps no
# out-of-order packets, one NAK per gap, waits for its timer, 128 packets in flight, requests an ACK
# with every 65th packet of a message, no credits.
RXE = """
{side}.type = "slow"
{side}.probe = false
{side}.window = 128
{side}.ack_every = 65
{side}.credits = false
"""
SELECTIVE = "both.selective = true"
LETTER = 'both.type = "slow"\nboth.probe = false\n'


def simulate(bench, options, text):
    """{variant: [its runs]}; every run must have ended well."""
    with tempfile.TemporaryDirectory(prefix="urnic-bench-") as folder:
        path = os.path.join(folder, "measured.toml")
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        doc = json.loads(bench.run(bench.program(options, "urnic"), "sim", path, "--json"))
    found = {v["name"]: v["runs"] for v in doc["variants"]}
    for name, runs in found.items():
        for one in runs:
            if not one["complete"] or one["wrong_bytes"]:
                raise SystemExit(f"bench/run: {name}: {one['end']}, {one['wrong_bytes']} bytes wrong")
    return found


def variant(name, *lines):
    return f'\n[[variant]]\nname = "{name}"\n' + "\n".join(lines) + "\n"


def goodputs(r, found):
    return {name: r.figure(name, [one["goodput_bps"] * 1e-9 for one in runs], "Gb/s") for name, runs in found.items()}


def p13(bench, r, o):
    text = HEAD.format(runs=o.reps or 3, delay="50us") + WRITES.format(count=1024)
    for loss in ("0", "0.01", "0.1", "1"):
        rate = f"wire.loss = {float(loss) / 100:g}"
        text += variant(f"selective, {loss} % lost", rate, SELECTIVE) + variant(f"FAST, {loss} % lost", rate) + variant(f"go-back-N to the letter, 67 ms, {loss} % lost", rate, LETTER)
    got = goodputs(r, simulate(bench, o, text))
    clean = got["selective, 0 % lost"]
    for loss, target in (("0.01", 0.99), ("0.1", 0.98), ("1", 0.9)):
        r.ratio(f"selective, {loss} % lost both ways / clean", got[f"selective, {loss} % lost"] / clean, target)
        print(f"  without selective repeat, {loss} % lost / clean: {got[f'FAST, {loss} % lost'] / got['FAST, 0 % lost']:.3f}")
    for loss, target in (("0.1", 1.1), ("1", 10)):
        letter = got[f"go-back-N to the letter, 67 ms, {loss} % lost"]
        r.ratio(f"selective / go-back-N to the letter, {loss} % lost", got[f"selective, {loss} % lost"] / letter, target)


def p14(bench, r, o):
    lost = "wire.loss = 0.01"
    text = HEAD.format(runs=o.reps or 3, delay="50us") + WRITES.format(count=512)
    right, left = RXE.format(side="right"), RXE.format(side="left")
    text += variant("we send to an rxe-like peer, 1 % lost, probe on", lost, right)
    text += variant("we send to an rxe-like peer, 1 % lost, probe off", lost, right, "left.probe = false")
    text += variant("an rxe-like peer sends to us, 1 % lost, kept", lost, left)
    text += variant("an rxe-like peer sends to us, 1 % lost, dropped", lost, left, 'right.out_of_order = "drop"')
    got = goodputs(r, simulate(bench, o, text))
    on, off, kept, dropped = got.values()
    # The window of packets in flight, and room for as many after a hole; compared with the default
    # room, 512.
    text = HEAD.format(runs=o.reps or 3, delay="500us") + WRITES.format(count=1024) + "\n[both]\nwindow = 4096\n"
    room = "both.held_packets = 4096"
    text += variant("selective, 1 ms, 0.1 % lost", "wire.loss = 0.001", SELECTIVE, room)
    text += variant("selective, room for 512, 1 ms, 0.1 % lost", "wire.loss = 0.001", SELECTIVE)
    text += variant("FAST, 1 ms, 0.1 % lost", "wire.loss = 0.001", room)
    text += variant("go-back-N to the letter, 1 ms, 0.1 % lost", "wire.loss = 0.001", LETTER)
    far = goodputs(r, simulate(bench, o, text))
    r.ratio("we send to an rxe-like peer, 1 %: probe on / off (S-5)", on / off, 5)
    r.ratio("we receive from one, 1 %: kept / dropped (S-4)", kept / dropped, 1.3)
    selective, little_room, fast, letter = far.values()
    r.ratio("1 ms, 0.1 %: selective / go-back-N to the letter", selective / letter, 1.8)
    print(f"  with room for 512 packets, which it runs out of, 1 ms, 0.1 % / go-back-N to the letter: {little_room / letter:.3f}")
    print(f"  without selective repeat, 1 ms, 0.1 % / go-back-N to the letter: {fast / letter:.3f}")


def p15(bench, r, o):
    """With the values of rdma_cm: a timer of 2.1 s, seven retries."""
    peer = os.path.join(o.build, "interop_perftest_peer")
    there = roce_guest.measure(peer, o.reps or 3) if os.path.exists(peer) else f"{peer} is missing: build it first"
    if isinstance(there, str):
        print("  not measured, Linux rxe: " + there)
    else:
        for op in ("write", "read"):
            rates = {who: r.figure(f"{op}s, {who} to Linux rxe, 1 % lost", there[who, op], "MB/s") for who in ("rxe", "urnic")}
            r.ratio(f"{op}s of 64 KiB, 1 % lost both ways: urnic to rxe / rxe to rxe", rates["urnic"] / rates["rxe"], 3)
    got = {}
    for op in ("write", "read"):
        text = HEAD.format(runs=o.reps or 3, delay="50us") + WRITES.format(count=512).replace('"write"', f'"{op}"')
        text += "\n[qp]\nack_timeout = 19\n"
        for name, transport in (("iWARP", "iwarp"), ("RoCE", "roce")):
            more = (SELECTIVE,) if transport == "roce" else ()
            text += variant(f"{op}s, {name}, 1 % lost", f'transport = "{transport}"', "wire.loss = 0.01", *more)
        got |= goodputs(r, simulate(bench, o, text))
    for op in ("write", "read"):
        r.ratio(f"{op}s of 64 KiB, 1 % lost both ways: RoCE / iWARP", got[f"{op}s, RoCE, 1 % lost"] / got[f"{op}s, iWARP, 1 % lost"], 0.9)


def p16(bench, r, o):
    text = HEAD.format(runs=1, delay="50us") + """
[work]
op = "send"
size = 256
depth = 60
count = 60
receives = 1
receives_gap = "200us"
[qp]
min_rnr_timer = 5
[both]
credits = false
"""
    text += variant("Sends wait for their receives (S-9)") + variant("to the letter: RNR NAK at once", LETTER)
    found = simulate(bench, o, text)
    packets = {name: r.figure(name, [one["requester"]["requests_sent"] for one in runs], "packets")
               for name, runs in found.items()}
    waits, _ = packets.values()
    r.ratio("packets for 60 Sends into a receive queue of depth 1 / 60", waits / 60, 1.2, at_most=True)


def p10(bench, r, o):
    r.passed_on([bench.program(o, "bench_p10"), *(["--reps", str(o.reps)] if o.reps else [])])


def p11(bench, r, o):
    r.passed_on([bench.program(o, "bench_p11"), *(["--reps", str(o.reps)] if o.reps else [])])


def beside_iwarp(bench, r, o, what, unit, measure, target, at_most=False):
    """iWARP and RoCE in turns; measure(*flags) returns a figure."""
    def once():
        return {f"{what}, iWARP": measure(), f"{what}, RoCE": measure("--roce")}

    def judge(values):
        iwarp, roce = r.medians(values, unit).values()
        r.ratio(f"{what}, RoCE / iWARP", roce / iwarp, target, at_most)

    states.repeat(bench, r, o, o.reps or 5, once, judge)


def p12(bench, r, o):
    seconds = o.seconds or 1

    def goodput(mtu):
        return lambda *more: float(bench.run(bench.program(o, "bench_write_bw"), "--mtu", str(mtu), "--warm-up",
                                             str(bench.memif.WARM_UP), "--seconds", str(seconds), *more))

    def half_trip(*more):
        rounds = str(int(seconds * 20000))
        return float(bench.run(bench.program(o, "bench_write_lat"), "--rounds", rounds, *more).split()[0])

    for mtu, target in ((1500, 0.8), (9000, 0.9)):
        beside_iwarp(bench, r, o, f"IP MTU {mtu}: Writes of 64 KiB", "Gb/s", goodput(mtu), target)
    beside_iwarp(bench, r, o, "8-byte Write, half round trip p50", "us", half_trip, 1.05, at_most=True)


def beside_bare_udp(bench, r, o, pmtu, ip_mtu):
    """The raw loop with the kernel's offload, as the port uses it, and without."""
    seconds = str(o.seconds or 1)
    ours = f"port = udp on loopback, path MTU {pmtu}, Writes of 64 KiB"
    bare, kernel = f"UDP_SEGMENT and UDP_GRO, path MTU {pmtu}", "iperf3, loopback TCP, 64 KiB"

    def once():
        loop = bench.program(o, "bench_udp_pipeline"), str(pmtu), seconds
        writes = bench.program(o, "bench_write_bw"), "--udp", "--mtu", str(ip_mtu), "--seconds", seconds
        got = {ours: float(bench.run(*writes)), bare: float(bench.run(*loop)),
               f"sendmmsg and recvmmsg, path MTU {pmtu}": float(bench.run(*loop, "single"))}
        if pmtu == 4096 and shutil.which("iperf3"):
            got[kernel] = bench.programs.iperf(max(1, round(float(seconds))), True) * 1e-9
        return got

    def judge(values):
        got = r.medians(values, "Gb/s")
        r.ratio(f"path MTU {pmtu}: Writes of 64 KiB / UDP_SEGMENT and UDP_GRO alone", got[ours] / got[bare], 0.5)
        if got.get(kernel, 0) >= 25:
            r.ratio(f"path MTU {pmtu}: Writes of 64 KiB [Gb/s]", got[ours], 15)
        elif pmtu == 4096:
            print("  the rate itself is not judged: iperf3 over loopback is below 25 Gb/s, or not installed")

    states.repeat(bench, r, o, o.reps or 9, once, judge)


def p17(bench, r, o):
    """Packets of 1024 and 4096 bytes."""
    for pmtu, ip_mtu in ((1024, 1500), (4096, 5000)):
        beside_bare_udp(bench, r, o, pmtu, ip_mtu)


def p18(bench, r, o):
    r.passed_on([bench.program(o, "bench_p18"), *(["--reps", str(o.reps)] if o.reps else [])])


MEASURES = {"P10": p10, "P11": p11, "P12": p12, "P17": p17, "P18": p18, "P13": p13, "P14": p14, "P15": p15, "P16": p16}
