#!/usr/bin/env python3
"""generate.py [--root DIR] OUT - the sources with all breaches of tests/mutants/*.toml in them.

A function that mutants touch gets its body once for each of them, and once as it is; which one runs is
asked when the function is entered (mutant_is, tests/mutants/mutant_switch.h). OUT receives the changed
files under their own paths, so that OUT in front of src/ in the order of includes is the mutated tree,
the names of the mutants (names.inc) and, for CMake, which files there are and which others include a
changed header (sources.cmake).

A `find` that does not occur exactly once in its function is an error that names the file and the line of
its table. Spaces, line breaks and comments do not count when it is looked for.
"""
import argparse
import hashlib
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools"))
import proof_items as proof  # noqa: E402

TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|[A-Za-z_]\w*"""
                   r"""|\d(?:'?[\w.])*|\S""", re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
OPEN, CLOSE = "([{", ")]}"
SWITCH = "tests/mutants/mutant_switch.h"


class Code:
    """The tokens of a text, comments left out: parallel lists of what and where."""

    def __init__(self, text):
        found = [m for m in TOKEN.finditer(text) if not m[0].startswith(("//", "/*"))]
        self.text = text
        self.tokens = [m[0] for m in found]
        self.spans = [m.span() for m in found]

    def match(self, at):
        """The place behind the bracket that closes the one at `at`; None without one."""
        depth = 0
        for i in range(at, len(self.tokens)):
            if self.tokens[i] in OPEN:
                depth += 1
            elif self.tokens[i] in CLOSE:
                depth -= 1
                if depth == 0:
                    return i + 1
        return None

    def body(self, at):
        """The place of the `{` of a definition whose parameters open at `at`; None for anything else."""
        at = self.match(at)
        while at is not None and at < len(self.tokens):
            t = self.tokens[at]
            if t == "{":
                return at
            if t in ("const", "noexcept", "override", "final", "mutable", "&"):
                at += 1
            elif t in "([" and self.tokens[at - 1] == "noexcept" or t == "[":
                at = self.match(at)
            elif t == "-" and self.tokens[at + 1] == ">":  # -> type
                while at < len(self.tokens) and self.tokens[at] not in "{;":
                    at += 1
            elif t == ":":  # members of a constructor
                while True:
                    at += 1
                    while at < len(self.tokens) and self.tokens[at] not in "({;":
                        at += 1
                    if at >= len(self.tokens) or self.tokens[at] == ";":
                        return None
                    at = self.match(at)
                    if at is None or at >= len(self.tokens):
                        return None
                    if self.tokens[at] != ",":
                        break
            else:
                return None
        return None

    def bodies(self, name):
        """(from, to) of the bodies of all definitions of that name, braces included, as places of tokens."""
        wanted = Code(name).tokens
        n = len(wanted)
        found = []
        for i in range(len(self.tokens) - n):
            if self.tokens[i:i + n] != wanted or self.tokens[i + n] != "(":
                continue
            if i > 0 and (self.tokens[i - 1] in ".~" or self.tokens[i - 2:i] == ["-", ">"]):
                continue
            begin = self.body(i + n)
            if begin is not None:
                found.append((begin, self.match(begin)))
        return found

    def occurrences(self, wanted, begin, end):
        n = len(wanted)
        return [i for i in range(begin, end - n + 1) if self.tokens[i:i + n] == wanted]


def locate(code, edit):
    """((body from, body to), (from, to)) in octets of what an edit replaces; a sentence when it cannot."""
    bodies = code.bodies(edit.function)
    if not bodies:
        return f"no function {edit.function} is defined in {edit.file}"
    if edit.find is None:  # at the very beginning
        if len(bodies) != 1:
            return f"{edit.function} is defined {len(bodies)} times in {edit.file}"
        begin, end = bodies[0]
        at = code.spans[begin][1]
        return (code.spans[begin][0], code.spans[end - 1][1]), (at, at)
    wanted = Code(edit.find).tokens
    found = [(b, i) for b in bodies for i in code.occurrences(wanted, *b)]
    if len(found) != 1:
        return (f"find occurs {len(found)} times in {edit.function} of {edit.file}, not once: "
                f"{' '.join(edit.find.split())[:100]}")
    (begin, end), i = found[0]
    return ((code.spans[begin][0], code.spans[end - 1][1]),
            (code.spans[i][0], code.spans[i + len(wanted) - 1][1]))


def with_edits(text, base, edits):
    """`text`, which begins at `base` of its file, with the places of `edits` replaced."""
    out, at = [], base
    for begin, end, put in sorted(edits):
        out += [text[at - base:begin - base], put]
        at = end
    return "".join(out) + text[at - base:]


def mutate(root, file, edits, problems):
    """The file's text with the bodies of every mutant; `edits` are (mutant's name, edit)."""
    text = proof.read(os.path.join(root, "src", file))
    code = Code(text)
    functions = {}  # body: {mutant: [(from, to, put)]}
    for name, edit in edits:
        found = locate(code, edit)
        if isinstance(found, str):
            problems.append(f"{edit.where}: {name}: {found}")
            continue
        body, (begin, end) = found
        mine = functions.setdefault(body, {}).setdefault(name, [])
        if any(begin < e and b < end for b, e, _ in mine):
            problems.append(f"{edit.where}: {name}: two replacements overlap")
            continue
        mine.append((begin, end, edit.put))
    places = sorted(functions)
    for (_, end), (begin, _) in zip(places, places[1:]):
        if begin < end:
            problems.append(f"{file}: a function with mutants lies inside another one")
    out, at = [], 0
    for body in places:
        out += [text[at:body[0]], "{\n"]
        whole = text[body[0]:body[1]]
        variants = {}
        for name, replaced in functions[body].items():
            variants.setdefault(with_edits(whole, body[0], replaced), []).append(name)
        for variant, names in variants.items():
            asked = " || ".join(f'::urnic::mutant_is("{n}")' for n in names)
            out.append(f"if ({asked}) {variant} else ")
        out += [whole, "\n}"]
        at = body[1]
    out.append(text[at:])
    mutated = "".join(out)
    include = f'#include "{SWITCH}"\n'
    if "#pragma once\n" in mutated:
        return mutated.replace("#pragma once\n", "#pragma once\n" + include, 1)
    return include + mutated


def write(path, text):
    """Only if it is news: what has not changed is not compiled again."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or proof.read(path) != text:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def sources(root, *tops):
    for top in tops:
        for base, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            yield from (os.path.relpath(os.path.join(base, n), root) for n in sorted(names)
                        if n.endswith((".h", ".cpp", ".inc")))


def reached(root, headers):
    """Every file of src/ and tests/ that includes one of `headers` (as paths below src/), however far."""
    including = {}
    for file in sources(root, "src", "tests"):
        for name in INCLUDE.findall(proof.read(os.path.join(root, file))):
            for path in (name, "src/" + name, "tests/" + name, os.path.join(os.path.dirname(file), name)):
                including.setdefault(path, set()).add(file)
    found, look = set(), ["src/" + h for h in headers]
    while look:
        for file in including.get(look.pop(), ()):
            if file not in found:
                found.add(file)
                look.append(file)
    return sorted(f for f in found if f.endswith(".cpp"))


def seen_by(header, mutants):
    """The only files to be compiled with the mutated header; none named: all that include it."""
    named = [m.seen_by for m in mutants if any(e.file == header for e in m.edits)]
    return {f for files in named for f in files} if all(named) else set()


def clear(out, keep):
    for base, _, names in os.walk(out):
        for name in names:
            path = os.path.join(base, name)
            if path not in keep:
                os.remove(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--root", default=os.path.join(HERE, "..", ".."))
    parser.add_argument("out")
    args = parser.parse_args()
    root, out = os.path.abspath(args.root), os.path.abspath(args.out)
    try:
        mutants = proof.load_mutants(root)
        shortcuts = proof.load_shortcuts(root, mutants)
    except proof.Malformed as error:
        sys.exit(str(error))
    by_file = {}
    for m in mutants:
        for edit in m.edits:
            by_file.setdefault(edit.file, []).append((m.name, edit))
    for s in shortcuts:
        for name in s.mutants:
            by_file.setdefault(s.edit.file, []).append((name, s.edit))
    problems, written = [], set()
    for file, edits in sorted(by_file.items()):
        if not os.path.exists(os.path.join(root, "src", file)):
            problems.append(f"{edits[0][1].where}: there is no src/{file}")
            continue
        text = mutate(root, file, edits, problems)
        if not problems:
            path = os.path.join(out, file)
            write(path, text)
            written.add(path)
    if problems:
        sys.exit("\n".join(problems))
    names = os.path.join(out, "names.inc")
    write(names, "".join(f'"{m.name}",\n' for m in mutants))
    own = {"src/" + f for f in by_file if f.endswith(".cpp")}
    headers = [f for f in by_file if f.endswith(".h")]
    # A header that half the tree includes, with mutants that some tests alone need to see.
    few = {f: seen_by(f, mutants) for f in headers}
    dependents = set(reached(root, [f for f in headers if not few[f]])).union(*few.values()) - own
    lists = {
        "URNIC_MUTATED": [os.path.join(out, f) for f in sorted(by_file) if f.endswith(".cpp")],
        "URNIC_MUTATED_AGAIN": [os.path.join(root, f) for f in sorted(dependents)],
        "URNIC_MUTANT_INPUTS": proof.mutant_tables(root) + [os.path.join(root, "src", f) for f in sorted(by_file)],
    }
    lists["URNIC_MUTATED_HEADERS"] = ["0x" + hashlib.sha256(" ".join(sorted(headers)).encode()).hexdigest()[:12]]
    listed = os.path.join(out, "sources.cmake")
    write(listed, "".join(f"set({k}\n" + "".join(f"    {v}\n" for v in values) + ")\n"
                          for k, values in lists.items()))
    clear(out, written | {names, listed})
    return 0


if __name__ == "__main__":
    sys.exit(main())
