"""P21 of bench/run: `urnic put` and `urnic get` of a large file over memif, beside `cp`."""
import contextlib
import os
import shutil
import subprocess
import tempfile
import time

import programs
import states

# `m` is bench/run itself: run(*command), program(o, name). `r` is its report, `o` its options.

SIZE = 300_000_000
MEMORY = "/dev/shm"  # a tmpfs: the disk is not measured
START = 0.7  # seconds for the target to start


def on_cpu(cpu, *command):
    return ["taskset", "-c", str(cpu), *command]


@contextlib.contextmanager
def target(m, o, folder, port):
    server = subprocess.Popen(on_cpu(0, m.program(o, "urnic"), "target", "--export", folder, "--stat", "off", "-q",
                                     "--port", port), stdout=subprocess.DEVNULL)
    try:
        time.sleep(START)
        yield
    finally:
        server.terminate()
        server.wait()


def megabytes_a_second(m, made, *command):
    """Of the whole command, which makes the file `made`; removes it."""
    begin = time.monotonic()
    m.run(*on_cpu(1, *command), timeout=120)
    took = time.monotonic() - begin
    if os.path.getsize(made) != SIZE:
        raise SystemExit(f"bench/run: {' '.join(command[:2])} made a file of {os.path.getsize(made)} bytes")
    os.unlink(made)
    return SIZE / took * 1e-6


def p21(m, r, o):
    programs.needs("taskset")
    if shutil.disk_usage(MEMORY).free < 4 * SIZE:
        raise SystemExit(f"bench/run: {MEMORY} has no room for {4 * SIZE >> 20} MiB")
    with tempfile.TemporaryDirectory(prefix="urnic-p21-", dir=MEMORY) as folder:
        source, export, new, copy = (os.path.join(folder, name) for name in ("big", "export", "export/new", "copy"))
        os.mkdir(export)
        with open(source, "wb") as f:
            for _ in range(SIZE // 1_000_000):
                f.write(os.urandom(1_000_000))
        os.link(source, os.path.join(export, "there"))
        urnic, port = m.program(o, "urnic"), f"memif:socket={folder}/wire.sock,mtu=9000"
        more = ["--port", port, "--stat", "off"]

        def once():
            with target(m, o, export, port):
                got = {"put": megabytes_a_second(m, new, urnic, "put", source, "10.77.0.1/new", *more),
                       "get": megabytes_a_second(m, copy, urnic, "get", "10.77.0.1/there", copy, *more)}
            return got | {"cp": megabytes_a_second(m, copy, "cp", source, copy)}

        def judge(values):
            put, get, plain = r.medians(values, "MB/s").values()
            r.ratio("urnic put / cp", put / plain, 0.8)
            r.ratio("urnic get / cp", get / plain, 0.8)

        once()  # not counted: a virtual machine's host provides memory at its first use
        states.repeat(m, r, o, o.reps or 5, once, judge)


MEASURES = {"P21": p21}
