#!/usr/bin/env python3
"""tests/mutants/places.py finds the places for a small mistake, and none where nothing would change."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mutants"))
import places  # noqa: E402

# Statements of a function, and the results for each place in their line.
CASES = [
    ("f(a);", [("call", ";")]),
    ("a.b->c[i].f();", [("call", ";")]),
    ("(void)f(a);", [("call", ";")]),
    ("x = f(a);", [("assignment", ";")]),
    ("*out |= a;", [("assignment", ";")]),
    ("++n;", [("step", ";")]),
    ("a.n--;", [("step", ";")]),
    ("auto x = f(a);", []),
    ("Box b(a);", []),
    ("if (a) f();", [("call", "if (a) ;"), ("condition", "if (!(a)) f();")]),
    ("while (f(a)) ++n;", [("condition", "while (!(f(a))) ++n;"), ("step", "while (f(a)) ;")]),
    ("if (auto x = f(); x) g();", [("call", "if (auto x = f(); x) ;"), ("condition", "if (auto x = f(); !(x)) g();")]),
    ("if (auto* x = f()) g();", [("call", "if (auto* x = f()) ;")]),
    ("if constexpr (kA) g();", []),
    ("return a ? b : c;", [("condition", "return !(a) ? b : c;")]),
    ("const bool x = a || b.c();", [("operand", "const bool x = !(a) || b.c();"), ("operand", "const bool x = a || !(b.c());")]),
    ("g<int&&>(a);", []),
    ("auto&& x = y;", []),
    ("return f(a.x, b.x);", [("arguments", "return f(b.x, a.x);")]),
    ("return f(a, b.x, a);", []),
    ("return f(a, a);", []),
    ("return std::max(a, b);", []),
    ("return a < b;", [("bound", "return a <= b;")]),
    ("return a >= b;", [("bound", "return a > b;")]),
    ("std::vector<int> x;", []),
    ("return a[0] + 0x0fu;", [("constant", "return a[1] + 0x0fu;"), ("constant", "return a[0] + 0x10u;")]),
    ("return 1'999;", [("constant", "return 2000;")]),
    ("return 0600 + 1.5;", []),
    ("char x[64];", []),
    ("std::array<int, 4> x;", []),
    ("if (a) return;", [("condition", "if (!(a)) return;"), ("return", "if (a) ;")]),
    ("if (a) { return b; }", [("condition", "if (!(a)) { return b; }"), ("return", "if (a) { ; }")]),
    ("if (a) return b; else g();", [("call", "if (a) return b; else ;"), ("condition", "if (!(a)) return b; else g();")]),
    ("assert(a < 3);", []),
    ("log_quietly(level, [&] { return a < b; });", []),
    ("spdlog::info(a);", []),
    ("x.reserve(n);", []),
    ("// f(a);", []),
    ('const char* x = R"(f(1); { )";', []),
]


def of(statement):
    text = "int with(int a) {\n  " + statement + "\n}\n"
    return sorted((p.kind, p.after) for p in places.find("room/a.cpp", text))


class Places(unittest.TestCase):
    def test_each_kind(self):
        for statement, want in CASES:
            with self.subTest(statement=statement):
                self.assertEqual(of(statement), sorted(want))

    def test_only_functions_that_run_have_places(self):
        text = ("constexpr int twice(int x) { return 2 * x; }\n"
                "const int kTable[] = {1, f(2)};\n"
                "int dark() {\n#ifdef A\n  return 2;\n#endif\n}\n"
                "struct Box {\n  explicit Box(int a) : a_(a) { ++b_; }\n  int sum() const { return a_ + 1; }\n};\n"
                "template <class T>\nauto f(T x) -> int { return [&](int y) { return y + 2; }(x); }\n")
        self.assertEqual([p.before for p in places.find("a.cpp", text)],
                         ["explicit Box(int a) : a_(a) { ++b_; }", "int sum() const { return a_ + 1; }",
                          "auto f(T x) -> int { return [&](int y) { return y + 2; }(x); }"])

    def test_a_place_says_where_it_is(self):
        text = "int f() {\n  int x = 0;  // here\n  g(x,\n    2);\n}\n"
        place = places.find("room/a.cpp", text)[1]
        self.assertEqual((place.file, place.line, place.kind, place.before, place.after), ("room/a.cpp", 3, "call", "g(x, 2);", ";"))
        self.assertEqual(text[slice(*place.span)], "g(x,\n    2);")
        self.assertEqual(text[slice(*place.body)], text[8:-1])


if __name__ == "__main__":
    unittest.main()
