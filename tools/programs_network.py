"""tools/programs --network: the rows on a bad network, which is a plan of faults (docs/fault.md) for what both ends send.

lossy    bytes are late, in pieces, lost and repaired. Nothing ends a connection, so each row must work as without a plan.
failing  FPDUs are corrupted and connections are reset. Each program must end by itself, not by a signal, and urnic must say nothing; or it
         is one that ends on no device (programs_faults_known.py). Over RoCE nothing of this ends a connection."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time

from programs_faults import CRASHES, SIDES, Case, ports_left
from programs_faults_known import UD_ROWS, known
from programs_run import READY, Outcome, prepare_run, run_ends, wait_for
from programs_table import put

PLANS = {
    "lossy": {"tcp": "loss=0.005,rto=20ms,delay=200us,jitter=200us,reseg=0.05,stall=0.002:50ms,close_window=0.002:50ms,seed=7",
              "udp": "loss=0.0002,dup=0.0002,reorder=0.0002,corrupt=0.0002,delay=200us,jitter=200us,seed=7"},
    "failing": {"tcp": "corrupt=0.004,reset=0.004,skip_handshake,seed=7"},
}
KINDS = tuple(PLANS)
COLUMNS = ("127.0.0.1", "roce-udp")
AT_A_TIME = 2
PATIENCE = 40  # seconds that programs may take to end when their connections have ended
# What programs say when data and the end of its connection arrive together, on any device.
NOISE = {"fio": ("Work Request Flushed Error",)}
UNRELIABLE = UD_ROWS + r"|-c UC|ibv_uc"


def plan_of(kind, row, column):
    """The plan for a row over a column, or None: the row does not run."""
    if "URNIC_CONFIG" in row.settings:
        return None  # devices of its own
    wire = "udp" if column.transport == "roce" or "as RoCE" in row.name else "tcp"
    if wire == "udp" and re.search(UNRELIABLE, row.name):
        return None  # nothing repairs the loss of a datagram
    return PLANS[kind].get(wire)


def inside(kind, row, column):
    """In the namespace: sets the plan, and returns what runs the ends."""
    os.environ["URNIC_FAULTS"] = plan_of(kind, row, column)
    for program, lines in NOISE.items():
        if row.name.startswith(program):
            row.noise = (*row.noise, *lines)
    row.seconds = max(row.seconds, 120)
    return failing if kind == "failing" else run_ends


def failing(row, column, urnic, folder):
    """Runs both ends, called like programs_run.run_ends."""
    run = prepare_run(row, column, urnic, folder)
    begin = time.monotonic()
    ends, stays = [], None
    try:
        if row.server:
            stays = column.server(row, run, folder)
            if not wait_for(row, column, stays, begin + READY):
                return Outcome(False, f"the server did not listen: {stays.text('err').strip()[-120:]}")
        wrong = column.prepare(row, folder)
        if wrong and not re.search("iscsi|tgtd", row.name):
            return Outcome(False, wrong)
        for i in range(row.clients):
            ends.append(column.client(row, run, folder, i, f"client{i}"))
            if i + 1 < row.clients:
                time.sleep(row.pause)
        until = time.monotonic() + max(PATIENCE, row.clients // 10)
        codes = [e.wait(until) for e in ends]
        if stays and not row.server_stays:
            ends.append(stays)
            codes.append(stays.wait(min(until, time.monotonic() + PATIENCE / 2)))
        said = judged(row, ends, codes, time.monotonic() - begin)
    finally:
        for e in (*ends, stays):
            if e is not None:
                e.end(e is not stays or row.killed)
    against = column.finish(row)
    left = ports_left(column)
    return Outcome(False, against or f"ports left: {sorted(left)}") if said.ok and (against or left) else said


def judged(row, ends, codes, seconds):
    """The outcome of programs whose connections may have ended."""
    for end, code in zip(ends, codes):
        text = end.text("err")
        said = re.search(r"^urnic.*", text, re.M)
        if said:
            return Outcome(False, f"{end.name} printed: {said[0][:120]}")
        if "Sanitizer" in text:
            return Outcome(False, f"{end.name}: {text.strip()[-200:]}")
        if code in CRASHES:
            why = by_any_side(row, "crashes")
            return Outcome(bool(why), f"crashes: {why}" if why else f"{end.name} crashed: signal {-code}")
    if None in codes:
        why = by_any_side(row, "waits")
        return Outcome(bool(why), f"waits: {why}" if why else f"{ends[codes.index(None)].name} had not ended after {seconds:.0f} s")
    shown = sorted({c for c in codes if c is not None})
    return Outcome(True, f"exit code {', '.join(map(str, shown))}", seconds)


def by_any_side(row, what):
    return next((why for side in SIDES if (why := known(row, what, Case("kill", side)))), "")


# ---- all rows

def cases(columns, kinds, args):
    for column in columns:
        for row in column.rows():
            if (row.fixed and column.name != "127.0.0.1") or row.on not in (column.transport, "both") or column.name in row.but or row.missing:
                continue
            if not re.search(args.only, row.name) or not (args.long or args.only or row.short):
                continue
            if row.server is None or any(shutil.which(p) is None for p in (row.needs, row.server[0])):
                continue
            for kind in kinds:
                if plan_of(kind, row, column):
                    yield row, column, kind


def run_case(script, args, row, column, kind):
    """Runs one case in a namespace of its own: (passed, text)."""
    done = subprocess.run(["unshare", "-Urnmpf", "--mount-proc", "--kill-child", sys.executable, script, "--build", args.build, "--inside", row.name, "--over", column.name,
                           "--network", kind], capture_output=True, text=True, timeout=400)
    words = done.stdout.strip().split("\n")[-1].split(" ", 2) if done.stdout.strip() else []
    if len(words) < 2:
        return False, done.stderr.strip()[-200:] or "no output"
    return words[0] == "ok", words[2] if len(words) > 2 else ""


def merged(results, folder):
    """Adds these results to those of earlier runs in `folder`, and stores them there."""
    path = os.path.join(folder, "network.json")
    kept = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            kept = json.load(f)
    for (column, row, kind), outcome in results.items():
        kept.setdefault(row, {})[f"{kind} {column}"] = list(outcome)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(kept, f, indent=1)
    return kept


def table(kept):
    heads = [f"{kind} {column}" for kind in KINDS for column in COLUMNS if (kind, column) != ("failing", "roce-udp")]
    lines = [f"- {kind}, {wire}: `{plan}`" for kind, plans in PLANS.items() for wire, plan in plans.items()]
    lines += ["", "| row | " + " | ".join(heads) + " |", "|---" * (1 + len(heads)) + "|"]
    notes = []
    for row, cells in kept.items():
        shown = []
        for head in heads:
            passed, text = cells.get(head, (True, "-"))
            if passed and (not text or text == "-" or text.startswith("exit code")):
                shown.append(text or "works")
                continue
            if text not in notes:
                notes.append(text)
            shown.append(f"{'waits' if passed else 'no'} ({notes.index(text) + 1})")
        lines.append(f"| {row} | " + " | ".join(shown) + " |")
    lines += [""] + [f"({i}) {note.rstrip('.')}." for i, note in enumerate(notes, 1)] if notes else []
    return "\n".join(lines) + "\n"


def main(script, columns, args):
    """Exit code."""
    kinds = args.network.split(",")
    wrong = [k for k in kinds if k not in KINDS]
    if wrong:
        sys.exit(f"programs: unknown network {wrong[0]}; networks: {', '.join(KINDS)}")
    columns = [c for c in columns if c.name in COLUMNS]
    if not columns:
        sys.exit(f"programs: --network runs over {' and '.join(COLUMNS)}")
    if args.write and not args.keep and (args.only or len(columns) != len(COLUMNS) or kinds != list(KINDS)):
        sys.exit(f"programs: --write needs the whole table: --network {','.join(KINDS)}; or --keep DIR, which merges partial runs")
    results = {}
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        futures = {pool.submit(run_case, script, args, *case): case for case in cases(columns, kinds, args)}
        for future in concurrent.futures.as_completed(futures):
            row, column, kind = futures[future]
            passed, text = results[column.name, row.name, kind] = future.result()
            if args.keep:
                merged({(column.name, row.name, kind): (passed, text)}, args.keep)
            print(f"{'ok      ' if passed else 'FAILED  '} {row.name} over {column.name}, {kind}{': ' + text if text else ''}", flush=True)
    ordered = {(c.name, r.name, k): results[c.name, r.name, k] for r, c, k in cases(columns, kinds, args)}
    kept = merged(ordered, args.keep) if args.keep else {}
    if args.write:
        if not kept:
            for (column, row, kind), outcome in ordered.items():
                kept.setdefault(row, {})[f"{kind} {column}"] = outcome
        put(os.path.join(os.path.dirname(os.path.dirname(script)), "docs", "programs-network.md"), "network", "tools/programs --network", table(kept))
    if not results:
        print("skipped: no case can run here")
        return 77
    return 0 if all(passed for passed, _ in results.values()) else 1
