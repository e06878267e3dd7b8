"""tools/mutants --sample: which tests run under a mutant that nobody wrote down, and whether one of them notices it."""
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import proof_changes
import proof_items as proof
import proof_sample
from proof_run import CLEAR, Limits, run, run_command
from proof_sample import NOBODY, name_of, room_of

# Rooms that carry out what others decide, though they include little of them. Of the neighbours of a room only these run their
# tests of kind real as well.
UPPER = ("engine", "device", "dropin")
UNDER_THEM = ("net", "tcp", "mpa", "ddp_rdma", "reassembly", "fastpath", "wire", "verbs", "ib", "ib_cm", "roce", "iwarp",
              "engine", "config")
FURTHER = {**{room: UPPER for room in UNDER_THEM}, "device": ("dropin",)}  # which the drop-in has behind the public headers
# A mutant that asks for all memory, or writes without end, shall not take the machine with it: in kB, and in blocks of 512 bytes.
MOST = ("-v 16777216", "-f 4194304")
SPARE = 20  # seconds, besides a multiple of what the tests take without a mutant
# Of 100 mutants, so many must be noticed: of those in CORE together, and of all others.
CORE = ("tcp", "ib", "iwarp", "roce", "ddp_rdma", "verbs", "engine", "ib_cm")
BARS = {True: 85, False: 75}
ROUNDS = 3  # runs of real tests, less those that failed only once


def neighbours(root):
    """{room: the rooms whose tests tell of it, itself first}: those that include it directly, and those of FURTHER."""
    includes = collections.defaultdict(set)
    src = os.path.join(root, "src")
    for room in sorted(os.listdir(src)):
        for folder, _, names in os.walk(os.path.join(src, room)):
            for name in sorted(names):
                if name.endswith((".h", ".cpp")):
                    for included in re.findall(r'#include "(\w+)/', proof.read(os.path.join(folder, name))):
                        includes[included].add(room)
    return {room: [room, *sorted((includes[room] | set(FURTHER.get(room, ()))) - {room})]
            for room in sorted(os.listdir(src))}


def load_tests(root, program):
    """{(room, "virtual" or "real"): names of tests}, as the program lists them. Tests of kind outside are in none."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "list.json")
        subprocess.run([program, "--gtest_list_tests", "--gtest_output=json:" + out], env=dict(os.environ, URNIC_MUTANT=NOBODY),
                       stdout=subprocess.DEVNULL, check=True)
        with open(out, encoding="utf-8") as f:
            suites = json.load(f)["testsuites"]
    real = proof.load_real_tests(root)
    path = os.path.join(root, "tests", "outside_tests.txt")
    lines = proof.read(path).splitlines() if os.path.exists(path) else []
    outside = {tuple(line.split()) for line in lines if line.startswith("tests/")}
    found = collections.defaultdict(list)
    for suite in suites:
        for test in suite["testsuite"]:
            file = re.search(r"tests/(\w+)/\w+\.cpp$", test["file"])
            cases = {(file[0], ".".join(n)) for n in proof.source_names(suite["name"], test["name"])} if file else set()
            if file and (file[0],) not in outside and not cases & outside:
                found[file[1], "real" if file[0] in real else "virtual"].append(f"{suite['name']}.{test['name']}")
    return found


def load_commands(program):
    """{name: command}: the tests that drive the command `urnic`, which is the mutated one instead. Two need the drop-in libraries."""
    folder = os.path.dirname(os.path.abspath(program))
    mutated = os.path.join(folder, "mutants", "urnic")
    if not os.path.exists(mutated):
        return {}
    said = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1", "-R", r"^cli\.", "-E", "^cli.(run|devices)$"],
                          capture_output=True, text=True, check=True).stdout
    found = {}
    for test in json.loads(said)["tests"]:
        command = test.get("command", [])
        command = command[command.index("--") + 1:] if "--" in command else command  # without tools/real-test
        labels = next(p["value"] for p in test["properties"] if p["name"] == "LABELS")
        if "outside" not in labels and command[1:] == [os.path.join(folder, "bin", "urnic")]:
            found[test["name"]] = [command[0], mutated]
    return found


class Tests:
    """The tests of the rooms, how long they take without a mutant, and which of them fail then."""

    def __init__(self, root, program):
        self.program = program
        self.tests = load_tests(root, program)
        self.neighbours = neighbours(root)
        self.commands = load_commands(program)
        self.tests.update({(name, "real"): [name] for name in self.commands})
        self.neighbours.setdefault("cli", []).extend(self.commands)
        self.known = {}  # {(room, kind): Limits}
        self.left_out = []
        self.lock = threading.Lock()

    def limits(self, room, kind):
        """How long the tests of a room may take: several times as long as without a mutant. Asked for the first time, it finds out
        and leaves out those that fail all the same."""
        with self.lock:
            if (room, kind) not in self.known:
                result = self.run(NOBODY, room, self.tests[room, kind], Limits(600, 1200, MOST))
                failed = set(result.failed)
                if result.outcome not in CLEAR:
                    self.left_out.append(f"the {kind} tests of {room}: {result.outcome}")
                    self.tests[room, kind] = []
                for test in [t for t in self.tests[room, kind] if sources(t) & failed]:
                    self.left_out.append(f"{test} fails without a mutant")
                    self.tests[room, kind].remove(test)
                print(f"{kind} tests of {room}: {len(self.tests[room, kind])}, {result.seconds:.0f} s", flush=True)
                seconds = int(result.seconds)
                self.known[room, kind] = Limits(SPARE + 5 * seconds, 60 + 10 * seconds, MOST, fail_fast=True)
            return self.known[room, kind]

    def run(self, mutant, room, tests, limits):
        if room in self.commands:
            return run_command(room, self.commands[room], mutant, limits)
        return run(self.program, mutant, tests, limits=limits)

    def first(self, place, kind, rooms):
        """(room, result) of the first of these rooms whose tests notice it; None if none do."""
        for room in rooms:
            limits = self.limits(room, kind)
            if self.tests[room, kind]:
                result = self.run(name_of(place), room, self.tests[room, kind], limits)
                if noticed(result):
                    return room, result
        return None

    def repeats(self, place, room, result):
        """What real tests notice again when nothing runs beside them, or None."""
        left = list(self.tests[room, "real"])
        for _ in range(ROUNDS):
            suspects = [t for t in left if sources(t) & set(result.failed)] or left
            again = self.run(name_of(place), room, suspects, self.limits(room, "real"))
            if noticed(again):
                return again
            left = [t for t in left if t not in suspects]
            if not left:
                return None
            result = self.run(name_of(place), room, left, self.limits(room, "real"))
            if not noticed(result):
                return None
        return None

    def rooms(self, place, kind):
        """Whose tests of this kind run under it, one after the other."""
        room = room_of(place)
        return [near for near in self.neighbours[room] if (near, kind) in self.tests and self.tests[near, kind]
                and (kind == "virtual" or near == room or near in UPPER or near in self.commands)]


def sources(test):
    return proof.source_names(*test.split(".", 1))


def noticed(result):
    """A crash or a test without end counts here: somebody would look into it."""
    return result.outcome not in CLEAR or result.outcome == "killed"


def note(place, room, result, otherwise="SURVIVED"):
    """Prints and returns how a place was noticed, or that it was not."""
    how = None
    if result:
        how = result.outcome if result.outcome != "killed" else min((".".join(t) for t in result.failed), default="failed")
        how = f"{room}: {how}"
    print(f"{f'{place.file}:{place.line}':36} {place.kind:10} {'noticed by ' + how if how else otherwise}", flush=True)
    return how


def try_all(tests, chosen, jobs):
    """{place: how it was noticed, or None}. Virtual tests come first; where they notice nothing, the real ones run, some beside each
    other, and what fails there has to fail alone."""
    how = {}

    def virtual(place):
        found = tests.first(place, "virtual", tests.rooms(place, "virtual"))
        if found:
            how[place] = note(place, *found)
        else:
            note(place, None, None, "survived the virtual tests")

    def real(place):
        found = tests.first(place, "real", tests.rooms(place, "real"))
        if found:
            suspected[place] = found
        else:
            how[place] = note(place, None, None)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(virtual, chosen))
    print(f"{len(how)} of {len(chosen)} are noticed by virtual tests", flush=True)
    suspected = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(real, [p for p in chosen if p not in how]))
    for place in sorted(suspected):
        room, result = suspected[place]
        again = tests.repeats(place, room, result)
        rooms = tests.rooms(place, "real")
        rooms = rooms[rooms.index(room) + 1:]
        while not again and rooms and (found := tests.first(place, "real", rooms)):
            room, again = found[0], tests.repeats(place, *found)
            rooms = rooms[rooms.index(room) + 1:]
        how[place] = note(place, room, again)
    return how


def shortened(text, other, most=150):
    """The part of a line where it differs from the other."""
    same = len(os.path.commonprefix([text, other]))
    begin = max(0, same - most // 3)
    cut = text[begin:begin + most]
    return ("..." if begin else "") + cut + ("..." if begin + most < len(text) else "")


def show(tests, how):
    """Prints the survivors, the counts of the rooms and the groups. Whether each group reaches its bar."""
    for place in (p for p, by in how.items() if not by):
        ran = ", ".join(tests.rooms(place, "virtual")) or "none"
        real = ", ".join(dict.fromkeys(room.split(".")[0] + ".*" * ("." in room) for room in tests.rooms(place, "real"))) or "none"
        print(f"survived: src/{place.file}:{place.line} ({place.kind})\n    {shortened(place.before, place.after)}\n"
              f"  → {shortened(place.after, place.before)}\n    tests of: {ran}; real: {real}")
    for line in tests.left_out:
        print(f"left out: {line}")
    counts = collections.Counter((room_of(p), bool(by)) for p, by in how.items())
    for room in sorted({room for room, _ in counts}):
        print(f"{room:12} {counts[room, True]} of {counts[room, True] + counts[room, False]} noticed")
    good = True
    for core, bar in BARS.items():
        group = {by: sum(n for (room, b), n in counts.items() if b == by and (room in CORE) == core) for by in (True, False)}
        if total := sum(group.values()):
            percent = 100 * group[True] / total
            good = good and percent >= bar
            print(f"{' '.join(CORE) if core else 'all others'}: {group[True]} of {total}, {percent:.0f} % (at least {bar} %)")
    return good


def sample(args):
    """tools/mutants --sample: its exit status."""
    start = time.monotonic()
    seed = args.seed or proof_changes.git(args.root, "rev-list", "--count", "HEAD").strip()
    known = proof_sample.rooms_of(args.root)
    if odd := [room for room in args.rooms if room not in known]:
        sys.exit(f"mutants: no room {odd[0]} has mutants; there are {' '.join(known)}")
    ordered = proof_sample.order(args.root, args.rooms or known, seed)
    print(f"{args.sample} of {len(ordered)} places, seed {seed}", flush=True)
    if args.list:
        for p in ordered[:args.sample]:
            print(f"src/{p.file}:{p.line} ({p.kind})\n    {shortened(p.before, p.after)}\n  → {shortened(p.after, p.before)}")
        return 0
    program, chosen = args.program, ordered[:args.sample]
    if not program:
        folder = os.path.abspath(args.build or os.path.join(args.root, "build-sample"))
        program, chosen = proof_sample.build(args.root, folder, args.sample, ordered)
    print(f"built after {time.monotonic() - start:.0f} s", flush=True)
    tests = Tests(args.root, program)
    how = try_all(tests, chosen, args.jobs)
    how = {place: how[place] for place in sorted(chosen)}
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"seed": seed, "mutants": [dict(p._asdict(), name=name_of(p), noticed=by) for p, by in how.items()]}, f, indent=1)
    good = show(tests, how)
    print(f"{sum(map(bool, how.values()))} of {len(how)} noticed, seed {seed}, {time.monotonic() - start:.0f} s")
    return 0 if good else 1
