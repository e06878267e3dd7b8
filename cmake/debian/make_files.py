#!/usr/bin/env python3
"""make_files.py SOURCE OUT VERSION MAINTAINER SONAME - files of the Debian packages that are made of others:
copyright of LICENSE, changelogs of CHANGELOG.md, shlibs and triggers of the soname."""
import email.utils
import gzip
import os
import re
import subprocess
import sys
import textwrap


def date_of(source):
    """Of the sources: SOURCE_DATE_EPOCH, the last commit, or the CHANGELOG itself."""
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(epoch)
    try:
        said = subprocess.run(["git", "-c", "safe.directory=*", "-C", source, "log", "-1", "--format=%ct"],
                              capture_output=True, text=True, check=True)
        return int(said.stdout)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return int(os.path.getmtime(os.path.join(source, "CHANGELOG.md")))


def copyright_of(licence):
    lines = licence.strip().split("\n")
    holder = next(line for line in lines if line.startswith("Copyright"))
    text = "\n".join(lines[lines.index(holder) + 1:]).strip()
    body = "\n".join(" " + (line if line else ".") for line in text.split("\n"))
    holder = re.sub(r"^Copyright \(c\) ", "", holder).replace(",", "", 1)
    return ("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
            "Upstream-Name: urnic\n\n"
            f"Files: *\nCopyright: {holder}\nLicense: BSD-3-clause\n{body}\n")


def changelog(version, maintainer, date):
    text = textwrap.dedent(f"""\
        urnic ({version}) bookworm; urgency=medium

          * Packages of this version; what is new is in changelog.gz.

         -- {maintainer}  {email.utils.formatdate(date)}
        """)
    return text


def main():
    source, out, version, maintainer, soname = sys.argv[1:]
    os.makedirs(out, exist_ok=True)

    def write(name, content):
        path = os.path.join(out, name)
        old = open(path, "rb").read() if os.path.exists(path) else None
        if old != content:
            with open(path, "wb") as f:
                f.write(content)

    def packed(content):
        return gzip.compress(content.encode(), 9, mtime=0)

    def text(name):
        with open(os.path.join(source, name), encoding="utf-8") as f:
            return f.read()

    upstream = version.rsplit("-", 1)[0]
    write("copyright", (copyright_of(text("LICENSE")) + text("cmake/debian/xxhash.copyright")).encode())
    write("changelog.gz", packed(text("CHANGELOG.md")))
    write("changelog.Debian.gz", packed(changelog(version, maintainer, date_of(source))))
    package = f"liburnic{soname} (>= {upstream})"
    write("shlibs", f"liburnic {soname} {package}\nliburnic-tcp {soname} {package}\n".encode())
    write("triggers", b"activate-noawait ldconfig\n")


if __name__ == "__main__":
    main()
