"""The tables of docs/programs.md, as tools/programs writes them: one for each group of columns, between two lines that name it."""
import os

HEADS = {
    "urnic": ["Programs of Debian 12 as their packages have them, both ends under `urnic run --`, as an ordinary user in a network namespace",
              "with nothing but loopback. What each row runs is in `tools/programs_rows.py`; how it works is in",
              "[decisions/dropin.md](decisions/dropin.md). The columns:"],
    "siw": ["The same programs, one end under `urnic run --`, the other one on Linux siw in the QEMU guest of [interop.md](interop.md). The rows are in",
            "`tools/programs_guest_rows.py`; they move less, since the guest is emulated. The columns:"],
    "rxe": ["As with siw, over Linux rdma_rxe. The columns:"],
}
TAILS = {
    "urnic": ["Over the kernel's TCP a completion of a Send or Write means that the kernel has it, so perftest's \"BW peak\", which",
              "is taken between two completions, means nothing there; its average does.",
              "",
              "Rows \"sockets\" are programs that know nothing of RDMA, under `urnic run --sockets --`.",
              "",
              "Rows \"ib-like\" and those of pingpong in the columns of iWARP, but for the one \"as iWARP\", run with",
              "`URNIC_IDENTITY=ib-like`. A row is in the columns of the transports that it is meant for."],
    "siw": ["Rows marked + were captured on the wire: tshark found nothing malformed, every MPA CRC good, and every octet in a start-up",
            "frame or an FPDU. Towards siw as the server ours waits 100 ms before its first FPDU (`first_fpdu_delay_ms`,",
            "[interop.md](interop.md))."],
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
    """The group's table in its place in the file."""
    put(path, group, "tools/programs", table(group, results, columns))


def put(path, group, tool, text):
    """What `tool` writes there between the two lines that name the group."""
    begin, end = f"<!-- {group}: written by {tool} -->\n", f"<!-- end of {group} -->\n"
    with open(path, encoding="utf-8") as f:
        before, found, rest = f.read().partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise SystemExit(f"{os.path.basename(tool)}: {path} has no place for the table of {group}")
    with open(path, "w", encoding="utf-8") as f:
        f.write(before + begin + text + end + after)
