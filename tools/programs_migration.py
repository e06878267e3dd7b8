#!/usr/bin/env python3
"""programs_migration.py source|target ADDRESS: one end of a live migration by QEMU over RDMA, for a row of tools/programs.

The source starts a machine with 64 MiB of pseudo-random bytes in its memory, migrates it to ADDRESS and prints the result. The
target waits for it, compares every one of these bytes when the machine runs there, and ends.
"""
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time

PORT = 4444
AT, BYTES = 32 << 20, 64 << 20  # where in the machine's memory, and how many
QEMU = ["qemu-system-x86_64", "-M", "pc", "-accel", "tcg", "-m", "256", "-display", "none", "-serial", "none", "-nodefaults",
        "-mon", "chardev=monitor,mode=control"]


def contents():
    return random.Random(4).randbytes(BYTES)


class Machine:
    def __init__(self, *options):
        ours, its = socket.socketpair()  # its standard output has messages about RDMA
        with its:
            monitor = ["-chardev", f"socket,id=monitor,fd={its.fileno()}"]
            self.process = subprocess.Popen([*QEMU, *monitor, *options], stdin=subprocess.DEVNULL, pass_fds=[its.fileno()])
        self.lines = ours.makefile("rw", encoding="utf-8")
        self.events = []
        self.read()  # its greeting
        self.ask("qmp_capabilities")

    def read(self):
        line = self.lines.readline()
        if not line:
            sys.exit(f"qemu ended: {self.process.wait()}")
        said = json.loads(line)
        if "event" in said:
            self.events.append(said["event"])
        return said

    def ask(self, command, **arguments):
        self.lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.lines.flush()
        while True:
            said = self.read()
            if "error" in said:
                sys.exit(f"{command}: {said['error']['desc']}")
            if "return" in said:
                return said["return"]

    def until(self, event):
        while event not in self.events:
            self.read()

    def quit(self):
        self.ask("quit")
        return self.process.wait()


def source(address):
    with tempfile.NamedTemporaryFile(dir=".") as f:
        f.write(contents())
        f.flush()
        machine = Machine("-device", f"loader,file={f.name},addr={AT},force-raw=on")
        machine.ask("migrate-set-parameters", **{"max-bandwidth": 100 << 30})
        machine.ask("migrate", uri=f"rdma:{address}:{PORT}")
        while (how := machine.ask("query-migrate"))["status"] not in ("completed", "failed"):
            time.sleep(0.05)
    if how["status"] != "completed":
        sys.exit(f"the migration {how['status']}: {how.get('error-desc', '')}")
    print(f"migrated {how['ram']['transferred'] >> 20} MiB in {how['total-time']} ms, stopped for {how['downtime']} ms")
    return machine.quit()


def target(address):
    machine = Machine("-incoming", f"rdma:{address}:{PORT}")
    machine.until("RESUME")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        saved = os.path.abspath(os.path.join(folder, "memory"))
        machine.ask("pmemsave", val=AT, size=BYTES, filename=saved)
        with open(saved, "rb") as f:
            if f.read() != contents():
                sys.exit("the memory that arrived differs")
    print("every byte is the same")
    return machine.quit()


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("source", "target"):
        sys.exit(__doc__.split("\n", maxsplit=1)[0])
    sys.exit((source if sys.argv[1] == "source" else target)(sys.argv[2]))
