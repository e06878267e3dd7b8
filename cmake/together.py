"""together.py GROUPS_OF FILE...: which sources of a folder may be compiled as one, as lines `file;group`.

For `./quickstart` and the sanitizers' builds (URNIC_TOGETHER), where most of the time goes to what all files include and instantiate.
The group depends on a file's folder and name alone, so that a new file changes one group. A file that has a name at the level of
the file that another of its group has as well (in a file of their own both are private, in one they would be the same)
goes to the next group, but not a test: tests come and go, and what was compiled before shall not change with them. What
has no group is not named, and is compiled alone. What this does not see the compiler says; `kAlone` is for that.
"""
import collections
import hashlib
import pathlib
import re
import sys

# Names of the same words in rooms that have a namespace `test` of their own; functions that a macro defines; a letter
# for a name, which parameters elsewhere shadow; a class with a member of a private type, seen from another file;
# a file that another library has compiled again (src/dropin); one that is compiled with a definition or option of its own; one
# whose thread_local is of the initial-exec kind, which a plug-in that takes the rest of its group cannot have (the port `dpdk`).
kAlone = ('captures_test.cpp', 'header_test.cpp', 'terminate_test.cpp', 'vectors_test.cpp', 'receive_queue_test.cpp',
          'fused_arm64.cpp', 'fused_avx2.cpp', 'guarded.cpp', 'qp_state.cpp', 'fault_port.cpp', 'transfer_plan.cpp',
          'log.cpp', 'dropin.cpp', 'plugin.cpp', 'crc32_vpclmul.cpp', 'fused_avx512.cpp', 'fused_vpclmul.cpp',
          'xxh3_avx512.cpp')
# In src/device names of the public API and those of src/verbs are meant by the same word.
kInner = re.compile(r'^using verbs::\w+;', re.M)
# Takes a name from what headers behind it mean; GoogleTest's names where others see our namespace `testing`.
kHides = re.compile(r'^using (?:test::Response|verbs::Sge|namespace ib);|(?<![:\w])testing::(?!Bytes|NoMemory)[A-Z]', re.M)

# What takes longer to include than all of ours: such files share the first quarter of the groups.
kHeavy = re.compile(r'^#include <(?:CLI|nlohmann|toml\+\+)/', re.M)

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
            if line.startswith('constexpr'):  # several in one line
                found |= set(re.findall(r', (\w+) = ', line))
    return found


def grouped(per_group, files):
    """Pairs of a file and the number of its group, of the files of one folder."""
    groups = 1
    while groups * per_group < len(files):
        groups *= 2
    taken = [set() for _ in range(groups)]
    for file in sorted(files):
        if file.name in kAlone:
            continue
        first, tries = int(hashlib.md5(file.name.encode()).hexdigest()[:6], 16), groups
        if file.name.endswith('_test.cpp'):
            tries = 1
        elif kHeavy.search(file.read_text()):
            first %= max(groups // 4, 1)
        own = names(file)
        if own is None:
            continue
        # The same using-declaration twice is one.
        private = {n for n in own if not n.startswith('using')}
        for group in ((first + k) % groups for k in range(tries)):
            if private.isdisjoint(taken[group]):
                taken[group] |= own
                yield file, group
                break


def main():
    folders = collections.defaultdict(list)
    for name in sys.argv[2:]:
        file = pathlib.Path(name)
        folders[file.parent].append(file)
    for files in folders.values():
        for file, group in grouped(int(sys.argv[1]), files):
            # The folder of a room's folder is part of the name: the room's library holds groups of all of them.
            folder = '' if file.parents[1].name in ('src', 'tests') else f'{file.parent.name}_'
            print(f'{file};{folder}{group}')


main()
