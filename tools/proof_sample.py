"""tools/mutants --sample: which places a seed chooses, and the program with all of them (docs/proof.md)."""
import concurrent.futures
import json
import os
import random
import re
import shlex
import subprocess
import sys
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "tests", "mutants")]
import generate  # noqa: E402
import places  # noqa: E402
import proof_items as proof  # noqa: E402
import proof_run  # noqa: E402

NOBODY = "none"  # the mutant that is nowhere
DROPIN = ("dropin", "rsockets")  # are compiled with headers of their own
WRONG = re.compile(r"error:|required from|required by|In instantiation|\bhere$")
Edit = namedtuple("Edit", "put")


def rooms_of(root):
    """The rooms whose tests test_mutants has."""
    return re.search(r"set\(URNIC_MUTANT_ROOMS\s([^)]*)\)", proof.read(os.path.join(root, "cmake", "Mutants.cmake")))[1].split()


def name_of(place):
    return f"{place.file}:{place.line}:{place.kind}:{place.span[0]}-{place.span[1]}"


def room_of(place):
    return place.file.split("/")[0]


def order(root, rooms, seed):
    """All places of these rooms, in the order in which the seed takes them."""
    found = []
    for room in sorted(rooms):
        for folder in (room, *(f"{room}/{name}" for name in proof.folders(root, room))):
            for name in sorted(os.listdir(os.path.join(root, "src", folder))):
                if name.endswith((".cpp", ".h")):
                    found += places.find(f"{folder}/{name}", proof.read(os.path.join(root, "src", folder, name)))
    random.Random(seed).shuffle(found)
    return found


def write(root, folder, chosen):
    files = {}
    for place in chosen:
        if place.file not in files:
            files[place.file] = generate.File(root, place.file)
        files[place.file].found.append((name_of(place), place.body, place.span, Edit(place.put)))
    generate.write_tree(os.path.join(folder, "mutated"), files, {}, [NOBODY, *map(name_of, chosen)], marked=False)


class Compiler:
    """Tells which mutants do not compile, without compiling their files to the end."""

    def __init__(self, folder):
        self.mutated = os.path.join(folder, "mutated")
        with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as f:
            commands = json.load(f)
        self.commands = {}
        for entry in commands:
            for target in ("urnic_mutated_src", "urnic_mutated_dropin"):
                if f"{target}.dir/" in entry["command"]:
                    self.commands.setdefault(target, (entry["directory"], self.plain(entry)))
        self.good = set()  # (file, text)

    @staticmethod
    def plain(entry):
        """Without ccache, output and source."""
        words = shlex.split(entry["command"])
        words = words[next(i for i, w in enumerate(words) if re.search(r"(\+\+|cc|clang)[-\d.]*$", w) and "ccache" not in w):]
        at = words.index("-o")
        return [w for w in words[:at] + words[at + 2:] if w not in ("-c", entry["file"])]

    def check(self, file):
        """The mutants of a file that do not compile."""
        path = os.path.join(self.mutated, file)
        text = proof.read(path)
        if (file, text) in self.good:
            return set()
        directory, command = self.commands["urnic_mutated_dropin" if file.split("/")[0] in DROPIN else "urnic_mutated_src"]
        source = ["-include", path, "-x", "c++", os.devnull] if file.endswith(".h") else [path]
        done = subprocess.run([*command, "-w", "-fsyntax-only", *source], cwd=directory, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            self.good.add((file, text))
            return set()
        return self.wrong(done.stderr) & set(mutants_in(text)) or set(mutants_in(text))

    def wrong(self, said):
        """The mutants whose lines the compiler's words name."""
        found = set()
        for line in said.splitlines():
            m = re.match(r"(?:In file included from )?(\S*mutated/(\w+/\w+\.(?:cpp|h))):(\d+)", line)
            if m and WRONG.search(line) and os.path.exists(os.path.join(self.mutated, m[2])):
                lines = proof.read(os.path.join(self.mutated, m[2])).split("\n")
                found.update(mutants_in("\n".join(lines[:int(m[3])]))[-1:])
        return found


def mutants_in(text):
    return re.findall(r'mutant_is\("([^"]+)"\)', text)


def doubtful(chosen):
    """The files worth a look before the build: arguments that changed places are the most that does not compile, and a mistake in a
    header is one in all that include it. The build finds the others."""
    return sorted({p.file for p in chosen if p.kind == "arguments" or p.file.endswith(".h")})


def build(root, folder, wanted, ordered):
    """The program, and the first of the ordered places that compile."""
    bad = set()
    compiler = None
    while True:
        chosen = [p for p in ordered if name_of(p) not in bad][:wanted]
        write(root, folder, chosen)
        if not proof_run.is_configured(folder):
            # Not the sources together: a file of a group that is mutated for the first time would not be compiled again.
            said = proof_run.carry_out(folder, [proof_run.configuration(root, folder, "TESTS")])
            if said is not None:
                proof_run.give_up(said)
        compiler = compiler or Compiler(folder)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = set().union(*pool.map(compiler.check, doubtful(chosen)))
        if not found:
            said = proof_run.compile_all(root, folder, ("test_mutants", "urnic_mutated_command"), ("--", "-k", "0"))
            if said is None:
                return os.path.join(folder, "test_mutants"), chosen
            found = compiler.wrong(said)
            if not found:
                proof_run.give_up(said)
        bad |= found
        print(f"{len(found)} do not compile, {len(bad)} in all: the next places of the seed instead", flush=True)
