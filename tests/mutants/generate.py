#!/usr/bin/env python3
"""generate.py [--root DIR] OUT - write the sources with all mutants of tests/mutants/*.toml in them.

A function that mutants change gets its body once for each of them, and once unchanged; the function asks at its entry
which one runs (mutant_is, tests/mutants/mutant_switch.h). OUT receives the changed files under their own paths, so that
OUT in front of src/ in the order of includes is the mutated tree; also names.inc (the mutants' names), sources.cmake
(the changed files) and stale.txt.

A mutant is stale if its file or function is gone, or if its `find` does not occur exactly once in the function. It is
left out and stands in stale.txt with file and line of its table. Spaces, line breaks and comments do not count when
`find` is looked for. A table that cannot be read is an error.
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
OPEN, CLOSE = "([{", ")]}"
SWITCH = "tests/mutants/mutant_switch.h"


class Code:
    """The tokens of a text without comments: parallel lists of tokens and places."""

    def __init__(self, text, token=TOKEN):
        found = [m for m in token.finditer(text) if not m[0].startswith(("//", "/*"))]
        self.text = text
        self.tokens = [m[0] for m in found]
        self.spans = [m.span() for m in found]

    def match(self, at):
        """The place after the bracket that closes the one at `at`; None if there is none."""
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

    def definitions(self, name):
        """(name, from, to) of all definitions of that name and of their bodies, braces included, as places of tokens."""
        wanted = Code(name).tokens
        n = len(wanted)
        found = []
        for i in range(len(self.tokens) - n):
            if self.tokens[i:i + n] != wanted or self.tokens[i + n] != "(":
                continue
            if i > 0 and (self.tokens[i - 1] in ".~" or self.tokens[i - 2:i] == ["-", ">"]):
                continue
            begin = self.body(i + n)
            if begin is not None and (end := self.match(begin)) is not None:
                found.append((i, begin, end))
        return found

    def lines(self, name):
        """(first line, last line) of each definition of that name."""
        def line(token):
            return self.text.count("\n", 0, self.spans[token][0]) + 1
        return [(line(i), line(end - 1)) for i, _, end in self.definitions(name)]

    def occurrences(self, wanted, begin, end):
        n = len(wanted)
        return [i for i in range(begin, end - n + 1) if self.tokens[i:i + n] == wanted]


def locate(code, edit):
    """((body from, body to), (from, to)) in bytes of the text that an edit replaces; a sentence if it does not apply."""
    bodies = [(begin, end) for _, begin, end in code.definitions(edit.function)]
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


def overlapping(places):
    """Of (from, to, who): pairs of `who` whose places overlap."""
    places = sorted(places)
    for i, (_, end, who) in enumerate(places):
        for begin, _, other in places[i + 1:]:
            if begin >= end:
                break
            yield who, other


class File:
    """A source file and the edits of it that fit."""

    def __init__(self, root, file):
        self.text = proof.read(os.path.join(root, "src", file))
        self.code = Code(self.text)
        self.found = []  # (mutant's name, body, (from, to), edit)

    def take(self, name, edit):
        """Adds the edit; returns why it does not fit, or None."""
        found = locate(self.code, edit)
        if isinstance(found, str):
            return found
        if any(n == name and begin < found[1][1] and found[1][0] < end for n, _, (begin, end), _ in self.found):
            return "two replacements overlap"
        self.found.append((name, *found, edit))
        return None

    def nested(self):
        """(name, edit) of those whose function lies inside another function changed by mutants."""
        inner = {b for a, b in overlapping({(*body, body) for _, body, _, _ in self.found})}
        return [(name, edit) for name, body, _, edit in self.found if body in inner]

    def mutated(self, stale):
        """The text with the bodies of every mutant that is not stale; None if none is left."""
        functions = {}  # body: {mutant: [(from, to, put)]}
        for name, body, (begin, end), edit in self.found:
            if name not in stale:
                functions.setdefault(body, {}).setdefault(name, []).append((begin, end, edit.put))
        if not functions:
            return None
        out, at = [], 0
        for body in sorted(functions):
            out += [self.text[at:body[0]], "{\n"]
            whole = self.text[body[0]:body[1]]
            variants = {}
            for name, replaced in functions[body].items():
                variants.setdefault(with_edits(whole, body[0], replaced), []).append(name)
            for variant, names in variants.items():
                asked = " || ".join(f'::urnic::mutant_is("{n}")' for n in names)
                out.append(f"if ({asked}) {variant} else ")
            out += [whole, "\n}"]
            at = body[1]
        out.append(self.text[at:])
        text = "".join(out)
        include = f'#include "{SWITCH}"\n'
        if "#pragma once\n" in text:
            return text.replace("#pragma once\n", "#pragma once\n" + include, 1)
        return include + text


def write(path, text):
    """Writes the file only if it differs, so that unchanged files are not compiled again."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or proof.read(path) != text:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def clear(out, keep):
    for base, _, names in os.walk(out):
        for name in names:
            path = os.path.join(base, name)
            if path not in keep:
                os.remove(path)


def fit(root, mutants, shortcuts):
    """({file: File}, {name: where and why}): the sources with the edits that fit, and the mutants and shortcuts that are
    stale. A stale shortcut stays on; the mutants that it would be off for are tried all the same."""
    files, stale = {}, {}
    edits = [(m.name, m.name, e) for m in mutants for e in m.edits]
    edits += [(f"shortcut {s.name}", name, s.edit) for s in shortcuts for name in s.mutants]
    for owner, name, edit in edits:
        if edit.file not in files and not os.path.exists(os.path.join(root, "src", edit.file)):
            why = f"there is no src/{edit.file}"
        else:
            if edit.file not in files:
                files[edit.file] = File(root, edit.file)
            why = files[edit.file].take(name, edit)
        if why:
            stale.setdefault(owner, f"{edit.where}: {why}")
    for file, f in files.items():
        for name, edit in f.nested():
            stale.setdefault(name, f"{edit.where}: {edit.function} of {file} lies inside another function with mutants")
    return files, stale


def write_tree(out, files, stale, names, marked=True):
    """The mutated sources, and beside them what the build and tools/mutants read. `marked`: another set of headers
    compiles everything again."""
    written = set()
    for file, f in sorted(files.items()):
        text = f.mutated(stale)
        if text is not None:
            write(os.path.join(out, file), text)
            written.add(file)
    headers = [f for f in sorted(written) if f.endswith(".h")]
    made = {
        "names.inc": "".join(f'"{name}",\n' for name in names),
        "stale.txt": "".join(f"{name}\t{why}\n" for name, why in stale.items()),
        "sources.cmake": "set(URNIC_MUTATED\n" + "".join(f"    {f}\n" for f in sorted(written - set(headers))) + ")\n"
                         f"set(URNIC_MUTATED_HEADERS 0x{hashlib.sha256(' '.join(headers if marked else ()).encode()).hexdigest()[:12]})\n",
    }
    for name, text in made.items():
        write(os.path.join(out, name), text)
    clear(out, {os.path.join(out, f) for f in written | set(made)})


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
    files, stale = fit(root, mutants, shortcuts)
    write_tree(out, files, stale, [m.name for m in mutants if m.name not in stale])
    return 0


if __name__ == "__main__":
    sys.exit(main())
