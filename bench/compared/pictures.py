"""The pictures of docs/compare, out of a record."""
from . import chart, costs, record, sides

# Colour and dash of every side.
LOOKS = {"urnic, memif, MTU 1500": ("sky", ""), "urnic, memif, MTU 9000": ("blue", ""), "urnic, memif, MTU 65000": ("navy", ""),
         sides.OVER_TCP: ("green", ""), sides.OVER_UDP: ("purple", ""), sides.KERNEL: ("grey", "7 4"), sides.UCX: ("red", "7 4"), sides.LIBFABRIC: ("orange", "2 3"),
         costs.IWARP: ("blue", ""), costs.SELECTIVE: ("green", ""), costs.LETTER: ("red", "7 4"),
         costs.OWN_STREAM: ("blue", ""), costs.KERNEL_STREAM: ("grey", "7 4")}
STAGES = {costs.SUMS: "blue", costs.COPY: "sky", costs.PROTOCOL: "orange", costs.SECOND_COPY: "red"}
ALONE = "the receiving engine alone on one core"
LOSS_TICKS = [(i, f"{p} %") for i, p in enumerate(costs.LOSSES)]


def size_name(size):
    for unit, name in ((1 << 20, " MiB"), (1 << 10, " KiB")):
        if size >= unit:
            return f"{size / unit:g}{name}"
    return f"{size:g}"


def tick_name(size):
    """Shorter: Ki, Mi."""
    return size_name(size).removesuffix("B")


def conditions(kept, ends="two processes of one machine, each on a core of its own"):
    """Two lines: the machine, how it was measured."""
    a, n = kept.about, kept.rounds()
    quiet = f"; other programs were running (load {a['load'][0]:g})" if record.was_busy(a) else ""
    return [f"{a['machine']['cpu']}, Linux {a['kernel']}, {ends}",
            f"{a['date']}, " + (f"medians of {n} rounds with their spread" if n > 1 else "one round") + quiet]


def by_size(kept, picture, rectangle, kind, title, unit, only=None):
    """Draws a panel of lines on log scales; returns the sides it shows."""
    shown = [s for s in kept.sides(kind) if s in LOOKS and (only is None or s in only)]
    rows = {s: kept.points(kind, s) for s in shown}
    flat = [p for points in rows.values() for p in points]
    if not flat:
        picture.text(rectangle[0], rectangle[1] + 20, "not measured", "m")
        return []
    ticks = chart.decades(min(p[2] for p in flat), max(p[3] for p in flat))
    sizes = sorted({p[0] for p in flat})
    panel = chart.Panel(picture, rectangle, chart.Scale(sizes[0], max(sizes[-1], 2 * sizes[0]), True), chart.Scale(ticks[0], ticks[-1], True), title,
                        ("message, bytes", unit))
    panel.y_ticks([(t, f"{t:g}") for t in ticks])
    panel.x_ticks([(s, tick_name(s)) for s in sizes])
    for s in shown:
        panel.line(rows[s], *LOOKS[s])
    return shown


def legend(picture, x, y, shown, across=4, step=205):
    picture.legend(x, y, [(s, *LOOKS[s]) for s in shown], across, step)


def beside(kept):
    """README: throughput and latency by size, compared with today's alternatives."""
    p = chart.Picture(920, 446, "RDMA without an RNIC: urnic, kernel TCP, UCX and libfabric", conditions(kept),
                      "Throughput and latency by message size of urnic over memif and over the kernel's TCP, kernel TCP, UCX and libfabric.")
    shown = by_size(kept, p, (66, 106, 370, 242), "throughput", "Throughput: more is better", "Gb/s")
    shown += [s for s in by_size(kept, p, (526, 106, 364, 242), "latency", "Half round trip: less is better", "us, median") if s not in shown]
    legend(p, 40, 412, shown)
    return p.svg()


def throughput(kept):
    p = chart.Picture(820, 470, "Throughput by size", conditions(kept), "Gb/s by message size.")
    legend(p, 60, 430, by_size(kept, p, (66, 78, 724, 290), "throughput", "", "Gb/s"), 4, 190)
    return p.svg()


def latency(kept):
    p = chart.Picture(820, 470, "Half round trip by size", conditions(kept), "Half round trip in microseconds by message size.")
    legend(p, 60, 430, by_size(kept, p, (66, 78, 724, 290), "latency", "", "us"), 4, 190)
    return p.svg()


def latency_cdf(kept):
    p = chart.Picture(820, 450, f"Half round trips of {sides.CDF_SIZE} bytes, distribution", [*conditions(kept), "UCX prints five percentiles, libfabric none."],
                      "Percent of half round trips by time.")
    rows = {s: kept.points("cdf", s) for s in kept.sides("cdf")}
    values = [point[1] for points in rows.values() for point in points]
    ticks = chart.decades(min(values), max(values))
    panel = chart.Panel(p, (76, 94, 706, 258), chart.Scale(ticks[0], ticks[-1], True), chart.Nines(), "", ("half round trip, us", "percent at most"))
    panel.y_ticks([(t, f"{t:g}") for t in (0, 50, 90, 99, 99.9, 99.99)])
    panel.x_ticks([(t * f, f"{t * f:g}") for t in ticks for f in ((1, 2, 5) if len(ticks) < 5 else (1,)) if t * f <= ticks[-1]])
    for side, points in rows.items():
        colour, dash = LOOKS[side]
        p.path([(panel.x(us), panel.y(percent)) for percent, us, _, _ in points], colour, 2.2, dash)
    legend(p, 60, 414, rows, 4, 190)
    return p.svg()


def bars(p, rectangle, rows, unit, title=""):
    """Horizontal: rows are (name, colour, (median, least, most))."""
    left, top, width, height = rectangle
    ticks = chart.round_ticks(max(row[2][2] for row in rows))
    panel = chart.Panel(p, rectangle, chart.Scale(0, ticks[-1]), chart.Scale(0, 1), title, (unit, ""))
    panel.x_ticks([(t, f"{t:g}") for t in ticks])
    step = height / len(rows)
    for i, (name, colour, (median, least, most)) in enumerate(rows):
        y = top + step * i
        p.box(left, y + step * 0.18, panel.x(median) - left, step * 0.64, "f" + colour)
        p.path([(panel.x(least), y + step / 2), (panel.x(most), y + step / 2)], "a", 1.4)
        p.text(left - 8, y + step / 2 + 4, name, "t", "end")
        p.text(max(panel.x(most), panel.x(median)) + 6, y + step / 2 + 4, f"{median:.3g}", "t")


def rate(kept):
    rows = []
    for side in kept.sides("throughput"):
        found = kept.at("throughput", side, 64)
        if found:
            rows.append((side, LOOKS[side][0], tuple(v * 1e3 / 512 for v in found)))
    p = chart.Picture(820, 124 + 34 * len(rows), "Messages a second, 64 bytes", conditions(kept), "Millions of 64-byte messages a second.")
    if rows:
        bars(p, (200, 72, 540, 34 * len(rows)), rows, "million/s")
    return p.svg()


def paths(kept):
    rows = [(f"{side}, MTU {mtu:g}", "blue" if side == "FAST" else "orange", spread) for mtu in costs.MTUS for side in ("FAST", "SLOW")
            if (spread := kept.at("paths", side, mtu))]
    p = chart.Picture(820, 136 + 34 * len(rows), "Receiving, FAST beside SLOW", [*conditions(kept, ALONE), "Writes in cache; payload placed."],
                      "GB/s of payload by path and MTU.")
    if rows:
        bars(p, (150, 86, 590, 34 * len(rows)), rows, "GB/s")
    return p.svg()


def loss_panel(kept, p, rectangle, kind, title, unit):
    shown = kept.sides(kind)
    if not shown:
        reason = next(iter(kept.absent.get(kind, {}).values()), "not measured")
        p.text(rectangle[0], rectangle[1] - 12, title, "t p")
        p.text(rectangle[0], rectangle[1] + 20, reason, "m")
        return
    rows = {s: [(i, *kept.at(kind, s, percent)) for i, percent in enumerate(costs.LOSSES) if kept.at(kind, s, percent)] for s in shown}
    ticks = chart.round_ticks(max(point[3] for points in rows.values() for point in points))
    panel = chart.Panel(p, rectangle, chart.Scale(-0.2, 3.2), chart.Scale(0, ticks[-1]), title, ("lost each way", unit))
    panel.y_ticks([(t, f"{t:g}") for t in ticks])
    panel.x_ticks(LOSS_TICKS)
    for s in shown:
        panel.line(rows[s], *LOOKS[s])
    p.legend(rectangle[0], rectangle[1] + rectangle[3] + 62, [(s, *LOOKS[s]) for s in shown], 1, 0)


def loss(kept):
    p = chart.Picture(920, 440, "Goodput by loss", ["Left: urnic sim, virtual time, 10 Gb/s, 100 us, Writes of 64 KiB. Right: byte streams of both TCPs through urnic wire, 500 Mb/s, 10 ms, CUBIC."],
                      "Goodput by percent of frames lost.")
    loss_panel(kept, p, (66, 92, 370, 230), "loss", "RDMA Writes", "Gb/s")
    loss_panel(kept, p, (526, 92, 370, 230), "stream-loss", "TCP alone", "Mb/s")
    return p.svg()


def stages(kept):
    mtus = [m for m in costs.MTUS if kept.at("stages", costs.SUMS, m)]
    p = chart.Picture(820, 166 + 76 * len(mtus), "Cost of a byte at the receiver, by stage", [*conditions(kept, ALONE),
                      "Differences between loops that add one step each: checksums; copy; the engine; the engine on the SLOW path."],
                      "Nanoseconds for each byte by stage and MTU.")
    if not mtus:
        return p.svg()
    total = {m: sum(kept.at("stages", s, m)[0] for s in STAGES) for m in mtus}
    ticks = chart.round_ticks(max(total.values()))
    panel = chart.Panel(p, (150, 92, 620, 70 * len(mtus)), chart.Scale(0, ticks[-1]), chart.Scale(0, 1), "", ("ns for each byte of payload", ""))
    panel.x_ticks([(t, f"{t:.3g}") for t in ticks])
    for i, mtu in enumerate(mtus):
        for row, (name, parts) in enumerate((("FAST", 3), ("SLOW", 4))):
            y, at = panel.top + 70 * i + 32 * row, 0.0
            for stage in list(STAGES)[:parts]:
                value = kept.at("stages", stage, mtu)[0]
                p.box(panel.x(at), y, panel.x(at + value) - panel.x(at), 24, "f" + STAGES[stage])
                at += value
            p.text(panel.left - 8, y + 16, f"{name}, MTU {mtu:g}", "t", "end")
            p.text(panel.x(at) + 6, y + 16, f"{at:.3f}", "t")
    p.legend(150, panel.bottom + 62, [(stage, "f" + colour, "box") for stage, colour in STAGES.items()], 4, 160)
    return p.svg()


BIN = 2000  # us


def binned(us, size):
    """[(ms, Mb/s)] of bins, from the stream position at each time."""
    found, last, i = [], 0, 0
    for end in range(BIN, us[-1] + 1, BIN):
        while i + 1 < len(us) and us[i + 1] <= end:
            i += 1
        found.append((end / 1000, (size[i] - last) * 8 / BIN))
        last = size[i]
    return found


def intervals(us, fast):
    """[(from ms, to ms, is FAST)]"""
    found, begin = [], 0
    for i in range(1, len(us) + 1):
        if i == len(us) or fast[i] != fast[begin]:
            found.append((us[begin] / 1000, us[min(i, len(us) - 1)] / 1000, bool(fast[begin])))
            begin = i
    return found


def life(kept):
    """README: FAST, recovery, SLOW and back, from `urnic sim`."""
    story = kept.about["life"]
    drops = [e for e in story["events"] if e[1] == "drop"]
    p = chart.Picture(920, 400, "One connection's life: FAST, recovery, SLOW, FAST again",
                      [f"urnic sim, virtual time, 1 Gb/s, 100 us each way, RDMA Writes of 64 KiB. {len(drops)} segments refused, {story['wrong']} bytes wrong, no connection was terminated."],
                      "Goodput over time of a connection that meets corruption and a middlebox.")
    end = story["us"][-1] / 1000
    goodput = binned(story["us"], story["bytes"])
    ticks = chart.round_ticks(max(y for _, y in goodput))
    scale = chart.Scale(0, end)
    top = chart.Panel(p, (76, 106, 820, 150), scale, chart.Scale(0, ticks[-1]), "", ("", "placed, Mb/s"))
    most = max(story["reassembly"]) / 1024
    low_ticks = chart.round_ticks(max(most, 1))
    low = chart.Panel(p, (76, 276, 820, 46), scale, chart.Scale(0, low_ticks[-1]), "", ("time, ms", "buffer, KiB"))
    for begin, until, fast in intervals(story["us"], story["fast"]):
        for panel in (top, low):
            p.box(panel.x(begin), panel.top, panel.x(until) - panel.x(begin), panel.height, "fast" if fast else "slow")
        words = "FAST: straight into memory" if fast else "SLOW: reassembled"
        if until - begin > 12:
            p.text(top.x((begin + min(until, end)) / 2) if not fast or begin > 0 else top.x(begin) + 8, top.bottom - 12, words, "t", "middle" if not fast or begin > 0 else "start")
    top.y_ticks([(t, f"{t:g}") for t in ticks])
    low.y_ticks([(0, "0"), (low_ticks[-1], f"{low_ticks[-1]:g}")])
    low.x_ticks([(t, f"{t:g}") for t in range(0, int(end) + 1, 10)])
    steps = [point for (ms, y), begin in zip(goodput, [0] + [ms for ms, _ in goodput]) for point in ((top.x(begin), top.y(y)), (top.x(ms), top.y(y)))]
    p.path(steps, "blue", 2)
    p.path([(low.x(us / 1000), low.y(o / 1024)) for us, o in zip(story["us"], story["reassembly"])], "orange", 1.6)
    for us, what, note in story["events"]:
        x = top.x(us / 1000)
        if what == "phase":
            p.path([(x, top.top - 22), (x, low.bottom)], "a", 1, "3 3")
            p.text(x + 5, top.top - 12, {"corruption": "corrupted, TCP checksum right", "middlebox": "middlebox re-segments", "clean": "clean wire"}.get(note, note), "m s")
        elif what == "drop":
            y = top.top + 8
            p.path([(x - 3.5, y - 3.5), (x + 3.5, y + 3.5)], "red", 1.8)
            p.path([(x - 3.5, y + 3.5), (x + 3.5, y - 3.5)], "red", 1.8)
    p.legend(76, 376, [("placed in memory, by 2 ms", "blue", ""), ("reassembly buffer", "orange", "")], 2, 220)
    p.legend(76 + 400, 376, [("FAST", "fast", "box"), ("SLOW", "slow", "box")], 2, 84)
    p.text(650, 376, "x", "fred")
    p.text(666, 376, "segment refused, TCP sends it again")
    return p.svg()


NEEDS = {"beside.svg": ("throughput", beside), "throughput.svg": ("throughput", throughput), "latency.svg": ("latency", latency), "latency-cdf.svg": ("cdf", latency_cdf),
         "rate.svg": ("throughput", rate), "fast-slow.svg": ("paths", paths), "loss.svg": ("loss", loss), "stages.svg": ("stages", stages)}


def drawn(kept):
    """{name: SVG} for all available figures."""
    found = {name: draw(kept) for name, (kind, draw) in NEEDS.items() if kept.sides(kind)}
    if "life" in kept.about:
        found["life.svg"] = life(kept)
    return found
