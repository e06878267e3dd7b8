"""P15's real peer: Linux rdma_rxe in emulated guests, with a wire that loses 1 % in each direction. Rates there are noise, but the
ratio is meaningful, because the waiting time is the timer of rdma_cm, two seconds."""
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests", "interop"))
from ends import perftest_rate  # noqa: E402
from guest import Failure, Guest, Skip, expect, find_debian_image  # noqa: E402

SERVER, CLIENT, OURS = "10.77.0.3", "10.77.0.2", "10.77.0.1"
SIZE, COUNT, PATIENCE = 65536, 20, 110
# The guest has netem but not the program that configures it: uses this machine's, with its
# libraries and loader.
SHARED = "/host/loader --library-path /host /host/tc"


def share_tc(folder):
    tc = shutil.which("tc", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not tc:
        raise Skip("tc is not installed")
    os.makedirs(folder)
    shutil.copy(tc, os.path.join(folder, "tc"))
    for line in subprocess.run(["ldd", tc], capture_output=True, text=True, check=True).stdout.splitlines():
        for word in line.split():
            if word.startswith("/"):
                name = "loader" if "ld-linux" in word else os.path.basename(word)
                shutil.copy(word, os.path.join(folder, name))


class Rxe(Guest):
    def __init__(self, image, folder, name, address, wire):
        super().__init__(image, folder, address)
        self.name, self.wire = name, wire

    def begin(self):
        done = self.call("start", self.name, "--dgram", ",".join(self.wire), "--ip", self.address + "/24", "--rdma", "rxe",
                         "--share", os.path.join(self.folder, "share"), timeout=300)
        if done.returncode:
            raise Skip("the guest does not boot here: " + done.stderr.strip()[-300:])
        status, output = self.run(f"modprobe sch_netem && {SHARED} qdisc replace dev eth0 root netem loss 1% limit 10000 2>&1")
        expect(status == 0, "netem: " + output[-200:])

    def serve_rdma(self, program, port):
        status, _ = self.run(
            f"rm -f /tmp/status; ( {program} >/tmp/log 2>/tmp/err; echo $? >/tmp/status ) & "
            f"for i in $(seq 400); do rdma resource show cm_id | grep LISTEN | grep -q ':{port}' && exit 0; usleep 50000; done; exit 1")
        expect(status == 0, f"the guest does not listen on port {port}")


class Couple:
    """A serving guest, with another guest or urnic as the requester."""

    def __init__(self, folder, peer):
        self.folder, self.peer, self.port = folder, peer, 18600
        image = find_debian_image()
        share_tc(os.path.join(folder, "share"))
        ends = os.path.join(folder, "client.sock"), os.path.join(folder, "server.sock")
        self.ours, self.theirs = ends
        self.server = Rxe(image, folder, "server", SERVER, (ends[1], ends[0]))
        self.client = Rxe(image, folder, "client", CLIENT, ends)

    def serve(self, op):
        self.port += 1
        self.server.serve_rdma(f"timeout {PATIENCE} ib_{op}_bw -R -d rxe0 -F -p {self.port} -n {COUNT} -s {SIZE}", self.port)

    def rxe(self, op):
        self.serve(op)
        _, output = self.client.run(f"timeout {PATIENCE - 10} ib_{op}_bw -R -d rxe0 -F -p {self.port} -n {COUNT} -s {SIZE} {SERVER} 2>&1")
        self.server.served()
        return perftest_rate(output, SIZE, COUNT)

    def urnic(self, op):
        self.serve(op)
        settings = {"port": f"dgram:path={self.ours},peer={self.theirs},mtu=9000", "address": OURS + "/24", "mtu": "1500", "stat": "off",
                    "transport": "roce", "faults": "loss=0.01,skip_handshake=on,seed=7"}
        command = [self.peer, "-t", str(PATIENCE - 10), "-p", str(self.port), "-C", str(COUNT), "-S", str(SIZE), "-m", op, "-c", SERVER]
        for name, value in settings.items():
            command += ["-o", f"{name}={value}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE + 20, check=False)
        expect(done.returncode == 0, "our peer: " + done.stderr.strip()[-200:])
        status, output = self.server.served()
        expect(status == "0", f"the guest's server ended with {status}: {output[-200:]}")
        return perftest_rate(output, SIZE, COUNT)

    def end(self):
        self.client.stop()
        self.server.stop()


def measure(peer, reps):
    """{(requester, op): [MB/s]}, or the reason why there is none."""
    folder = tempfile.mkdtemp(prefix="urnic-bench-", dir="/tmp")
    couple, found = None, {}
    try:
        couple = Couple(folder, peer)
        couple.server.begin()
        couple.client.begin()
        for _ in range(reps):
            for op in ("write", "read"):
                found.setdefault(("rxe", op), []).append(couple.rxe(op))
        couple.client.stop()  # urnic takes its end of the wire
        if os.path.exists(couple.ours):
            os.unlink(couple.ours)
        for _ in range(reps):
            for op in ("write", "read"):
                found.setdefault(("urnic", op), []).append(couple.urnic(op))
        return found
    except (Skip, Failure, OSError, subprocess.SubprocessError) as e:
        return str(e) or type(e).__name__
    finally:
        if couple:
            couple.end()
        shutil.rmtree(folder, ignore_errors=True)
