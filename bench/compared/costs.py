"""The cost of a byte in urnic, FAST and SLOW; goodput by loss; unmodified perftest, for comparison with a hardware RNIC."""
import json
import os
import re
import sys
import tempfile

from . import pairs

MTUS = (1500, 9000, 65000)
LOSSES = ("0", "0.01", "0.1", "1")  # percent
STREAM_LOSSES = (0, 0.0001, 0.001, 0.01)
IWARP, SELECTIVE, LETTER = "urnic, iWARP", "urnic, RoCE, selective repeat", "standard RoCE: go-back-N, 67 ms"
OWN_STREAM, KERNEL_STREAM = "urnic's TCP", "kernel TCP"
SUMS, COPY, PROTOCOL, SECOND_COPY = "checksum and CRC", "copy to memory", "protocol", "SLOW: reassembly"
PERFTEST = {"urnic, memif, MTU 9000": "memif", "urnic, kernel TCP": "tcp"}
# Row name: column of the last row, unit. ib_write_lat is omitted: it spins on memory and needs a
# second core at each end.
LINES = {"ib_write_bw -R -s 65536 -n 10000 --report_gbits": (3, "Gb/s"), "ib_read_bw -R -s 65536 -n 10000 --report_gbits": (3, "Gb/s"),
         "ib_write_bw -R -s 64 -n 200000": (4, "million/s"), "ib_send_lat -R -s 64 -n 20000": (4, "us")}

SCENARIO = """
runs = 1
seed = {seed}
limit = "600s"
[wire]
rate = "10gbit"
delay = "50us"
[work]
op = "write"
size = 65536
depth = 32
count = 512
"""
VARIANTS = {IWARP: 'transport = "iwarp"', SELECTIVE: 'transport = "roce"\nboth.selective = true',
            LETTER: 'transport = "roce"\nboth.type = "slow"\nboth.probe = false'}


def last_json(text):
    """The JSON object before the last lines."""
    return json.JSONDecoder().raw_decode(text[text.index("{"):])[0]


class Costs:
    """`sides` knows the programs of the build."""

    def __init__(self, sides, reps):
        self.sides, self.reps = sides, reps
        self.round = 0  # of the loss runs: each has its own seed

    # ---- ns for a byte, receiving ----

    def receiving(self, mtu):
        """FAST and SLOW alternately: {(kind, side): {mtu: value}}."""
        p2, reps = self.sides.program("bench_p2"), str(self.reps)
        parts = last_json(pairs.output([p2, "--json", "--set", "128", "--mtu", str(mtu), "--reps", reps]))["rows"][0]
        slow = {row["type"]: row for row in last_json(pairs.output([p2, "--p3", "--json", "--mtu", str(mtu), "--reps", reps]))["rows"]}
        sizes = last_json(pairs.output([self.sides.program("bench_p1"), "--json", "--size", str(min(mtu - 40, 32768)), "--reps", "5"]))
        sums = next(row for row in sizes["sizes"][0]["rows"] if row["name"] == "fused")["bytes_per_second"] * 1e-9
        return stages(mtu, sums, parts["one_pass_gbytes"], parts["engine_gbytes"], slow)

    # ---- goodput by loss ----

    def simulated(self):
        """Gb/s in virtual time: {(kind, side): {percent: value}}."""
        self.round += 1
        text = SCENARIO.format(seed=self.round)
        for side, lines in VARIANTS.items():
            for loss in LOSSES:
                text += f'\n[[variant]]\nname = "{side} @ {loss}"\nwire.loss = {float(loss) / 100:g}\n{lines}\n'
        with tempfile.TemporaryDirectory(prefix="urnic-compare-") as folder:
            path = os.path.join(folder, "loss.toml")
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
            doc = json.loads(pairs.output([self.sides.program("urnic"), "sim", path, "--json"], bound=120))
        found = {}
        for v in doc["variants"]:
            side, loss = v["name"].split(" @ ")
            one = v["runs"][0]
            if not one["complete"] or one["wrong_bytes"]:
                raise pairs.Failed(f"{v['name']}: {one['end']}, {one['wrong_bytes']} bytes wrong")
            found.setdefault(("loss", side), {})[loss] = one["goodput_bps"] * 1e-9
        return found

    def streams(self):
        """Mb/s through `urnic wire`, byte streams of both TCPs: {(kind, side): {percent: value}}."""
        tap = os.path.join(self.sides.build, "interop_tap_stream")
        if not os.path.exists(tap):
            raise pairs.Absent("not there: interop_tap_stream: build first (ninja -C build)")
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with tempfile.TemporaryDirectory(prefix="urnic-compare-") as folder:
            kept = os.path.join(folder, "cells.json")
            out = pairs.output([sys.executable, os.path.join(here, "tcp_goodput"), "--urnic", self.sides.program("urnic"), "--tap-stream", tap,
                                   "--loss", ",".join(map(str, STREAM_LOSSES)), "--rtt", "10", "--sack", "on", "--runs", "1", "--seconds", "1.5",
                                   "--seed", str(self.round), "--json", kept], bound=150, skip=True)
            if not os.path.exists(kept):
                raise pairs.Absent("not there: " + (out.strip().splitlines() or ["bench/tcp_goodput said nothing"])[-1])
            with open(kept, encoding="ascii") as f:
                cells = json.load(f)
        found = {}
        for c in cells:
            for side, key in ((OWN_STREAM, "urnic"), (KERNEL_STREAM, "kernel")):
                found.setdefault(("stream-loss", side), {})[f"{c['loss'] * 100:g}"] = c[key]
        return found

    # ---- unmodified perftest ----

    def perftest(self, line, wire):
        """The value of one line, under `urnic run`."""
        words = line.split()
        pairs.needs("perftest", words[0], "taskset")
        if not os.path.isdir(os.path.join(self.sides.build, "lib", "urnic", "dropin")):
            raise pairs.Absent("not there: the drop-in libraries: packages libibverbs-dev and librdmacm-dev, then build")
        port = self.sides.next_port()
        with tempfile.TemporaryDirectory(prefix="urnic-compare-") as folder:
            at = f"memif:socket={folder}/wire.sock,mtu=9000" if wire == "memif" else "tcp"
            command = [self.sides.program("urnic"), "run", "--port", at, "--crc", "on", "--", *words, "-p", port]
            out = pairs.client_of(command, [*command, "10.77.0.1" if wire == "memif" else "127.0.0.1"])
        rows = re.findall(r"^ *\d+ +\d+ +[\d. \t]+$", out, re.M)
        if not rows:
            raise pairs.Failed(f"{line} printed no figures")
        return float(rows[-1].split()[LINES[line][0]])


def stages(mtu, sums, ideal, fast_engine, slow):
    """Converts GB/s of successively longer pipelines to ns per byte of each stage. `slow`: rows of FAST and SLOW by type."""
    of_sums, of_copy, of_engine = 1 / sums, 1 / ideal - 1 / sums, 1 / fast_engine - 1 / ideal
    more = 1 / slow["SLOW"]["engine_gbytes"] - 1 / slow["FAST"]["engine_gbytes"]
    return {("stages", SUMS): {mtu: of_sums}, ("stages", COPY): {mtu: max(of_copy, 0)}, ("stages", PROTOCOL): {mtu: max(of_engine, 0)},
            ("stages", SECOND_COPY): {mtu: max(more, 0)},
            ("paths", "FAST"): {mtu: slow["FAST"]["engine_gbytes"]}, ("paths", "SLOW"): {mtu: slow["SLOW"]["engine_gbytes"]}}
