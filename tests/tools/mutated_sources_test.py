#!/usr/bin/env python3
"""tests/mutants/generate.py inserts each mutant only into its function, omits stale ones and rejects invalid tables."""
import os
import subprocess
import sys
import tempfile
import unittest

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
    """(exit status, output, stale.txt)"""
    done = subprocess.run([sys.executable, TOOL, "--root", root, os.path.join(root, "out")], capture_output=True, text=True,
                          check=False)
    stale = os.path.join(root, "out", "stale.txt")
    if not os.path.exists(stale):
        return done.returncode, done.stderr, ""
    with open(stale, encoding="utf-8") as f:
        return done.returncode, done.stderr, f.read()


def outputs(root):
    """What the program prints without a mutant and under each."""
    program = os.path.join(root, "program")
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-o", program, "-I", os.path.join(root, "out"), "-I",
                    os.path.join(root, "src"), "-I", os.path.join(HERE, "..", ".."), os.path.join(root, "out/room/a.cpp"),
                    os.path.join(root, "switch.cpp")], check=True)
    return [(mutant, subprocess.run([program], env=dict(os.environ, **({"M": mutant} if mutant else {})), capture_output=True,
                                    text=True, check=False).stdout.strip()) for mutant, _ in CASES]


STALE = [("find = 'return 1;'", "find = 'return 3;'", "Two\ttests/mutants/room.toml:14: find occurs 0 times in first"),
         ('function = "twice"', 'function = "thrice"', "Thrice\ttests/mutants/room.toml:45: no function thrice"),
         ('function = "second"\nfind = "\'{\'"', 'function = "second"\nfind = "return"',
          "Brace\ttests/mutants/room.toml:25: find occurs 2 times in second"),
         ('file = "room/a.cpp"\nfunction = "second"', 'file = "room/gone.cpp"\nfunction = "second"',
          "Brace\ttests/mutants/room.toml:25: there is no src/room/gone.cpp"),
         ('function = "first"\nput', 'function = "fifth"\nput', "shortcut first\ttests/mutants/room.toml:55: no function fifth")]
REFUSED = [("find = '2 * x'", "find = '2'\nfinds = 1", "unknown key finds"),
           ('name = "Two"', 'name = "Greater"', "Greater twice"),
           ('mutants = ["Brace"]', 'mutants = ["Brake"]', "no mutant Brake"),
           ('test = "A.B"\ntext = "what', 'text = "what', "Thrice needs items and a test")]


class Generate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        write(self.root, "src/room/box.h", HEADER)
        write(self.root, "src/room/a.cpp", SOURCE.replace('"box.h"', '"room/box.h"'))
        write(self.root, "switch.cpp", SWITCH)
        write(self.root, "tests/mutants/room.toml", GOOD)

    def change(self, old, new):
        self.assertIn(old, GOOD)
        write(self.root, "tests/mutants/room.toml", GOOD.replace(old, new))

    def test_each_mutant_changes_its_function_only(self):
        self.assertEqual(generate(self.root), (0, "", ""))
        self.assertEqual(outputs(self.root), CASES)

    def test_a_stale_mutant_is_left_out_and_the_others_stay(self):
        for old, new, want in STALE:
            with self.subTest(new=new):
                self.change(old, new)
                code, said, stale = generate(self.root)
                self.assertEqual((code, said), (0, ""))
                self.assertEqual([line.startswith(want) for line in stale.splitlines()], [True], stale)
                name = want.split("\t")[0]
                with open(os.path.join(self.root, "out", "names.inc"), encoding="utf-8") as f:
                    self.assertNotIn(f'"{name}"', f.read())
        self.change('function = "sum", find = \'a_ + b_\'', 'function = "sum", find = \'a_ - b_\'')  # one of its two occurrences
        self.assertTrue(generate(self.root)[2].startswith("Two\t"))
        self.assertEqual(outputs(self.root), [(m, CASES[0][1] if m == "Two" else said) for m, said in CASES])

    def test_a_table_that_cannot_be_read_is_an_error(self):
        for old, new, want in REFUSED:
            with self.subTest(new=new):
                self.change(old, new)
                code, said, _ = generate(self.root)
                self.assertNotEqual(code, 0)
                self.assertIn(want, said)


if __name__ == "__main__":
    unittest.main()
