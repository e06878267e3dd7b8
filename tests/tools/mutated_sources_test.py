#!/usr/bin/env python3
"""tests/mutants/generate.py puts each breach into its function only, and refuses a table that does not fit."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "..", "mutants", "generate.py")

HEADER = """#pragma once
struct Box {
  explicit Box(int a) : a_(a), b_{a} { ++b_; }
  int sum() const noexcept { return a_ + b_; }
  static auto of(int a) -> Box { return Box(a); }
  int a_, b_;
};
constexpr int twice(int x) { return 2 * x; }
"""
SOURCE = """#include <cstdio>
#include <cstdlib>
#include "box.h"
namespace {
// first(1) { in a comment
int first(int x) {
  if (x > 3) {  // not so small
    return x;
  }
  return 1;
}
int second(int x) { return x > 3 ? first(x) : 0; }
int second(const char* x) { return *x == '{' ? 7 : 0; }
static_assert(twice(2) == 4);
}  // namespace
int main() {
  std::printf("%d %d %d %d %d %d\\n", first(5), second(5), second("{"), Box(1).sum(), Box::of(2).sum(), twice(3));
}
"""
SWITCH = """#include <cstdlib>
#include "tests/mutants/mutant_switch.h"
namespace urnic { std::uint64_t active_mutant = std::getenv("M") ? mutant_number(std::getenv("M")) : 0; }
"""
GOOD = """
[[mutant]]
name = "Greater"
file = "room/a.cpp"
function = "first"
find = '''
if (x > 3) { return
  x;'''
put = 'if (x > 5) { return x;'
items = ["R-1"]
test = "A.B"
text = "several lines, a comment between them"

[[mutant]]
name = "Two"
file = "room/a.cpp"
function = "first"
find = 'return 1;'
put = 'return 2;'
also = [{ file = "room/box.h", function = "sum", find = 'a_ + b_', put = 'a_' }]
items = ["R-1"]
test = "A.B"
text = "two places, one of them in a header"

[[mutant]]
name = "Brace"
file = "room/a.cpp"
function = "second"
find = "'{'"
put = "'}'"
items = ["R-1"]
test = "A.B"
text = "one of two overloads"

[[mutant]]
name = "Constructor"
file = "room/box.h"
function = "Box"
find = '++b_;'
put = '--b_;'
items = ["R-1"]
test = "A.B"
text = "a constructor with its members"

[[mutant]]
name = "Thrice"
file = "room/box.h"
function = "twice"
find = '2 * x'
put = '3 * x'
items = ["R-1"]
test = "A.B"
text = "what the compiler may work out"

[[shortcut]]
name = "first"
file = "room/a.cpp"
function = "first"
put = 'return 99;'
mutants = ["Brace"]
text = "off while Brace is at work"
"""
CASES = [(None, "5 5 7 3 5 6"), ("Greater", "1 1 7 3 5 6"), ("Two", "5 5 7 1 2 6"), ("Brace", "99 99 0 3 5 6"),
         ("Constructor", "5 5 7 1 3 6"), ("Thrice", "5 5 7 3 5 9")]


def write(root, path, text):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as f:
        f.write(text)


def generate(root):
    return subprocess.run([sys.executable, TOOL, "--root", root, os.path.join(root, "out")],
                          capture_output=True, text=True, check=False)


def main():
    problems = []
    with tempfile.TemporaryDirectory() as root:
        write(root, "src/room/box.h", HEADER)
        write(root, "src/room/a.cpp", SOURCE.replace('"box.h"', '"room/box.h"'))
        write(root, "src/room/user.cpp", '#include "room/box.h"\n')
        write(root, "tests/mutants/room.toml", GOOD)
        write(root, "switch.cpp", SWITCH)
        done = generate(root)
        if done.returncode != 0:
            print(done.stderr)
            return 1
        with open(os.path.join(root, "out", "sources.cmake"), encoding="utf-8") as f:
            if "src/room/user.cpp" not in f.read():
                problems.append("who includes a changed header is not listed")
        program = os.path.join(root, "program")
        built = subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-o", program, "-I", os.path.join(root, "out"),
                                "-I", os.path.join(HERE, "..", ".."), os.path.join(root, "out/room/a.cpp"),
                                os.path.join(root, "switch.cpp")], capture_output=True, text=True, check=False)
        if built.returncode != 0:
            print(built.stderr)
            return 1
        for mutant, want in CASES:
            env = dict(os.environ, **({"M": mutant} if mutant else {}))
            out = subprocess.run([program], env=env, capture_output=True, text=True, check=False).stdout.strip()
            if out != want:
                problems.append(f"{mutant}: {out}, not {want}")
        for old, new, want in [
                ("find = 'return 1;'", "find = 'return 3;'", "room.toml:14: Two: find occurs 0 times in first"),
                ('function = "twice"', 'function = "thrice"', "room.toml:45: Thrice: no function thrice"),
                ("find = '2 * x'", "find = '2'\nfinds = 1", "unknown key finds"),
                ('name = "Two"', 'name = "Greater"', "Greater twice"),
                ('mutants = ["Brace"]', 'mutants = ["Brake"]', "no mutant Brake"),
                ('function = "second"\nfind = "\'{\'"', 'function = "second"\nfind = "return"',
                 "room.toml:25: Brace: find occurs 2 times in second"),
                ('test = "A.B"\ntext = "what', 'text = "what', "Thrice needs items and a test")]:
            assert old in GOOD
            write(root, "tests/mutants/room.toml", GOOD.replace(old, new))
            done = generate(root)
            if done.returncode == 0 or want not in done.stderr:
                problems.append(f"{new}: exit {done.returncode}: {done.stderr}")
    print("\n".join(problems) or f"{len(CASES)} mutants run, 7 tables refused")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
