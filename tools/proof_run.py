"""How tools/mutants builds test_mutants and runs tests of it under one mutant."""
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import proof_items as proof

# Seconds of CPU time that a test may take under a mutant: it does not matter how busy the machine is. The slowest takes a third.
CPU = 120
WALL = 300  # seconds; for a test that waits and computes nothing
MANY = 10  # times as long, for many tests in one process

# How long tests may take, in seconds; what the shell's `ulimit` says besides; whether they end with the first failure.
Limits = collections.namedtuple("Limits", "cpu wall more fail_fast", defaults=((), False))
Result = collections.namedtuple("Result", "outcome seconds failed skipped", defaults=((),))
running = set()  # process groups
CLEAR = ("killed", "survived", "skipped", "no such test")


def run(program, mutant, tests, many=1, part=(0, 1), limits=None):
    """The outcome (one of CLEAR, or what happened instead) and the tests that failed. `part`: which one of how many equal
    parts of the tests. `limits` instead of what `many` allows."""
    limits = limits or Limits(many * CPU, many * WALL)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "result.json")
        flags = os.path.join(folder, "flags")  # all filters together are too long for a command line
        with open(flags, "w", encoding="utf-8") as f:
            f.write("--gtest_filter=" + ":".join(f for t in tests for f in filters(t)) + "\n")
        env = dict(os.environ, URNIC_MUTANT=mutant, GTEST_SHARD_INDEX=str(part[0]), GTEST_TOTAL_SHARDS=str(part[1]))
        command = [*limited(limits), program, "--gtest_flagfile=" + flags, "--gtest_output=json:" + out, "--gtest_brief=1",
                   *(["--gtest_fail_fast"] if limits.fail_fast else [])]
        start = time.monotonic()
        with open(os.path.join(folder, "said"), "w+", encoding="utf-8", errors="replace") as said:
            code = wait(subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
                                         start_new_session=True), limits.wall)
            said.seek(0)
            words = said.read().strip()[-200:]
        seconds = time.monotonic() - start
        if code is None:
            return Result(f"no end within {limits.wall} s", seconds, ())
        if code == -signal.SIGXCPU:
            return Result(f"no end within {limits.cpu} s of CPU time", seconds, ())
        if code < 0:
            return Result(f"crashed by signal {-code}", seconds, ())
        if code > 1 or not os.path.exists(out):
            return Result(f"exit {code}: {words}", seconds, ())
        with open(out, encoding="utf-8") as f:
            data = json.load(f)
    return judge(data, seconds)


def limited(limits):
    """The beginning of a command that keeps to its limits."""
    asked = " && ".join(f"ulimit -S {limit}" for limit in (f"-t {limits.cpu}", *limits.more))
    return ["/bin/sh", "-c", f'{asked}; exec "$@"', "sh"]


def run_command(name, command, mutant, limits):
    """The same of a test of ctest, whose exit status is its result."""
    start = time.monotonic()
    code = wait(subprocess.Popen([*limited(limits), *command], env=dict(os.environ, URNIC_MUTANT=mutant), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True), limits.wall)
    seconds = time.monotonic() - start
    if code is None:
        return Result(f"no end within {limits.wall} s", seconds, ())
    if code in (0, 77):
        return Result("skipped" if code else "survived", seconds, ())
    return Result("killed", seconds, {tuple(name.split(".", 1))})


def wait(process, seconds):
    """Its exit status, or None if it does not end. What it has started ends with it."""
    running.add(process.pid)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        kill(process.pid)
        running.discard(process.pid)
        process.wait()


def kill(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end_together():
    """Whoever ends this program ends the tests that it runs."""
    def end(number, _):
        for group in list(running):
            kill(group)
        os._exit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def judge(data, seconds):
    ran, failed, skipped = 0, set(), set()
    for suite in data["testsuites"]:
        for test in suite["testsuite"]:
            names = proof.source_names(suite.get("name", ""), test["name"])
            if test.get("result") == "SKIPPED":
                skipped |= names
                continue
            ran += test.get("status") == "RUN"
            if test.get("failures"):
                failed |= names
    if ran == 0:
        return Result("skipped" if skipped else "no such test", seconds, (), skipped)
    return Result("killed" if data["failures"] else "survived", seconds, failed, skipped)


def filters(test):
    """A test as its source names it stands for all its instances."""
    suite, name = test.split(".", 1)
    return [f"{suite}.{name}", f"*/{suite}.{name}", f"{suite}.{name}/*", f"*/{suite}.{name}/*", f"{suite}/*.{name}"]


def run_twice(program, mutant, tests, many=1):
    """For tests that depend on the machine: only a failure that repeats has its cause in the mutant."""
    first = run(program, mutant, tests, many)
    if first.outcome != "killed":
        return first
    second = run(program, mutant, tests, many)
    failed = set(first.failed) & set(second.failed)
    outcome = second.outcome if second.outcome != "killed" or failed else "survived"
    if outcome == "survived":
        outcome = "survived the second of two runs"
    return Result(outcome, first.seconds + second.seconds, failed if outcome == "killed" else (), second.skipped)


def is_configured(folder):
    cache = os.path.join(folder, "CMakeCache.txt")
    return os.path.exists(cache) and "URNIC_PROOF:BOOL=ON" in proof.read(cache)


def configuration(root, folder, together):
    """The command that configures a folder for mutants. `together`: what is compiled together (URNIC_TOGETHER)."""
    return ["cmake", "-S", root, "-B", folder, "-G", "Ninja", "-DURNIC_PROOF=ON", f"-DURNIC_TOGETHER={together}",
            "-DURNIC_BENCH=OFF", "-DURNIC_DPDK=OFF"]


def forget(root, folder):
    """Removes the objects that were compiled with a source or header of which there is a copy now: what ninja knows of them does not
    tell that an include finds another file."""
    copies = os.path.join(folder, "mutated")
    originals = {os.path.join(os.path.abspath(root), "src", os.path.relpath(os.path.join(base, name), copies))
                 for base, _, names in os.walk(copies) for name in names}
    known = subprocess.run(["ninja", "-C", folder, "-t", "deps"], capture_output=True, text=True, check=False).stdout
    for about in known.split("\n\n"):
        name, *deps = about.splitlines() or [""]
        path = os.path.join(folder, name.split(":")[0])
        if originals & {os.path.normpath(os.path.join(folder, dep.strip())) for dep in deps} and os.path.isfile(path):
            os.remove(path)


def build(root, folder):
    """The sources are written first: CMake runs again only if other files are mutated than before."""
    generate = os.path.join(root, "tests", "mutants", "generate.py")
    steps = [[sys.executable, generate, "--root", root, os.path.join(folder, "mutated")]]
    if not is_configured(folder):
        steps.append(configuration(root, folder, "ON"))
    said = carry_out(folder, steps)
    if said is None:
        said = compile_all(root, folder)
    if said is not None:
        give_up(said)
    return os.path.join(folder, "test_mutants")


def compile_all(root, folder, targets=("test_mutants",), options=()):
    """None, or what the compiler says is wrong."""
    forget(root, folder)
    print(f"builds test_mutants ({os.path.relpath(os.path.join(folder, 'build.log'))})", flush=True)
    return carry_out(folder, [["cmake", "--build", folder, "--target", *targets, "-j", str(os.cpu_count() or 1), *options]])


def carry_out(folder, steps):
    """What the first step that fails and those before it have said; None if all succeed."""
    log = os.path.join(folder, "build.log")
    os.makedirs(folder, exist_ok=True)
    with open(log, "w+", encoding="utf-8", errors="replace") as f:
        for step in steps:
            if subprocess.run(step, stdout=f, stderr=subprocess.STDOUT, check=False).returncode != 0:
                f.seek(0)
                return f.read()
    return None


def give_up(said):
    lines = said.splitlines()
    wrong = [n for n, line in enumerate(lines) if re.search(r"error:|Error", line)]
    print("\n".join(lines[wrong[0]:wrong[0] + 20] if wrong else lines[-20:]))
    sys.exit("mutants: test_mutants does not build")
