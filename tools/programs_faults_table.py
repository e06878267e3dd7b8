"""Runs all rows of tools/programs --faults, several at a time, and writes the table of docs/programs-faults.md."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

from programs_faults import KINDS, SIDES

COLUMNS = ("127.0.0.1", "memif", "roce-udp")
AT_A_TIME = 4  # most of a row's time is waiting
# The selection that ctest runs: each transport, and both kinds of programs, in seconds.
SHORT = {"127.0.0.1": ("rping", "ib_write_bw -R", "rstream -T v -S 65536 -I 100 -C 10", "fio verb=write"), "memif": ("rping", "ib_send_bw -R"),
         "roce-udp": ("rping", "ib_atomic_bw without -R")}
COMMAND = "tools/programs --faults kill,stop,pause --long --write"


def cases(columns, kinds, args):
    """(row, column, kind, side) of everything that can run, also of rows that end quickly."""
    for column in columns:
        for row in column.rows():
            if row.server is None or (row.fixed and column.name != "127.0.0.1") or row.on not in (column.transport, "both") or column.name in row.but:
                continue
            if not re.search(args.only, row.name) or not (args.long or args.only or row.name in SHORT.get(column.name, ())):
                continue
            if any(shutil.which(p) is None for p in (row.needs, row.server[0])):
                continue
            for kind in kinds:
                for side in SIDES:
                    if args.long or args.only or kind == "kill":
                        yield row, column, kind, side


def run_case(script, args, row, column, kind, side):
    """Runs one case: (passed, text)."""
    done = subprocess.run(["unshare", "-Urnmpf", "--mount-proc", "--kill-child", sys.executable, script, "--build", args.build, "--inside", row.name, "--over", column.name,
                           "--fault", f"{kind}:{side}"], capture_output=True, text=True, timeout=300)
    words = done.stdout.strip().split("\n")[-1].split(" ", 2) if done.stdout.strip() else []
    if len(words) < 3:
        return False, done.stderr.strip()[-200:] or "no output"
    return words[0] == "ok", words[2]


def run(script, columns, kinds, args):
    """Runs all cases. Returns {(column, row): {(kind, side): (passed, text)}}."""
    results = {}
    pool = concurrent.futures.ThreadPoolExecutor(AT_A_TIME if args.long or args.only else 2)
    try:
        futures = {pool.submit(run_case, script, args, *case): case for case in cases(columns, kinds, args)}
        for row, column, kind, side in futures.values():
            results.setdefault((column.name, row.name), {})[kind, side] = None
        for future in concurrent.futures.as_completed(futures):
            row, column, kind, side = futures[future]
            passed, text = future.result()
            results[column.name, row.name][kind, side] = (passed, text)
            print(f"{'ok      ' if passed else 'FAILED  '} {row.name} over {column.name}, {side} {kind}: {text}", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)  # do not start the remaining cases when interrupted
    return results


def merged(results, folder):
    """Adds these results to those of earlier runs in `folder`, and stores them there."""
    path = os.path.join(folder, "faults.json")
    kept = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            kept = json.load(f)
    for (column, row), cells in results.items():
        kept.setdefault(column, {}).setdefault(row, {}).update({f"{kind} {side}": list(r) for (kind, side), r in cells.items()})
    with open(path, "w", encoding="utf-8") as f:
        json.dump(kept, f, indent=1)
    return {(column, row): {tuple(what.split(" ")): tuple(r) for what, r in cells.items()} for column in kept for row, cells in kept[column].items()}


def cell(result, notes):
    if result is None:
        return ""
    passed, text = result
    ended = re.fullmatch(r"ended after ([0-9.]+) s, exit code [-0-9, ]+(, nothing under way|, while it connected)?", text)
    if passed and ended:
        return f"{ended[1]} s" + (", connecting" if ended[2] == ", while it connected" else "")
    later = re.fullmatch(r"(waits, because its peer's kernel answers); killed then: ended after ([0-9.]+) s, .*", text)
    if passed and text.startswith("waits, because its peer's kernel answers; killed then: serves on"):
        return "waits, then serves on"
    if passed and later:
        text, words = later[1], f"waits; {later[2]} s"
    elif passed and text == "went on to its end":
        return "goes on"
    elif passed and text.startswith("serves on"):
        return "serves on"
    elif passed and text.startswith("too quick"):
        return "too quick"
    elif passed:
        words, _, text = text.partition(": ")
        words = "notified, waits" if words.startswith("notified") else words
    else:
        words = "no"
    if text not in notes:
        notes.append(text)
    return f"{words} ({notes.index(text) + 1})"


def write(path, results, kinds):
    begin, end = "<!-- written by tools/programs --faults -->\n", "<!-- end -->\n"
    with open(path, encoding="utf-8") as f:
        before, found, rest = f.read().partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise SystemExit(f"programs: {path} has no lines for its table")
    notes, lines = [], []
    for name in dict.fromkeys(column for column, _ in results):
        lines += ["", f"### {name}", ""]
        words = {"kill": "killed", "stop": "stopped", "pause": "stopped for 1 s"}
        lines.append("| row | " + " | ".join(f"{side} {words[kind]}" for kind in kinds for side in SIDES) + " |")
        lines.append("|---" * (1 + len(kinds) * len(SIDES)) + "|")
        for (column, row), cells in results.items():
            if column == name:
                lines.append(f"| {row} | " + " | ".join(cell(cells.get((kind, side)), notes) for kind in kinds for side in SIDES) + " |")
    lines += [""] + [f"({i}) {note.rstrip('.')}." for i, note in enumerate(notes, 1)] + [""]
    with open(path, "w", encoding="utf-8") as f:
        f.write(before + begin + "\n".join(lines) + end + after)


def main(script, columns, args):
    """Exit code."""
    kinds = args.faults.split(",")
    wrong = [k for k in kinds if k not in KINDS]
    if wrong:
        sys.exit(f"programs: unknown fault {wrong[0]}; faults: {', '.join(KINDS)}")
    columns = [c for c in columns if c.group == "urnic" and (args.over or c.name in COLUMNS)]
    if args.write and not args.keep and (args.only or args.over or not args.long or kinds != list(KINDS)):
        sys.exit(f"programs: --write needs the whole table: {COMMAND}; or --keep DIR, which merges partial runs")
    results = run(script, columns, kinds, args)
    table = merged(results, args.keep) if args.keep else results
    if args.write:
        write(os.path.join(os.path.dirname(os.path.dirname(script)), "docs", "programs-faults.md"), table, KINDS)
    if not results:
        print("skipped: no case can run here")
        return 77
    return 0 if all(r is not None and r[0] for cells in results.values() for r in cells.values()) else 1
