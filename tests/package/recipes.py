#!/usr/bin/env python3
"""recipes.py DOCS ACTION OUT: writes the shell of each recipe of docs/ci.md, and of the action, to a file of its own."""
import pathlib
import re
import sys
import textwrap


def block(text, key):
    """The lines below `key:` or `key: |`, without their indentation."""
    found = re.search(rf"^( *)(?:- )?{key}:(?: \|)?\n((?:\1  +\S.*\n|\n)+)", text, re.M)
    if not found:
        sys.exit(f"recipes.py: no '{key}:'")
    return textwrap.dedent(found.group(2))


def main():
    docs, action, out = (pathlib.Path(a) for a in sys.argv[1:])
    fenced = re.findall(r"^## (.*?)\n.*?^```(sh|yaml)\n(.*?)^```", docs.read_text(), re.M | re.S)
    recipes = {"setup-urnic": block(action.read_text(), "run")}
    for title, kind, text in fenced:
        name = re.sub(r"\W+", "-", title.lower())
        if kind == "yaml" and "script:" in text:
            text = "".join(line.removeprefix("- ") + "\n" for line in block(text, "script").splitlines())
        elif kind == "yaml":
            text = block(text, "run")
        recipes[name] = text
    if sorted(recipes) != ["docker-and-podman", "github-actions", "gitlab-ci", "one-line", "setup-urnic"]:
        sys.exit(f"recipes.py: {docs} has other recipes: {', '.join(recipes)}")
    out.mkdir(exist_ok=True)
    for name, text in recipes.items():
        (out / name).write_text("set -eu\n" + text)


main()
