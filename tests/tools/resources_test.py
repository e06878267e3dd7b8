#!/usr/bin/env python3
"""tools/resources notices a bound without its test or setting, and what is left out; it leaves the rest alone."""
import pathlib
import subprocess
import sys
import tempfile

TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/resources"
KEYS = '''constexpr Key kKeys[] = {
  {"pool", Kind::Number, "64", "memory", "", 1, 1 << 20},
  {"word", Kind::Text, "", "no number"},
};
'''
BOUND = '''class Queue {
  // Why there is one.
  // bound: things in a queue; setting: pool; beyond: the oldest goes; what came first
  // is lost; test: Queue.Loses, Queue.IsOfUseAgain
  std::deque<int> things_;
  // bound: names; beyond: refused; test: Queue.Loses
  static constexpr std::size_t kMostNames = 1 << 4, kOther = 2;
};
'''
TESTS = "TEST(Queue, Loses) {}\nTEST_F(Queue, IsOfUseAgain) {}\n"


def run(*steps, source=BOUND, keys=KEYS, tests=TESTS, rest="", more=None):
    with tempfile.TemporaryDirectory() as name:
        tree = pathlib.Path(name)
        files = {"src/room/queue.h": source, "src/config/keys.cpp": keys, "tests/room/queue_test.cpp": tests,
                 "tools/resources.toml": rest, "README.md": "| `src/room/` | x |\n", "CMakeLists.txt": "", **(more or {})}
        for path, text in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        (tree / "docs").mkdir()
        said = ""
        for step in steps:
            if callable(step):
                step(tree)
                continue
            done = subprocess.run([sys.executable, TOOL, "--root", tree, step], capture_output=True, text=True, check=False)
            said = done.stderr
        page = tree / "docs/resources.md"
        return said, page.read_text() if page.exists() else ""


def spoil(tree):
    with open(tree / "docs/resources.md", "a", encoding="utf-8") as f:
        f.write("x\n")


def main():
    problems = []

    def expect(what, said, wanted):
        if (wanted in said) if wanted else not said:
            return
        problems.append(f"{what}: said {said!r}, not {wanted!r}")

    said, page = run("--write", "--check")
    expect("all is well", said, "")
    for shown in ("things in a queue (`queue.h`) | 64 | `pool` = 64, 1 to 1 << 20 | the oldest goes; what came first is lost",
                  "names (`queue.h`) | 1 << 4 (`kMostNames`) | - | refused | `Queue.Loses`"):
        if shown not in page:
            problems.append(f"the page does not say {shown!r}: {page}")
    expect("no page", run("--check")[0], "tools/resources --write")
    expect("another page", run("--write", spoil, "--check")[0], "tools/resources --write")
    expect("no test of that name", run("--write", tests="TEST(Queue, Loses) {}\n")[0], "there is no test Queue.IsOfUseAgain")
    expect("no setting of that name", run("--write", source=BOUND.replace("setting: pool", "setting: pond"))[0], "there is no setting pond")
    expect("a setting of no bound", run("--write", source=BOUND.replace("setting: pool; ", "limit: 3; "))[0], "the setting pool is of no bound")
    expect("nothing said of the limit", run("--write", source=BOUND.replace("; beyond: refused", ""))[0], "does not say 'beyond:'")
    expect("no test said", run("--write", source=BOUND.replace("refused; test: Queue.Loses", "refused"))[0], "does not say 'test:'")
    expect("no limit", run("--write", source=BOUND.replace("setting: pool; ", ""))[0], "has neither a setting")
    expect("a container left out", run("--write", source=BOUND + "  std::vector<int> all_;\n")[0], "queue.h:all_ has no '// bound:'")
    expect("a second one on its line", run("--write", source=BOUND + "  Ring<int> a_, all_;\n")[0], "queue.h:all_ has no '// bound:'")
    expect("a limit left out", run("--write", more={"src/room/x.cpp": "constexpr int kMostX = 3;\n"})[0], "x.cpp:kMostX has no '// bound:'")
    rest = '[[none]]\nwhy = "x"\nwhat = ["src/room/x.cpp:kMostX"]\n'
    expect("an exception", run("--write", more={"src/room/x.cpp": "constexpr int kMostX = 3;\n"}, rest=rest)[0], "")
    expect("an exception of nothing", run("--write", rest=rest)[0], "there is no src/room/x.cpp:kMostX")
    rest = '[[follows]]\nbound = "nothing"\nmost = "x"\nwhat = []\n'
    expect("it follows nothing", run("--write", rest=rest)[0], "there is no bound 'nothing'")
    expect("twice", run("--write", more={"src/room/y.h": BOUND})[0], "two bounds of that name")
    print("\n".join(problems) or "resources: every breach is noticed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
