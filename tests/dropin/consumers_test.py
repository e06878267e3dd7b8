#!/usr/bin/env python3
"""consumers_test.py FOLDER - checks that every program and library of these packages that needs one of the drop-in
libraries can be loaded with those of FOLDER, with all symbols bound at load time. No program is executed."""
import os
import subprocess
import sys

PACKAGES = ["perftest", "rdmacm-utils", "ibverbs-utils", "fio", "qperf", "tgt", "libiscsi7", "libiscsi-bin", "libfabric1",
            "libucx0"]
OURS = ("libibverbs.so.1", "librdmacm.so.1")


def files_of(package):
    listed = subprocess.run(["dpkg-query", "-L", package], capture_output=True, text=True)
    if listed.returncode != 0:
        return None
    return [f for f in listed.stdout.split("\n") if os.path.isfile(f) and not os.path.islink(f)]


def needs(path):
    with open(path, "rb") as f:
        if f.read(4) != b"\x7fELF":
            return []
    out = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout
    return [line.split("[")[1].split("]")[0] for line in out.split("\n") if "(NEEDED)" in line]


def wrong_with(path, folder):
    env = dict(os.environ, LD_LIBRARY_PATH=folder, LD_BIND_NOW="1", LD_WARN="yes")
    env.pop("LD_PRELOAD", None)
    out = subprocess.run(["/lib64/ld-linux-x86-64.so.2" if os.path.exists("/lib64/ld-linux-x86-64.so.2")
                          else "/lib/ld-linux-aarch64.so.1", "--list", path],
                         capture_output=True, text=True, env=env)
    text = out.stdout + out.stderr
    for line in text.split("\n"):
        for word in ("undefined symbol", "not found", "no version information"):
            if word in line:
                return line.strip()
        for name in OURS:
            if line.strip().startswith(name) and folder not in line:
                return f"takes {line.strip()}"
    return None if out.returncode == 0 else text.strip()


def main():
    folder = os.path.realpath(sys.argv[1])
    seen = failed = 0
    for package in PACKAGES:
        files = files_of(package)
        if files is None:
            print(f"skipped: {package} is not installed")
            continue
        users = [f for f in files if any(n in OURS for n in needs(f))]
        for path in users:
            seen += 1
            wrong = wrong_with(path, folder)
            if wrong:
                failed += 1
                print(f"FAILED: {path}: {wrong}")
        print(f"{package}: {len(users)} programs and libraries")
    if seen == 0:
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
