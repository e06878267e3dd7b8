"""What tools/conformance and tools/mutants share: the items of docs/items.txt, the tests that claim to
prove them, the mutants of src/base/mutants.def, the anchors in the code.

A test claims items in its name, as tokens between underscores (R45, E7, L2, H3, T6), or in a comment
directly above it:  // proves: R-45, E-7.  A segment script of tests/tcp/scripts claims by its file name
(r57-..., e10-...).
"""
import os
import re
from collections import namedtuple

LETTERS = "RTLHE"
ITEM = re.compile(r"^([%s]-\d+):\s*(.+?)\s*$" % LETTERS)
ATTRIBUTE = re.compile(r"^\s+(hardware|open|script):\s*(.+?)\s*$")
# In names: between underscores, or at the beginning in front of a capital.
TOKEN = re.compile(r"(?:^|_)([%s])(\d+)(?=_|$)" % LETTERS)
LEADING = re.compile(r"^([%s])(\d+)(?=[A-Z])" % LETTERS)
TEST = re.compile(r"^(TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)
PROVES = re.compile(r"//\s*proves:\s*(.+)")
NAMED = re.compile(r"\b([%s])-(\d+)\b" % LETTERS)
RANGE = re.compile(r"\b([%s])-(\d+)\s*(?:\.\.\.?|…|to)\s*(?:\1-)?(\d+)\b" % LETTERS)
MUTANT = re.compile(r"URNIC_MUTANT\(\s*(\w+)\s*,((?:\s*\"[^\"]*\"\s*,?)+)\)")
STRING = re.compile(r'"([^"]*)"')

Item = namedtuple("Item", "id text attributes")
Claim = namedtuple("Claim", "room suite name file items")      # one test of the sources
Mutant = namedtuple("Mutant", "name items test text")


class Malformed(Exception):
    """What a person wrote and must correct."""


def order(item):
    letter, number = item.split("-")
    return LETTERS.index(letter), int(number)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def load_items(root):
    """{id: Item} in the order of the file."""
    path = os.path.join(root, "docs", "items.txt")
    items = {}
    last = None
    for number, line in enumerate(read(path).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if m := ITEM.match(line):
            last = m[1]
            if last in items:
                raise Malformed(f"docs/items.txt:{number}: {last} twice")
            items[last] = Item(last, m[2], {})
        elif (m := ATTRIBUTE.match(line)) and last:
            items[last].attributes[m[1]] = m[2]
        else:
            raise Malformed(f"docs/items.txt:{number}: neither an item nor a qualification: {line}")
    return items


def ids_in(text):
    """Items a comment names, ranges included."""
    found = set()
    for m in RANGE.finditer(text):
        found.update(f"{m[1]}-{n}" for n in range(int(m[2]), int(m[3]) + 1))
    found.update(f"{m[1]}-{m[2]}" for m in NAMED.finditer(text))
    return found


def ids_in_name(name):
    found = {f"{m[1]}-{m[2]}" for m in TOKEN.finditer(name)}
    if m := LEADING.match(name):
        found.add(f"{m[1]}-{m[2]}")
    return found


def source_names(suite, name):
    """Instance/Suite.Name/7 is the source's Suite.Name; a segment script keeps its parameter."""
    parts = suite.split("/")
    if len(parts) > 1 and parts[-1].isdigit():  # TYPED_TEST
        parts.pop()
    return {(parts[-1], name), (parts[-1], name.split("/")[0])}


def comment_above(lines, index):
    """The `proves:` items of the comment lines directly above line `index`."""
    found = set()
    index -= 1
    while index >= 0 and lines[index].lstrip().startswith("//"):
        if m := PROVES.search(lines[index]):
            found |= ids_in(m[1])
        index -= 1
    return found


def load_claims(root):
    claims = []
    tests = os.path.join(root, "tests")
    for room in sorted(os.listdir(tests)):
        folder = os.path.join(tests, room)
        if not os.path.isdir(folder):
            continue
        for name in sorted(os.listdir(folder)):
            if not name.endswith("_test.cpp"):
                continue
            text = read(os.path.join(folder, name))
            lines = text.split("\n")
            for m in TEST.finditer(text):
                line = text.count("\n", 0, m.start())
                items = ids_in_name(m[3]) | comment_above(lines, line)
                claims.append(Claim(room, m[2], m[3], f"tests/{room}/{name}", frozenset(items)))
        scripts = os.path.join(folder, "scripts")
        if os.path.isdir(scripts):
            for name in sorted(os.listdir(scripts)):
                if m := re.match(r"^([%s])(\d+)-(.+)\.pkt$" % LETTERS.lower(), name):
                    test = "Runs/" + re.sub(r"\W", "_", name[:-4])
                    claims.append(Claim(room, "SegmentScript", test, f"tests/{room}/scripts/{name}",
                                        frozenset({f"{m[1].upper()}-{m[2]}"})))
    return claims


def load_mutants(root):
    path = os.path.join(root, "src", "base", "mutants.def")
    if not os.path.exists(path):
        return []
    mutants = []
    text = re.sub(r"^\s*//.*$", "", read(path), flags=re.M)
    for m in MUTANT.finditer(text):
        # Adjacent literals are one, as in C.
        parts = ["".join(STRING.findall(p)) for p in re.findall(r'((?:"[^"]*"\s*)+)', m[2])]
        if len(parts) != 3:
            raise Malformed(f"src/base/mutants.def: {m[1]} needs items, test and text")
        mutants.append(Mutant(m[1], tuple(parts[0].split()), parts[1], parts[2]))
    names = [m.name for m in mutants]
    if len(set(names)) != len(names):
        raise Malformed("src/base/mutants.def: a name twice")
    return mutants


def load_anchors(root, mutants):
    """{item: sorted files}: comments of src/ and include/ that name it, and hooks of its mutants;
    and the mutants that have hooks."""
    anchors, hooked = {}, set()
    of_mutant = {m.name: m.items for m in mutants}
    for top in ("src", "include"):
        for base, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if not name.endswith((".h", ".cpp")) or name == "mutant.h":
                    continue
                path = os.path.join(base, name)
                text = read(path)
                found = set()
                # Comment blocks as one text: a range may be broken over two lines.
                for comment in re.findall(r"//[^\n]*(?:\n\s*//[^\n]*)*", text):
                    found |= ids_in(re.sub(r"\n\s*//", " ", comment))
                hooks = re.findall(r"\bMutant::(\w+)", text) if "mutant(" in text else []
                if hooks and (name.endswith(".h") or top == "include"):
                    raise Malformed(f"{path}: hooks belong into .cpp files, which are compiled twice")
                hooked.update(hooks)
                for hook in hooks:
                    found.update(of_mutant.get(hook, ()))
                for item in found:
                    anchors.setdefault(item, set()).add(os.path.relpath(path, root))
    return {item: sorted(files) for item, files in anchors.items()}, hooked
