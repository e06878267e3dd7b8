"""Writes the comparison of docs/performance.md and README.md from a record. Figures come from the record; only the reasons below are written by hand."""
import re

from . import costs, pictures, record, sides

BLOCK = r"(<!-- {} -->\n).*?(<!-- end of {} -->)"
URNIC = (*sides.MEMIF, sides.OVER_TCP, sides.OVER_UDP)
WIRES = {"memif": tuple(sides.MEMIF), "tcp": (sides.OVER_TCP,), "udp": (sides.OVER_UDP,)}
UNITS = {"throughput": lambda _: "Gb/s", "latency": lambda _: "us", "cdf": lambda _: "us", "paths": lambda _: "GB/s", "stages": lambda _: "ns/byte",
         "loss": lambda _: "Gb/s", "stream-loss": lambda _: "Mb/s", "perftest": lambda line: costs.LINES[line][1],
         "guests": lambda _: "Gb/s"}
LESS_IS_BETTER = ("latency",)
WORTH_TELLING = 1.02  # factor; smaller differences are not reported

# Why urnic is slower: by kind, urnic's wire, and which side is faster.
MEMIF_STREAM = ("a memif is a wire: one core writes every byte with checksum and CRC into frames, the other reads, checks and copies it, "
                "segment by segment, and each Write is an FPDU in its own segment. The kernel's loopback copies large pieces without checksums and merges "
                "consecutive small sends.")
TCP_STREAM = ("urnic makes the same kernel calls, and adds headers and an MPA CRC over every byte at both ends. `crc = off` removes the CRC.")
SMALL_PUTS = "UCX has no CRC, and the kernel's TCP merges small sends; each of urnic's Writes is an FPDU with a CRC, in its own segment."
TCP_TRIP = "urnic makes the same two kernel calls each way, and adds headers, the CRC and the work of the queue pair."
MEMIF_TRIP = "a long message is many segments, each with its checksums and copy; the kernel's loopback takes it in few pieces."
UDP_STREAM = ("each packet of 4096 bytes has its own headers and ICRC and is copied into a buffer before the kernel copies it; a system call "
              "carries at most 15 of them, and each small Write is a datagram.")
UDP_TRIP = "urnic makes the same two kernel calls each way, and adds headers, the ICRC, the work of the queue pair and an ACK of each message."
REASONS = {("throughput", "memif", sides.KERNEL): MEMIF_STREAM, ("throughput", "memif", sides.UCX): SMALL_PUTS,
           ("throughput", "tcp", sides.KERNEL): TCP_STREAM, ("throughput", "tcp", sides.UCX): TCP_STREAM,
           ("throughput", "udp", sides.KERNEL): UDP_STREAM, ("throughput", "udp", sides.UCX): UDP_STREAM,
           ("latency", "tcp", sides.KERNEL): TCP_TRIP, ("latency", "tcp", sides.UCX): TCP_TRIP,
           ("latency", "udp", sides.KERNEL): UDP_TRIP, ("latency", "udp", sides.UCX): UDP_TRIP,
           ("latency", "memif", sides.KERNEL): MEMIF_TRIP, ("latency", "memif", sides.UCX): MEMIF_TRIP}
LOSS_REASON = ("TCP takes each loss for congestion and cuts its window. RoCE with selective repeat resends the packet; its window closes for marks, growing "
               "round trips and many losses, not for each loss.")
LETTER_REASON = "a loss makes it repeat all later packets, but does not cut its window; at a high loss rate its timer of 67 ms decides."
STREAM_REASON = "[tcp.md](tcp.md) has a measurement with more rounds, and the target range."


def shown(value):
    """Three significant digits."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def cell(spread):
    if spread is None:
        return "-"
    median, least, most = spread
    return shown(median) if least == most else f"{shown(median)} ({shown(least)} to {shown(most)})"


def table(corner, columns, rows):
    """rows: [(name, cells)]"""
    lines = [f"| {corner} | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    return lines + ["| " + " | ".join([name, *cells]) + " |" for name, cells in rows]


def by_size(kept, kind, title):
    points = sorted({p[0] for side in kept.sides(kind) for p in kept.points(kind, side)})
    if not points:
        return []
    rows = [(side, [cell(kept.at(kind, side, int(p))) for p in points]) for side in kept.sides(kind)]
    return [*table(title, [pictures.size_name(p) for p in points], rows), ""]


def ahead(kept, kind, mine, theirs):
    """Points where `theirs` is better by more than the spread of the rounds: [(point, mine, theirs)]."""
    found = []
    other = {p[0]: p[1:] for p in kept.points(kind, theirs)}
    for point, *own in kept.points(kind, mine):
        them = other.get(point)
        if them is None:
            continue
        behind = them[2] < own[1] if kind in LESS_IS_BETTER else them[1] > own[2]
        if behind and factor(kind, own, them) >= WORTH_TELLING:
            found.append((point, own, them))
    return found


def factor(kind, own, them):
    """The factor by which urnic is slower: above 1."""
    return own[0] / them[0] if kind in LESS_IS_BETTER else them[0] / own[0]


def worst_of(kind, points):
    return max(points, key=lambda p: factor(kind, p[1], p[2]))


def sentence(kind, theirs, found, why, name):
    """found: [(side of urnic, [(point, own, them)])]: one line for each reason."""
    parts = []
    for mine, points in found:
        at, own, them = worst_of(kind, points)
        where = ", ".join(name(p[0]) for p in points)
        parts.append(f"{mine} at {where} (furthest at {name(at)}: {shown(own[0])} against {shown(them[0])} {UNITS[kind](at)})")
    return f"- {kind}, slower than **{theirs}**: {'; '.join(parts)}. Why: {why}"


def losses(kept):
    """Where urnic is slower, and why."""
    lines = []
    for kind in ("throughput", "latency"):
        for theirs in (s for s in kept.sides(kind) if s not in URNIC):
            for wire, wires in WIRES.items():
                found = [(mine, points) for mine in wires if (points := ahead(kept, kind, mine, theirs))]
                if found:
                    why = REASONS.get((kind, wire, theirs), "not analysed.")
                    lines.append(sentence(kind, theirs, found, why, pictures.size_name))
    for kind, mine, why in (("loss", costs.IWARP, LOSS_REASON), ("stream-loss", costs.OWN_STREAM, STREAM_REASON)):
        for theirs in (s for s in kept.sides(kind) if s != mine):
            points = ahead(kept, kind, mine, theirs)
            if points:
                lines.append(sentence(kind, theirs, [(mine, points)], LETTER_REASON if theirs == costs.LETTER else why, "{:g} % lost".format))
    return lines or ["- nowhere, by more than the spread of the rounds."]


def machine(kept):
    a, m = kept.about, kept.about["machine"]
    programs = ", ".join(f"{p} {v}" for p, v in a["versions"].items())
    lines = [f"Measured on {a['date']} at commit `{a['commit']}`, {kept.rounds()} round{'s' if kept.rounds() > 1 else ''} in {a['seconds']} s, load at the start {a['load'][0]:g}: {m['cpu']}, {m['cores']} "
             f"processors ({', '.join(m['flags'])}), Linux {a['kernel']}; {programs}. Both ends were on one machine, each on its own processor."]
    if record.was_busy(a):
        lines.append(f"**Other programs were running (load at the start {a['load'][0]:g}): do not compare these figures; they stand until a run on a quiet machine.**")
    return [*lines, ""]


def hardware(kept):
    lines = ["### The same lines on a hardware RNIC", "",
             "This machine has none. To compare, run the same lines of Debian's perftest on an RNIC, with both ends in one machine or in two.", ""]
    shown_sides = kept.sides("perftest")
    rows = [(f"`{line}`", [f"{cell(kept.at('perftest', s, line))} {unit}" if kept.at("perftest", s, line) else "-" for s in shown_sides])
            for line, (_, unit) in costs.LINES.items()]
    lines += table("perftest", shown_sides, rows) if shown_sides else [f"- {s}: {why}" for s, why in kept.absent.get("perftest", {}).items()] or ["Not measured."]
    first = next(iter(costs.LINES))
    return lines + ["", "    # urnic: one terminal, another", f"    taskset -c 0 urnic run --port memif:socket=/tmp/wire.sock,mtu=9000 -- {first}",
                    f"    taskset -c 1 urnic run --port memif:socket=/tmp/wire.sock,mtu=9000 -- {first} 10.77.0.1", "    # the RNIC (name: ibv_devices; the address is that of its interface)",
                    f"    taskset -c 0 {first} -d mlx5_0", f"    taskset -c 1 {first} -d mlx5_0 ADDRESS", ""]


def guests(kept):
    if not kept.sides("guests"):
        return []
    rows = [(side, [cell(kept.at("guests", side, op)) for op in ("write", "read")]) for side in kept.sides("guests")]
    return ["### Linux siw and rxe, between two emulated guests", "", "`ib_write_bw` and `ib_read_bw`, 64 KiB, `-R`, on Linux's own software RNICs, and `urnic perf` in the "
            "same two guests (emulated by QEMU, one wire): only compare these rates with each other.", "",
            *table("Gb/s", ["Writes", "Reads"], rows), ""]


def comparison(kept):
    out = [*machine(kept), "    bench/compare --record    # measure", "    bench/compare --write     # write this section and the pictures", ""]
    out += ["![throughput by size](compare/throughput.svg)", "", *by_size(kept, "throughput", "Gb/s"), "![half round trip by size](compare/latency.svg)", "",
            *by_size(kept, "latency", "half round trip, us"), "libfabric's figure is an average, the others are medians (`fi_pingpong` only prints averages).", "",
            "![distribution of half round trips](compare/latency-cdf.svg)", "", "![messages a second](compare/rate.svg)", "", "![FAST beside SLOW](compare/fast-slow.svg)", "",
            "![cost of a byte by stage](compare/stages.svg)", "", "![goodput by loss](compare/loss.svg)", ""]
    out += ["### Where urnic is slower, and why", "", f"Differences above the spread of the rounds and of at least {WORTH_TELLING * 100 - 100:.0f} %:", "", *losses(kept), ""]
    out += guests(kept)
    absent = [f"- {kind}, {side}: {why}" for kind, of_kind in kept.absent.items() for side, why in of_kind.items()]
    if absent:
        out += ["### Not measured", "", *absent, ""]
    return "\n".join(out + hardware(kept)) + "\n"


def front(kept):
    """The pictures and the sentence of README."""
    best = max((s for s in sides.MEMIF if kept.at("throughput", s, 262144)), key=lambda s: kept.at("throughput", s, 262144)[0], default=None)
    lines = ["![urnic beside kernel TCP, UCX and libfabric: throughput and latency by message size](docs/compare/beside.svg)", ""]
    trip = kept.at("latency", "urnic, memif, MTU 9000", sides.CDF_SIZE)
    if best and trip:
        busy = " with other work on it" if record.was_busy(kept.about) else ""
        lines += [f"Two processes on one machine{busy}: {shown(kept.at('throughput', best, 262144)[0])} Gb/s with RDMA Writes of 256 KiB ({best.split(', ')[-1]}), "
                  f"{shown(trip[0])} us for half a round trip of {sides.CDF_SIZE} bytes, with a CRC32C over every byte. "
                  "[Conditions, comparison, and where urnic is slower](docs/performance.md#comparison)."]
    return "\n".join([*lines, "", "![one connection in virtual time: FAST, recovery from corruption, SLOW behind a middlebox, FAST again](docs/compare/life.svg)"]) + "\n"


def blocks(kept):
    """{path: {name of the block: text}}"""
    return {path: {name: text} for path, name, text in (("docs/performance.md", "comparison", comparison(kept)), ("README.md", "pictures", front(kept)))}


def filled(text, found, path):
    """The page with its blocks filled; a missing block is an error."""
    for name, content in found.items():
        pattern = re.compile(BLOCK.format(name, name), re.S)
        if not pattern.search(text):
            raise SystemExit(f"compare: {path} has no <!-- {name} --> ... <!-- end of {name} -->")
        text = pattern.sub(lambda m, c=content: m[1] + c + m[2], text)
    return text
