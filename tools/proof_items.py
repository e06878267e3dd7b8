"""What tools/conformance and tools/mutants share: the items of docs/items.txt, the tests that claim to
prove them, the mutants of tests/mutants/*.toml, the anchors in the code.

A test claims items in a comment directly above it:  // proves: R-45, E-7.  A segment script of tests/tcp/scripts claims in its
first line:  # proves: R-57.
"""
import os
import re
import tomllib
from collections import namedtuple

FAMILIES = ("R", "T", "L", "H", "E", "IB", "S", "DI", "AC")
FAMILY = "|".join(FAMILIES)
ITEM = re.compile(r"^((?:%s)-\d+):\s*(.+?)\s*$" % FAMILY)
ATTRIBUTE = re.compile(r"^\s+(hardware|open|script):\s*(.+?)\s*$")
TEST = re.compile(r"^(TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)
PROVES = re.compile(r"//\s*proves:\s*(.+)")
NAMED = re.compile(r"\b(%s)-(\d+)\b" % FAMILY)
RANGE = re.compile(r"\b(%s)-(\d+)\s*(?:\.\.\.?|…|to)\s*(?:\1-)?(\d+)\b" % FAMILY)

Item = namedtuple("Item", "id text attributes")
# One test of the sources; lines: first and last, its comment included (None for a script).
Claim = namedtuple("Claim", "room suite name file items lines")
Edit = namedtuple("Edit", "file function find put where")      # where: file and line of its table
Mutant = namedtuple("Mutant", "name items tests text edits lines")  # lines: of its table
Shortcut = namedtuple("Shortcut", "name mutants edit text")    # turned off while one of them is at work


class Malformed(Exception):
    """What a person wrote and must correct."""


def order(item):
    letter, number = item.split("-")
    return FAMILIES.index(letter), int(number)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def folders(root, room):
    """The folders of src/<room> that belong to its library: what its urnic_room() says."""
    for path in ("CMakeLists.txt", f"src/{room}/CMakeLists.txt"):
        path = os.path.join(root, path)
        found = re.search(rf"^urnic_room\({room}\s+FOLDERS\s+([^)]*?)\s*\b(?:LINK|NEEDS)\b", read(path), re.M) if os.path.exists(path) else None
        if found:
            return found[1].split()
    return []


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


def source_names(suite, name):
    """Instance/Suite.Name/7 is the source's Suite.Name; a segment script keeps its parameter."""
    parts = suite.split("/")
    if len(parts) > 1 and parts[-1].isdigit():  # TYPED_TEST
        parts.pop()
    return {(parts[-1], name), (parts[-1], name.split("/")[0])}


def comment_above(lines, index):
    """The `proves:` items of the comment lines directly above line `index`, and the first of these lines."""
    found = set()
    while index > 0 and lines[index - 1].lstrip().startswith("//"):
        index -= 1
        if m := PROVES.search(lines[index]):
            found |= ids_in(m[1])
    return found, index


def last_line(lines, first):
    """Of the function that begins at line `first`: its closing brace stands in the first column or on that line."""
    if lines[first].rstrip().endswith("}"):
        return first
    return next((i for i in range(first, len(lines)) if lines[i].startswith("}")), first)


def load_claims(root):
    """Every test of the sources, with the items it claims, if any."""
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
                said, first = comment_above(lines, line)
                claims.append(Claim(room, m[2], m[3], f"tests/{room}/{name}", frozenset(said),
                                    (first + 1, last_line(lines, line) + 1)))
        scripts = os.path.join(folder, "scripts")
        if os.path.isdir(scripts):
            for name in sorted(os.listdir(scripts)):
                first = read(os.path.join(scripts, name)).split("\n", 1)[0]
                if name.endswith(".pkt") and first.startswith("# proves:"):
                    test = "Runs/" + re.sub(r"\W", "_", name[:-4])
                    claims.append(Claim(room, "SegmentScript", test, f"tests/{room}/scripts/{name}", frozenset(ids_in(first)),
                                        None))
    return claims


def load_real_tests(root):
    """The test files whose outcome depends on the machine: tests/real_tests.txt and tests/outside_tests.txt, one path a
    line, with the name of a case behind it where only that one is of kind outside."""
    files = set()
    for kind in ("real", "outside"):
        path = os.path.join(root, "tests", f"{kind}_tests.txt")
        if os.path.exists(path):
            files.update(line.split("#")[0].split()[0] for line in read(path).splitlines() if line.split("#")[0].strip())
    return files


def mutant_tables(root):
    folder = os.path.join(root, "tests", "mutants")
    if not os.path.isdir(folder):
        return []
    return [os.path.join(folder, n) for n in sorted(os.listdir(folder)) if n.endswith(".toml")]


def load_tables(root, kind, keys):
    """(table, where, (first line, last line)) for every [[kind]] of tests/mutants/*.toml; `keys` are those it may have."""
    for path in mutant_tables(root):
        text, name = read(path), os.path.relpath(path, root)
        try:
            tables = tomllib.loads(text).get(kind, [])
        except tomllib.TOMLDecodeError as error:
            raise Malformed(f"{name}: {error}") from None
        starts = [m.start() for m in re.finditer(rf"^\[\[{kind}\]\]", text, re.M)]
        every = [m.start() for m in re.finditer(r"^\[\[", text, re.M)] + [len(text)]
        for table, start in zip(tables, starts):
            first = text.count("\n", 0, start) + 1
            last = text.count("\n", 0, min(e for e in every if e > start))
            where = f"{name}:{first}"
            if odd := table.keys() - set(keys):
                raise Malformed(f"{where}: unknown key {sorted(odd)[0]}")
            if lacking := [k for k, needed in keys.items() if needed and k not in table]:
                raise Malformed(f"{where}: {lacking[0]} is missing")
            yield table, where, (first, last)


def load_mutants(root):
    keys = {"name": True, "file": True, "function": True, "find": True, "put": True, "text": True,
            "items": False, "test": False, "also": False, "changes_nothing": False}
    mutants = []
    for t, where, lines in load_tables(root, "mutant", keys):
        if ("items" in t) == t.get("changes_nothing", False) or ("items" in t) != ("test" in t):
            raise Malformed(f"{where}: {t['name']} needs items and a test, or changes nothing")
        edits = [Edit(t["file"], t["function"], t["find"], t["put"], where)]
        edits += [Edit(e.get("file", t["file"]), e["function"], e["find"], e["put"], where)
                  for e in t.get("also", [])]
        if any(m.name == t["name"] for m in mutants):
            raise Malformed(f"{where}: {t['name']} twice")
        tests = t.get("test", [])
        tests = (tests,) if isinstance(tests, str) else tuple(tests)
        mutants.append(Mutant(t["name"], tuple(t.get("items", ())), tests, t["text"], edits, lines))
    return mutants


def load_shortcuts(root, mutants):
    """What goes past the steps that the mutants named break, and is turned off for them."""
    keys = {"name": True, "file": True, "function": True, "put": True, "mutants": True, "text": True}
    known = {m.name for m in mutants}
    shortcuts = []
    for t, where, _ in load_tables(root, "shortcut", keys):
        if odd := [n for n in t["mutants"] if n not in known]:
            raise Malformed(f"{where}: no mutant {odd[0]}")
        shortcuts.append(Shortcut(t["name"], tuple(t["mutants"]),
                                  Edit(t["file"], t["function"], None, t["put"], where), t["text"]))
    return shortcuts


def load_anchors(root, mutants):
    """{item: sorted files}: comments of src/ and include/ that name it, and what its mutants change."""
    anchors = {}
    for m in mutants:
        for edit in m.edits:
            for item in m.items:
                anchors.setdefault(item, set()).add(os.path.join("src", edit.file))
    for top in ("src", "include"):
        for base, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if not name.endswith((".h", ".cpp")):
                    continue
                path = os.path.join(base, name)
                # Comment blocks as one text: a range may be broken over two lines.
                for comment in re.findall(r"//[^\n]*(?:\n\s*//[^\n]*)*", read(path)):
                    for item in ids_in(re.sub(r"\n\s*//", " ", comment)):
                        anchors.setdefault(item, set()).add(os.path.relpath(path, root))
    return {item: sorted(files) for item, files in anchors.items()}
