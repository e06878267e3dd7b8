#!/usr/bin/env python3
"""tools/check-classes on generated trees: it reports each excess at its line and nothing that only looks like one, and
reports an exception that is no longer needed."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "..", "..", "tools", "check-classes")


def run(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def methods(n):
    """A class with `n` member functions, each written differently, and nothing else that counts."""
    ways = ["void f{0}(int a, int b = g(1));", "int f{0}() const { return x_ > 3 ? 1 : (2); }",
            "template <class T> auto f{0}(T&& t) -> decltype(t());", "static std::map<int, int> f{0}();",
            "[[nodiscard]] bool f{0}(std::function<void(int)> f) noexcept(true) { if (f) { return 1; } }",
            "virtual void f{0}() = 0;", "std::array<std::pair<int, char>, (1 < 2)> f{0}(/* ; } */);",
            'std::string f{0}() { return "}; void no();"; }']
    return "\n".join(ways[i % len(ways)].replace("{0}", str(i)) for i in range(n))


def members(n):
    ways = ["int d{0}_ = 0;", "std::function<void(int, int)> d{0}_;", "void (*d{0}_)(int, char);",
            "alignas(64) std::uint8_t d{0}_[64];", "std::map<int, std::vector<int>> d{0}_{make(1, 2)};",
            "const char* d{0}_ = f(1, 2);"]
    return "\n".join(ways[i % len(ways)].replace("{0}", str(i)) for i in range(n))


NOISE = """
  friend class Other;
  friend bool operator==(const A& a, const A& b) { return true; }
  A(const A&) = delete;
  A& operator=(const A&) = delete;
  static constexpr int kMost = 3, kLeast{2};
  enum class E { One, Two };
  using F = std::function<void()>;
  struct Inner { int a, b, c; void one(); void two(); };
  struct Later;
  static_assert(sizeof(int) == 4, "f()");
"""


def a_class(n_methods, n_members, noise=NOISE):
    return (f"#pragma once\nnamespace urnic::tcp {{\nclass A final : public B<int> {{\n public:\n{noise}"
            f"{methods(n_methods)}\n private:\n{members(n_members)}\n}};\n}}\n")


CASES = [
    ("40 and 20 are allowed", {"src/tcp/a.h": a_class(40, 20)}, []),
    ("41 member functions", {"src/tcp/a.h": a_class(41, 20)}, ["src/tcp/a.h:3: tcp::A has 41 member functions"]),
    ("21 data members", {"src/tcp/a.h": a_class(40, 21)}, ["src/tcp/a.h:3: tcp::A has 21 data members"]),
    ("several in one declaration", {"src/tcp/a.h": a_class(1, 18, "int a, *b = nullptr, c[3];\n")},
     ["tcp::A has 21 data members"]),
    ("constructors with initialisers count once",
     {"src/tcp/a.h": a_class(39, 0, "A() : B<int>{1}, x_(2), y_{3} { x_ = 1; }\n")}, []),
    ("... and as one", {"src/tcp/a.h": a_class(40, 0, "A() : B<int>{1}, x_(2), y_{3} { x_ = 1; }\n")},
     ["tcp::A has 41 member functions"]),
    ("operators count", {"src/tcp/a.h": a_class(39, 0, "bool operator()(int) const;\nint& operator[](int);\n")},
     ["tcp::A has 41 member functions"]),
    ("an inner class is a class", {"src/tcp/a.h": "struct O {\n class I {\n" + methods(41) + "\n};\n};\n"},
     ["src/tcp/a.h:2: O::I has 41 member functions"]),
    ("one in a .cpp, without a name for its namespace",
     {"src/tcp/a.cpp": "namespace urnic {\nnamespace {\n" + a_class(0, 21)[13:] + "}\n}\n"},
     ["tcp::A has 21 data members"]),
    ("a record may be long", {"src/tcp/a.h": "struct R {\n" + members(50) + "\nbool empty() const;\n};\n"}, []),
    ("a struct that acts is no record", {"src/tcp/a.h": "struct R {\n" + members(21) + "\nvoid act();\n};\n"},
     ["src/tcp/a.h:1: R has 21 data members"]),
    ("a template", {"src/base/a.h": "template <class T, int N = (3 > 2)>\nclass A {\n" + methods(41) + "\n};\n"},
     ["src/base/a.h:2: A has 41 member functions"]),
    ("500 lines", {"src/base/a.cpp": "int a;\n" * 500}, []),
    ("501 lines", {"src/base/a.cpp": "int a;\n" * 501}, ["src/base/a.cpp:501: 501 lines"]),
    ("a public header is a source like others", {"src/a.h": "", "include/urnic/a.h": "int a;\n" * 501},
     ["include/urnic/a.h:501: 501 lines"]),
    ("a circle of three", {"src/base/a.h": '#include "base/b.h"\n', "src/base/b.h": '#include "net/c.h"\n',
                           "src/net/c.h": '#include "base/a.h"\n'},
     ["include circle: src/base/a.h -> src/base/b.h -> src/net/c.h -> src/base/a.h"]),
    ("no circle", {"src/base/a.h": '#include "base/b.h"\n#include <net/c.h>\n', "src/base/b.h": "",
                   "src/net/c.h": '#include "base/a.h"\n'}, []),
    ("an exception", {"src/tcp/a.h": a_class(41, 21), "class-exceptions": "tcp::A\n"}, []),
    ("an exception that is not needed", {"src/tcp/a.h": a_class(40, 20), "class-exceptions": "tcp::A\n"},
     ["tcp::A is no exception any more"]),
    ("an exception for what is gone", {"src/tcp/a.h": "", "class-exceptions": "src/tcp/b.cpp\n"},
     ["src/tcp/b.cpp is no exception any more"]),
]


def main():
    problems = []
    for name, files, wanted in CASES:
        status, found = run(files)
        if status != (1 if wanted else 0):
            problems.append(f"{name}: exit status {status}: {found}")
        if len(found) != len(wanted) or not all(w in f for w, f in zip(wanted, found)):
            problems.append(f"{name}: expected {wanted}, found {found}")
    print("\n".join(problems) or f"{len(CASES)} trees judged rightly")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
