"""Which mutants a change concerns (tools/mutants --changed): those in functions and tests that it touches, and those whose
tables it touches."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "tests", "mutants")]
import generate  # noqa: E402
import proof_items as proof  # noqa: E402

HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def git(root, *args):
    done = subprocess.run(["git", "-C", root, "-c", "core.quotepath=off", *args], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"mutants: git {args[0]}: {done.stderr.strip()}")
    return done.stdout


def base_of(root):
    """What a change is compared with if nobody says: HEAD, or the commit before it if the tree is as committed."""
    return "HEAD" if git(root, "status", "--porcelain", "--", "src", "tests").strip() else "HEAD~1"


def changed_lines(root, base):
    """{path: [(first, last)]} of the working tree. (n + 1, n) stands for lines that are gone between n and n + 1."""
    changed = {}
    old = path = None
    for line in git(root, "diff", "-U0", "--no-color", "--no-ext-diff", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/", base,
                    "--", "src", "tests").splitlines():
        if line.startswith("--- "):
            old = line[6:]
        elif line.startswith("+++ "):
            path = old if line == "+++ /dev/null" else line[6:]
            changed[path] = []
        elif m := HUNK.match(line):
            first, count = int(m[1]), int(m[2] or 1)
            changed[path].append((first, first + count - 1) if count else (first + 1, first))
    for path in git(root, "ls-files", "--others", "--exclude-standard", "--", "src", "tests").splitlines():
        changed[path] = [(1, sys.maxsize)]
    return changed


def touches(changes, lines):
    first, last = lines
    return any(first <= min(b, last) and max(a, first) <= last if a <= b else first <= b and a <= last for a, b in changes)


def concerns_function(root, edit, changes):
    """Whether a change of the file concerns the function of `edit`, or has taken it away."""
    path = os.path.join(root, "src", edit.file)
    if not os.path.exists(path):
        return True
    found = generate.Code(proof.read(path)).lines(edit.function)
    return not found or any(touches(changes, lines) for lines in found)


def changed_tests(root, changed):
    """{(suite, name)}: tests that were touched; all of a file where something outside its tests was."""
    by_file, tests = {}, set()
    for claim in proof.load_claims(root):
        if claim.file in changed:
            by_file.setdefault(claim.file, []).append(claim)
    for file, claims in by_file.items():
        inside = [c for c in claims if c.lines is None or touches(changed[file], c.lines)]
        if not file.endswith(".pkt"):
            text = proof.read(os.path.join(root, file)).split("\n")
            touched = {n for a, b in changed[file] for n in range(a, min(b, len(text)) + 1) if text[n - 1].strip()}
            if touched - {n for c in claims for n in range(c.lines[0], c.lines[1] + 1)}:
                inside = claims
        tests.update((c.suite, c.name) for c in inside)
    return tests


def select(root, mutants, base):
    """The names of the mutants that the difference between `base` and the working tree concerns."""
    changed = changed_lines(root, base)
    tests = changed_tests(root, changed)
    names = set()
    for m in mutants:
        functions = [e for e in m.edits if "src/" + e.file in changed]
        if (touches(changed.get(m.edits[0].where.split(":")[0], ()), m.lines)
                or any(concerns_function(root, e, changed["src/" + e.file]) for e in functions)
                or any(proof.source_names(*t.split(".", 1)) & tests for t in m.tests)):
            names.add(m.name)
    return names
