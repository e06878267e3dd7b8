"""The places of a source where a small mistake can be made, found by its tokens alone: no compiler is asked, so some of the
changes do not compile. tools/mutants --sample draws from them (docs/proof.md).

Functions that may run in the compiler (constexpr, consteval) are left out, since a mutant is chosen at run time, and so are
logging, assertions and hints: a change there changes nothing that a test could see.
"""
import os
import re
import sys
from collections import namedtuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import generate  # noqa: E402

# Operators of several characters are one token, and so are raw strings; `->` and `>>` stay
# separate, as in generate.Code.
TOKEN = re.compile(r'R"(?P<mark>\w*)\(.*?\)(?P=mark)"|' + r"\+\+|--|<<=|>>=|<=>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|<<|\.\.\.|"
                   .join(("", generate.TOKEN.pattern)), re.S)
NAME = re.compile(r"[A-Za-z_]\w*")
NUMBER = re.compile(r"(0[xX][0-9a-fA-F']+|0|[1-9][\d']*)([uUlLzZ]*)")
KEYWORDS = set("alignas alignof auto bool break case catch char class co_await co_return co_yield const constexpr continue "
               "decltype default delete do double else enum explicit float for goto if int long mutable namespace new noexcept "
               "operator return short signed sizeof static static_assert struct switch template throw try typedef typename "
               "union unsigned using void volatile while".split())
CONTROL = ("if", "while", "for", "switch")
ASSIGN = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
MOVED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
# Statements beginning with these names are ignored, because tests cannot see them.
UNSEEN = re.compile(r"assert|static_assert|spdlog|logger|log_\w+|__builtin_\w+|prefetch\w*|reserve|shrink_to_fit|alignas")
SYMMETRIC = ("min", "max", "swap", "equal")
LONGEST = 12  # tokens of an argument that is swapped with its neighbour

# body, span: (from, to) in bytes of the file; before, after: its lines, as one.
Place = namedtuple("Place", "file kind line body span put before after")


class Tokens(generate.Code):
    """The tokens of a text with the partners of its brackets."""

    def __init__(self, text):
        super().__init__(text, TOKEN)
        self.partner = {}
        opened = []
        for i, t in enumerate(self.tokens):
            if t in ("(", "[", "{"):
                opened.append(i)
            elif t in (")", "]", "}") and opened:
                self.partner[i] = opened.pop()
                self.partner[self.partner[i]] = i

    def functions(self):
        """(from, to) of the bodies of all functions that only run at run time, braces included."""
        found, i = [], 1
        while i < len(self.tokens):
            if self.tokens[i] == "(" and NAME.fullmatch(self.tokens[i - 1]) and self.tokens[i - 1] not in (*CONTROL, "catch"):
                begin = self.body(i)
                end = None if begin is None else self.match(begin)
                if end is not None:
                    if not self.before(i) & {"constexpr", "consteval"} and "#" not in self.tokens[begin:end]:
                        found.append((begin, end))
                    i = end
                    continue
            i += 1
        return found

    def before(self, i):
        """The tokens of a declaration in front of its parameters."""
        first = i
        while first > 0 and self.tokens[first - 1] not in (";", "{", "}"):
            first -= 1
        return set(self.tokens[first:i])

    def chain(self, i):
        """The place after `a.b->c[1](2)...`, which begins at i, and its last part: a name, a call or an index."""
        last = None
        while i < len(self.tokens):
            t = self.tokens[i]
            if NAME.fullmatch(t) and t not in KEYWORDS and last in (None, "."):
                last = "name"
            elif t in ("(", "[") and last in ("name", "call", "index") and i in self.partner:
                last, i = "call" if t == "(" else "index", self.partner[i]
            elif t in ("::", "."):
                last = "."
            elif t == "-" and self.tokens[i + 1] == ">" and last:
                last, i = ".", i + 1
            else:
                break
            i += 1
        return i, last

    def until(self, i, stops, step=1):
        """The nearest place from i on, outside brackets that open on the way, with one of `stops` or a bracket's end."""
        ends = (")", "]", "}") if step == 1 else ("(", "[", "{")
        while 0 <= i < len(self.tokens) and self.tokens[i] not in stops and self.tokens[i] not in ends:
            i = self.partner.get(i, i) + step
        return i

    def spaced(self, i):
        """True if spaced like an operator between two operands, not like the brackets of a template."""
        begin, end = self.spans[i]
        return self.text[begin - 1].isspace() and self.text[end].isspace()

    def unseen(self, begin, end):
        """Ranges that are not changed."""
        return [(i, self.until(i, (";",))) for i in range(begin, end) if UNSEEN.fullmatch(self.tokens[i])]


def statements(code, begin, end):
    """Removes calls whose result is unused, assignments and steps."""
    closes = {code.partner.get(i + 1) for i in range(begin, end) if code.tokens[i] in CONTROL}
    for i in range(begin + 1, end):
        if code.tokens[i - 1] not in (";", "{", "}", "else") and i - 1 not in closes:
            continue
        at = i
        while code.tokens[at] in ("*", "++", "--"):
            at += 1
        if code.tokens[at:at + 3] == ["(", "void", ")"]:
            at += 3
        behind, last = code.chain(at)
        t = code.tokens[behind]
        if t in ("++", "--"):
            behind += 1
        if code.tokens[behind] == ";" and (last == "call" or {code.tokens[i], t} & {"++", "--"}):
            yield ("call" if last == "call" else "step"), i, behind + 1, ";"
        elif t in ASSIGN and last:
            behind = code.until(behind, (";",))
            if code.tokens[behind] == ";":
                yield "assignment", i, behind + 1, ";"


def conditions(code, begin, end):
    """Negates the conditions of if, while and ?:, and the operands of && and ||."""
    stops = (",", ";", "?", ":", "return", *ASSIGN)
    for i in range(begin, end):
        t, first, last = code.tokens[i], None, i
        if t in ("if", "while") and code.tokens[i + 1] == "(" and i + 1 in code.partner:
            last = code.partner[i + 1]
            first = code.until(last - 1, (";",), -1) + 1
            if code.until(first, ASSIGN) < last:  # it is a declaration
                continue
        elif t == "?":
            first = code.until(i - 1, stops, -1) + 1
        elif t in ("&&", "||") and code.spaced(i):
            both = (*stops, "&&", "||")
            left = code.until(i - 1, both, -1)
            if code.tokens[left] not in ("&&", "||"):
                yield from negated(code, "operand", left + 1, i)
            yield from negated(code, "operand", i + 1, code.until(i + 1, both))
        if first is not None:
            yield from negated(code, "condition", first, last)


def negated(code, kind, first, behind):
    if first < behind:
        yield kind, first, behind, f"!({code.text[code.spans[first][0]:code.spans[behind - 1][1]]})"


def shape(code, first, behind):
    """The form of an argument, to find two alike; None for anything but a plain argument."""
    if not 0 < behind - first <= LONGEST or "{" in code.tokens[first:behind]:
        return None
    shaped = tuple("a" if NAME.fullmatch(t) else "0" if t[0].isdigit() else '"' if t[0] == '"' else t
                   for t in code.tokens[first:behind])
    return None if any(pair == ("a", "a") for pair in zip(shaped, shaped[1:])) else shaped


def arguments(code, begin, end):
    """Swaps two adjacent arguments of the same form."""
    for i in range(begin, end):
        name = code.tokens[i - 1]
        if code.tokens[i] != "(" or not NAME.fullmatch(name) or name in KEYWORDS or name in SYMMETRIC or i not in code.partner:
            continue
        parts, at = [], i + 1
        while at <= code.partner[i]:
            comma = code.until(at, (",",))
            parts.append((at, comma))
            at = comma + 1
        for (a, b), (c, d) in zip(parts, parts[1:]):
            if code.tokens[a:b] != code.tokens[c:d] and (form := shape(code, a, b)) and form == shape(code, c, d):
                one, two = (code.text[code.spans[x][0]:code.spans[y - 1][1]] for x, y in ((a, b), (c, d)))
                yield "arguments", a, d, f"{two}, {one}"


def bounds(code, begin, end):
    """Makes comparisons include or exclude their end, and increments numbers."""
    for i in range(begin, end):
        t = code.tokens[i]
        if t in MOVED and code.spaced(i):
            yield "bound", i, i + 1, MOVED[t]
        elif (m := NUMBER.fullmatch(t)) and not size_of_array(code, i):
            digits = m[1].replace("'", "")
            more = hex(int(digits, 16) + 1) if digits[:2] in ("0x", "0X") else str(int(digits) + 1)
            yield "constant", i, i + 1, more + m[2]


def size_of_array(code, i):
    """Or another argument of a template: one more there is room that nobody uses."""
    if code.tokens[i + 1] == ">" and not code.spaced(i + 1):
        return True
    return (code.tokens[i - 1] == "[" and code.tokens[i + 1] == "]" and NAME.fullmatch(code.tokens[i - 2])
            and (code.tokens[i - 3] in (">", "*") or NAME.fullmatch(code.tokens[i - 3]) is not None)
            and code.tokens[i - 3] not in ("return", "case"))


def returns(code, begin, end):
    """Removes `if (x) return y;`, so that the function continues."""
    for i in range(begin, end):
        if code.tokens[i] != "if" or code.partner.get(i + 1) is None:
            continue
        at = code.partner[i + 1] + 1
        braced = code.tokens[at] == "{"
        at += braced
        if code.tokens[at] != "return":
            continue
        behind = code.until(at, (";",)) + 1
        following = code.tokens[behind + braced] if behind + braced < len(code.tokens) else ""
        if following != "else" and (not braced or code.tokens[behind] == "}"):
            yield "return", at, behind, ";"


def lines_of(text, begin, end):
    """From the beginning of the first line to the end of the last one."""
    after = text.find("\n", end)
    return text.rfind("\n", 0, begin) + 1, len(text) if after < 0 else after


def find(file, text):
    """The places of a source, in order, each change once."""
    code = Tokens(text)
    found = {}
    for begin, end in code.functions():
        body = code.spans[begin][0], code.spans[end - 1][1]
        unseen = code.unseen(begin, end)
        for kind_of in (statements, conditions, arguments, bounds, returns):
            for kind, first, behind, put in kind_of(code, begin, end):
                if any(first < b and a < behind for a, b in unseen):
                    continue
                span = code.spans[first][0], code.spans[behind - 1][1]
                a, b = lines_of(text, *span)
                whole, line = text[a:b], text.count("\n", 0, span[0]) + 1
                changed = text[a:span[0]] + put + text[span[1]:b]
                found.setdefault((span, put), Place(file, kind, line, body, span, put, " ".join(whole.split()),
                                                    " ".join(changed.split())))
    return [found[key] for key in sorted(found)]
