"""Linux siw and rxe between two guests, urnic over the kernel's TCP between the same two: emulated machines, whose rates can be
compared with each other but not with those of a real machine."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, BENCH)
sys.path.insert(0, os.path.join(os.path.dirname(BENCH), "tests", "interop"))
from ends import perftest_rate  # noqa: E402
from guest import Failure, Guest, Skip, expect, find_debian_image  # noqa: E402

SERVER, CLIENT = "10.77.0.3", "10.77.0.2"
SIZE, COUNT, PATIENCE = 65536, 40, 60
OPS = ("write", "read")
DEVICES = {"Linux siw": "siw", "Linux rxe": "rxe"}
OURS = "urnic, kernel TCP"
LOADER = "/host/loader --library-path /host /host/urnic perf --port tcp --stat off"
LISTENS = "for i in $(seq 400); do {} && exit 0; usleep 50000; done; exit 1"


def share(program, folder):
    """The program with its libraries and their loader: the guest has none of them."""
    os.makedirs(folder)
    shutil.copy(program, os.path.join(folder, "urnic"))
    for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines():
        for word in line.split():
            if word.startswith("/"):
                name = "loader" if "ld-linux" in word else os.path.basename(word)
                shutil.copy(word, os.path.join(folder, name))


class Machine(Guest):
    def __init__(self, image, folder, name, address, wire):
        super().__init__(image, folder, address)
        self.name, self.wire = name, wire

    def begin(self):
        done = self.call("start", self.name, "--dgram", ",".join(self.wire), "--ip", self.address + "/24", "--rdma", "none",
                         "--share", os.path.join(self.folder, "share"), timeout=300)
        if done.returncode:
            raise Skip("the guest does not boot here: " + done.stderr.strip()[-300:])

    def become(self, kind, _mtu=0):
        """The RDMA device on its network interface: siw, rxe, or none."""
        status, output = self.run("for d in siw0 rxe0; do rdma link del $d 2>/dev/null; done; "
                                  + (f"modprobe crc32_generic; modprobe libcrc32c; modprobe {'siw' if kind == 'siw' else 'rdma_rxe'} && "
                                     f"rdma link add {kind}0 type {kind} netdev eth0" if kind else "true") + " 2>&1")
        expect(status == 0, f"{kind}: {output[-200:]}")

    def serve_program(self, program, listens):
        status, _ = self.run(f"rm -f /tmp/status; ( {program} >/tmp/log 2>/tmp/err; echo $? >/tmp/status ) & " + LISTENS.format(listens))
        expect(status == 0, f"the guest does not listen: {program}")


class Couple:
    """Two guests with a wire between them."""

    def __init__(self, urnic, folder):
        self.folder, self.port = folder, 18600
        image = find_debian_image()
        share(urnic, os.path.join(folder, "share"))
        ends = os.path.join(folder, "client.sock"), os.path.join(folder, "server.sock")
        self.server = Machine(image, folder, "server", SERVER, (ends[1], ends[0]))
        self.client = Machine(image, folder, "client", CLIENT, ends)

    def begin(self):
        self.server.begin()
        self.client.begin()

    def kernels(self, kind, op):
        """Gb/s of ib_*_bw over the kernel's device."""
        self.port += 1
        words = f"ib_{op}_bw -R -d {kind}0 -F -p {self.port} -n {COUNT} -s {SIZE}"
        self.server.serve_program(f"timeout {PATIENCE} {words}", f"rdma resource show cm_id | grep LISTEN | grep -q ':{self.port}'")
        _, output = self.client.run(f"timeout {PATIENCE - 10} {words} {SERVER} 2>&1")
        self.server.served()
        return perftest_rate(output, SIZE, COUNT) * (1 << 20) * 8e-9

    def ours(self, op):
        self.port += 1
        self.server.serve_program(f"timeout {PATIENCE} {LOADER} -p {self.port}", f"ss -ltn | grep -q ':{self.port}'")
        _, output = self.client.run(f"timeout {PATIENCE - 10} {LOADER} {SERVER} -p {self.port} --op {op} --test bw -s {SIZE} -n {COUNT} --json 2>&1")
        self.server.served()
        expect("{" in output, "urnic perf: " + output[-200:])
        return rate_of(json.loads(output[output.index("{"):output.rindex("}") + 1]))

    def end(self):
        self.client.stop()
        self.server.stop()


def rate_of(tree):
    """Finds the average anywhere in the tree."""
    if isinstance(tree, dict):
        if "bw_average_gbit_per_second" in tree:
            return tree["bw_average_gbit_per_second"]
        tree = list(tree.values())
    found = [rate for branch in tree if isinstance(branch, (dict, list)) and (rate := rate_of(branch)) is not None] if isinstance(tree, list) else []
    return found[0] if found else None


def one(kept, couple, side, op):
    """One run; on failure its message is kept and the others continue."""
    try:
        rate = couple.kernels(DEVICES[side], op) if side in DEVICES else couple.ours(op)
    except (Failure, ValueError) as error:
        kept.leave_out("guests", f"{side}, {op}s", f"failed: {' '.join(str(error).split())[-200:]}")
        print(f"  guests: {side}: {op}s failed: {error}", flush=True)
        return
    kept.add("guests", side, {op: rate})
    print(f"  guests: {side}: {op}s  {rate:.4g} Gb/s", flush=True)


def measure(kept, urnic, rounds):
    """Adds to the record: {side: {op: Gb/s}}, or the reason why there is none."""
    folder = tempfile.mkdtemp(prefix="urnic-compare-", dir="/tmp")
    couple = None
    try:
        couple = Couple(urnic, folder)
        couple.begin()
        for _ in range(rounds):
            for side in (*DEVICES, OURS):
                for end in (couple.server, couple.client):
                    end.become(DEVICES.get(side))
                for op in OPS:
                    one(kept, couple, side, op)
    except (Skip, Failure, OSError, ValueError, subprocess.SubprocessError) as error:
        kept.leave_out("guests", "Linux siw and rxe", f"not there: {str(error) or type(error).__name__}")
        print(f"  guests: {error}", flush=True)
    finally:
        if couple:
            couple.end()
        shutil.rmtree(folder, ignore_errors=True)
