"""P20 of bench/run: the storage pattern over memif, the kernel's TCP and its UDP, beside sockets with the same data."""
import json

import states

# `m` is bench/run itself: run(*command), program(o, name). `r` is its report, `o` its options.

# The least ratio of requests a second, and the largest of the time of one request alone.
TARGETS = {"memif": (1.5, 0.5), "tcp": (1.0, 1.1), "udp": (0.6, 1.5)}
OPS = ("read", "write")
# (operation, KiB, outstanding, queue pairs)
CELLS = [*((op, kib, 32, 1) for kib in (4, 64, 1024) for op in OPS),
         *((op, 4, outstanding, pairs) for outstanding, pairs in ((1, 1), (128, 1), (32, 16)) for op in OPS)]


def cell(m, r, o, op, kib, outstanding, pairs):
    what = f"{op} {kib} KiB, {outstanding} outstanding" + (f", {pairs} queue pairs" if pairs > 1 else "")
    key, unit = ("median_us", "us") if outstanding == 1 else ("thousand_requests_per_second", "thousand/s")

    def measure(side):
        return json.loads(m.run(m.program(o, "bench_storage"), "--json", "--side", side, "--op", op,
                                "--size", str(kib << 10), "--outstanding", str(outstanding),
                                "--queue-pairs", str(pairs), "--seconds", str(o.seconds or 0.3)))[key]

    def once():
        return {f"{what}: {side}": measure(side) for side in (*TARGETS, "sockets")}

    def judge(values):
        *ours, sockets = r.medians(values, unit).values()
        for (side, (least, most)), mine in zip(TARGETS.items(), ours, strict=True):
            if outstanding == 1:
                r.ratio(f"{what}: time, {side} / sockets", mine / sockets, most, at_most=True)
            else:
                r.ratio(f"{what}: requests, {side} / sockets", mine / sockets, least)

    states.repeat(m, r, o, o.reps or 3, once, judge)


def p20(m, r, o):
    for one in CELLS:
        cell(m, r, o, *one)


MEASURES = {"P20": p20}
