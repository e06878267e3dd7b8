"""together.py GROUPS_OF FILE...: which of these sources may be compiled as one, as lines `file;group`.

For the sanitizers' builds (URNIC_TOGETHER), where most of the time goes to what all files include and instantiate.
The group depends on a file's name alone, so that a new file changes one group. A file is not named, and is compiled
alone, when it has a name at the level of the file that another of its group has as well: in a file of their own both
are private, in one they would be the same. What this does not see the compiler says; `kAlone` is for that.
"""
import hashlib
import pathlib
import re
import sys

# Names of the same words in rooms that have a namespace `test` of their own.
kAlone = ('captures_test.cpp', 'header_test.cpp', 'terminate_test.cpp', 'vectors_test.cpp', 'receive_queue_test.cpp')
# In src/device names of the public API and those of src/verbs are meant by the same word.
kInner = re.compile(r'^using verbs::\w+;', re.M)
# Takes a name from what headers behind it mean; GoogleTest's names where others see our namespace `testing`.
kHides = re.compile(r'^using (?:test::Response|verbs::Sge);|(?<![:\w])testing::(?!Octets|NoMemory)[A-Z]', re.M)

DEFINED = re.compile(r'''^(?:
    (?:struct|class|union|enum(?:\s+class)?)\s+(?:alignas\([^)]*\)\s*)?(?P<type>\w+)
  | using\s+(?P<alias>\w+)\s*=
  | (?P<declared>using\s+(?!namespace)[\w:]+;)
  | \#\s*define\s+(?P<macro>\w+)
  | (?!using|namespace|template|return|TEST|INSTANTIATE|static_assert|extern)[A-Za-z_:][^;=(){}]*?[\s*&](?P<name>\w+)\s*(?:\[[^\]]*\])?\s*[=({;]
)''', re.X)


def names(path):
    found = set()
    text = path.read_text()
    if kHides.search(text) or (path.parent.name == 'device' and kInner.search(text)):
        return None
    for line in text.splitlines():
        match = DEFINED.match(line)
        if match:
            found.add(next(g for g in match.groups() if g))
    return found


def main():
    per_group, files = int(sys.argv[1]), [pathlib.Path(f) for f in sys.argv[2:]]
    groups = 1
    while groups * per_group < len(files):
        groups *= 2
    taken = [set() for _ in range(groups)]
    for file in sorted(files):
        if file.name in kAlone:
            continue
        group = int(hashlib.md5(file.name.encode()).hexdigest()[:6], 16) % groups
        own = names(file)
        # The same using-declaration twice is one.
        if own is not None and {n for n in own if not n.startswith('using')}.isdisjoint(taken[group]):
            taken[group] |= own
            print(f'{file};{group}')


main()
