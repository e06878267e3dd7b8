"""tools/check-abi detects a missing symbol, an unlisted one, and another soname."""
import os
import shutil
import subprocess
import sys
import tempfile

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
compiler = os.environ.get("CXX", "c++")
if not shutil.which(compiler) or not shutil.which("nm"):
    print("no compiler or no nm")
    sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    build = os.path.join(folder, "build")
    os.mkdir(build)
    os.mkdir(os.path.join(folder, "cmake"))

    def write(name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)

    def library(name, source, soname):
        write("library.cpp", source)
        subprocess.run([compiler, "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{soname}", "-o",
                        os.path.join(build, f"lib{name}.so"), os.path.join(folder, "library.cpp")], check=True)

    def said(*options):
        done = subprocess.run([sys.executable, os.path.join(TREE, "tools/check-abi"), "--tree", folder, "--build", build,
                               *options], capture_output=True, text=True)
        return done.returncode, done.stdout

    def expect(what, outcome, code, words):
        if outcome[0] != code or words not in outcome[1]:
            sys.exit(f"{what}: exit code {outcome[0]} and: {outcome[1]}")

    write("CMakeLists.txt", "set(URNIC_SOVERSION 3)\n")
    library("urnic-tcp", "int tcp() { return 1; }", "liburnic-tcp.so.3")
    expect("nothing built", said(), 77, "liburnic.so")
    library("urnic", "int stays(int) { return 1; } int goes() { return 2; }", "liburnic.so.3")
    expect("new ones", said(), 0, "exports goes()")
    expect("new ones, for a release", said("--complete"), 1, "does not list")
    expect("--update", said("--update"), 0, "")
    expect("all listed", said("--complete"), 0, "2 symbols, 2 of 2")
    library("urnic", "int stays(int) { return 1; } int comes() { return 2; }", "liburnic.so.3")
    expect("one has gone", said(), 1, "liburnic.so no longer exports goes()")
    library("urnic", "int stays(long) { return 1; } int goes() { return 2; }", "liburnic.so.3")
    expect("another argument", said(), 1, "no longer exports stays(int)")
    library("urnic", "int stays(int) { return 1; } int goes() { return 2; }", "liburnic.so.2")
    expect("another soname", said(), 1, "calls itself 'liburnic.so.2', not liburnic.so.3")
print("check-abi: all found")
