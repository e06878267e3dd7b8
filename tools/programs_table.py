"""Writes the tables of docs/programs.md: one for each group of columns, between two lines that name the group."""
import os

HEADS = {
    "urnic": ["Both ends run programs of Debian 12 packages under `urnic run --`, as an ordinary user in a network namespace that only has",
              "loopback. `tools/programs_rows.py` has the commands of each row. The columns:"],
    "siw": ["The same programs: one end under `urnic run --`, the other on Linux siw in the QEMU guest of [interop.md](interop.md). The guest is",
            "emulated, so these rows (`tools/programs_guest_rows.py`) move less data. The columns:"],
    "rxe": ["The same programs, with Linux rdma_rxe at the other end. The columns:"],
}
TAILS = {
    "urnic": ["- perftest's \"BW peak\" is meaningless over the kernel's TCP: it is measured between two completions, and a Send or Write completes",
              "  as soon as the kernel has accepted it. The average is correct.",
              "- Rows \"sockets\" are programs that do not use RDMA, run with `urnic run --sockets --`.",
              "- Rows \"ib-like\" and the pingpongs, except \"as iWARP\", run with `URNIC_IDENTITY=ib-like` over iWARP.",
              "- Rows of fi_pingpong, curl, iperf3, rcopy and iscsi-test-cu run their client by `sh -c`.",
              "- \"-\": the row is for the other transport."],
    "siw": ["Rows marked + were captured: tshark found no malformed frame, every MPA CRC right, and every byte in a start-up frame or an FPDU. If",
            "siw serves, urnic waits 100 ms before its first FPDU (`first_fpdu_delay_ms`, [interop.md](interop.md))."],
    "rxe": [],
}


def table(group, results, columns):
    lines = HEADS[group] + [""] + [f"- {c.name}: {c.text}" for c in columns] + [""]
    lines += TAILS[group] + ([""] if TAILS[group] else [])
    lines += ["| row | the client's arguments | " + " | ".join(c.name for c in columns) + " |", "|---" * (2 + len(columns)) + "|"]
    notes = []
    for row, outcomes in results:
        cells = []
        for c in columns:
            kind, why = outcomes[c.name]
            if why:
                if why not in notes:
                    notes.append(why)
                kind += f" ({notes.index(why) + 1})"
            cells.append(kind)
        if set(cells) == {"-"}:
            continue  # of the other transport
        how = row.how.replace("|", "\\|")
        lines.append(f"| {row.name}{' +' if row.captured and group == 'siw' else ''} | `{how}` | " + " | ".join(cells) + " |")
    lines += [""] + [f"({i}) {note}." for i, note in enumerate(notes, 1)] if notes else []
    return "\n".join(lines) + "\n"


def write(path, group, results, columns):
    """Puts the group's table into the file."""
    put(path, group, "tools/programs", table(group, results, columns))


def put(path, group, tool, text):
    """Replaces the text between the two lines that name the group and the tool."""
    begin, end = f"<!-- {group}: written by {tool} -->\n", f"<!-- end of {group} -->\n"
    with open(path, encoding="utf-8") as f:
        before, found, rest = f.read().partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise SystemExit(f"{os.path.basename(tool)}: {path} has no lines '{group}: written by {tool}' for the table")
    with open(path, "w", encoding="utf-8") as f:
        f.write(before + begin + text + end + after)
