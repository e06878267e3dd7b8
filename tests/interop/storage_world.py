"""The ends of storage_test: a guest whose kernel is an iSCSI initiator or target over RDMA, and unmodified
programs under `urnic run` on this machine."""
import hashlib
import os
import re
import signal
import subprocess
import time

from guest import Failure, Guest, expect

KERNEL, OWN, GUEST = "10.77.0.1", "10.77.0.5", "10.77.0.3"
OWN_TAP, GUEST_TAP = "own0", "gst0"
PLAIN = "tx off tso off gso off gro off"
MAKE_WORLD = f"""
ip link set lo up
ip link add br0 type bridge forward_delay 0 mcast_snooping 0
ip addr add {KERNEL}/24 dev br0
for t in {OWN_TAP} {GUEST_TAP}; do
  ip tuntap add $t mode tap
  ethtool -K $t {PLAIN}
  ip link set $t master br0 up
done
ethtool -K br0 {PLAIN}
ip link set br0 up
"""
NEEDED = ("unshare", "ip", "ethtool", "tgtd", "tgtadm", "iscsi-inq", "iscsi-ls", "iscsi-perf", "qemu-io", "qemu-img")
NAME = "iqn.2026-11.urnic:"
DISK_SIZE = 64 << 20
TARGET_PORT, LIO_PORT = 3261, 3260
STORAGE_TIMEOUT = 150  # seconds for a script in the guest: each loss costs rxe two
KERNEL_ERRORS = ("BUG", "Oops", "general protection", "isert_print_wc: recv failure")


# libiscsi 1.19 over iSER fails with this when a response takes more than a second, as LIO's first login may.
IMPATIENCE = "revents is not POLLIN"


class Wire:
    """How our end reaches the guest. `lossy`: 1 % of the frames are lost, in each direction. `only_long`: not tried
    in the selection."""

    def __init__(self, name, kind, address, settings, lossy=False, only_long=False):
        self.name, self.kind, self.address, self.lossy, self.only_long = name, kind, address, lossy, only_long
        self.settings = dict(settings)
        if lossy:
            self.settings["faults"] = "loss=0.01,seed=7"

    @property
    def data_size(self):
        return (4 if self.lossy else 16) << 20


OWN_TCP = {"port": f"tap:name={OWN_TAP},mtu=1500,offload=off", "address": f"{OWN}/24", "time_wait_ms": "100"}
ROCE = {"transport": "roce", "port": f"udp:bind={KERNEL},mtu=1500"}
WIRES = (Wire("siw, kernel's TCP", "siw", KERNEL, {}),
         Wire("siw, own TCP", "siw", OWN, OWN_TCP, only_long=True),
         Wire("siw, own TCP, 1 % lost", "siw", OWN, OWN_TCP, lossy=True),
         Wire("rxe", "rxe", KERNEL, ROCE),
         Wire("rxe, 1 % lost", "rxe", KERNEL, ROCE, lossy=True))


# ---- this machine ----------------------------------------------------------------------------------

class Host:
    """Runs programs under `urnic run` over a wire."""

    def __init__(self, urnic, folder):
        self.urnic, self.folder = os.path.abspath(urnic), folder
        os.makedirs(self.path("run"), mode=0o700)

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, wire, calls=False):
        """`calls`: the guest serves; siw loses an early first message (docs/interop.md)."""
        settings = {**wire.settings, "first_fpdu_delay_ms": "100"} if calls and wire.kind == "siw" else wire.settings
        return dict(os.environ, XDG_RUNTIME_DIR=self.path("run"), TGT_IPC_SOCKET=self.path("tgt"),
                    **{f"URNIC_{name.upper()}": value for name, value in settings.items()})

    def command(self, *words):
        return [self.urnic, "run", "--", *words]

    def start(self, wire, words, log, calls=False):
        with open(self.path(log), "w", encoding="utf-8") as out:
            return subprocess.Popen(self.command(*words), env=self.environment(wire, calls), cwd=self.folder,
                                    stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)

    def call(self, wire, *words, timeout=50):
        """Runs a client of the guest; returns its output."""
        for last in (False, False, False, True):
            try:
                done = subprocess.run(self.command(*words), env=self.environment(wire, True), cwd=self.folder,
                                      timeout=timeout, capture_output=True, text=True, errors="replace", check=False)
            except subprocess.TimeoutExpired as e:
                raise Failure(f"{words[0]} did not end within {timeout} s") from e
            said = done.stdout + done.stderr
            if done.returncode == 0:
                return said
            if last or IMPATIENCE not in said:
                raise Failure(f"{words[0]} ended with {done.returncode}: {said.strip()[-200:]}")

    def log(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as f:
            return " | ".join(f.read().strip().splitlines()[-3:])

    def hash_of(self, name, start=0, size=None):
        with open(self.path(name), "rb") as f:
            f.seek(start)
            return hashlib.sha256(f.read() if size is None else f.read(size)).hexdigest()


class TgtTarget:
    """tgtd of Debian's package tgt, with one disk: a file that stays when tgtd is killed."""

    def __init__(self, host, wire):
        self.host, self.wire, self.process = host, wire, None
        with open(host.path("disk.img"), "wb") as f:
            f.truncate(DISK_SIZE)

    def start(self):
        for name in os.listdir(self.host.folder):
            if name.startswith("tgt."):
                os.unlink(self.host.path(name))
        # Its own iSCSI over TCP has port 3260.
        command = ["tgtd", "-f", "--iser", f"port={TARGET_PORT},pool_sz_mb=64", "-C", "9"]
        self.process = self.host.start(self.wire, command, "tgtd.log")
        target = ["tgtadm", "-C", "9", "--lld", "iser", "--tid", "1", "--mode"]
        first = target + ["target", "--op", "new", "-T", NAME + "disk"]
        for _ in range(100):
            done = self.admin(first)
            if done.returncode == 0 or self.process.poll() is not None:
                break
            time.sleep(0.1)
        expect(done.returncode == 0, f"tgtadm: {done.stderr.strip()[-100:]}; tgtd: {self.log()}")
        for words in (["logicalunit", "--op", "new", "--lun", "1", "-b", self.host.path("disk.img")],
                      ["target", "--op", "bind", "-I", "ALL"], ["target", "--op", "bind", "-Q", NAME + "guest"]):
            done = self.admin(target + words)
            expect(done.returncode == 0, f"tgtadm {words[0]}: {done.stderr.strip()[-100:]}")

    def admin(self, words):
        return subprocess.run(words, env=self.host.environment(self.wire), capture_output=True, text=True, check=False)

    def log(self):
        return self.host.log("tgtd.log")

    def kill(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


# ---- the guest -------------------------------------------------------------------------------------

class StorageGuest(Guest):
    """The guest with siw or rxe. `expect_run` runs a script that must succeed."""

    def __init__(self, image, folder, kind):
        super().__init__(image, folder, GUEST, tap=GUEST_TAP, options=("--rdma", kind))
        self.kind = kind

    def run(self, script):
        done = self.call("exec", self.name, script, timeout=STORAGE_TIMEOUT)
        return done.returncode, done.stdout

    def expect_run(self, script, what):
        status, output = self.run(script)
        expect(status == 0, f"{what}: {output.strip()[-300:]}")
        return output.strip()

    def set_loss(self, lossy):
        self.expect_run("modprobe sch_netem && tc qdisc replace dev eth0 root netem loss 1%" if lossy else
                        "tc qdisc del dev eth0 root 2>/dev/null; true", "the guest's netem")

    def frames_lost(self):
        said = self.expect_run("tc -s qdisc show dev eth0", "tc")
        dropped = re.search(r"dropped (\d+)", said)
        return int(dropped.group(1)) if dropped else 0

    def kill(self):
        """As by a power failure."""
        os.kill(self.pid(), signal.SIGKILL)
        self.stop()

    def kernel_errors(self):
        output = self.call("exec", self.name, "dmesg -c", timeout=15).stdout
        return " | ".join([line for line in output.splitlines() if any(e in line for e in KERNEL_ERRORS)][:3])


class Initiator:
    """open-iscsi in the guest, with the transport iser."""

    DISK = "/dev/sda"

    def __init__(self, guest, portal):
        self.guest, self.portal = guest, portal
        guest.expect_run(f"""mkdir -p /etc/iscsi /run/lock/iscsi /tmp
            echo InitiatorName={NAME}guest >/etc/iscsi/initiatorname.iscsi
            echo 'node.session.timeo.replacement_timeout = 60' >/etc/iscsi/iscsid.conf
            modprobe sd_mod && modprobe ib_iser || exit 1
            pidof iscsid >/dev/null || iscsid""", "iscsid")

    def login(self):
        found = self.guest.expect_run(f"timeout 40 iscsiadm -m discovery -t sendtargets -p {self.portal} -I iser",
                                      "discovery")
        expect(f"{self.portal},1 {NAME}disk" in found, f"discovery found: {found[-100:]}")
        self.guest.expect_run(f"""timeout 40 iscsiadm -m node -p {self.portal} -l || exit 1
            for i in $(seq 100); do [ -b {self.DISK} ] && exit 0; usleep 100000; done; exit 1""", "login")
        session = self.guest.expect_run("iscsiadm -m session", "session")
        expect(session.startswith("iser:"), f"the session is {session[:60]}")

    def write(self, size, start, background=False):
        """Writes random bytes, with 64 KiB at a time past the page cache; returns their SHA-256."""
        mebibytes = size >> 20
        write = f"dd if=/tmp/random of={self.DISK} bs=64k seek={start >> 16} oflag=direct >/tmp/dd.log 2>&1"
        if background:
            write = f"rm -f /tmp/dd.code; ( {write}; echo $? >/tmp/dd.code ) >/dev/null 2>&1 &"
        return self.guest.expect_run(f"dd if=/dev/urandom of=/tmp/random bs=1048576 count={mebibytes} 2>/dev/null; "
                                     f"sha256sum </tmp/random | cut -d' ' -f1; {write}", "the write")

    def wait_written(self, seconds):
        for _ in range(seconds // 5):
            code = self.guest.run("for i in $(seq 50); do [ -s /tmp/dd.code ] && break; usleep 100000; done; "
                                  "cat /tmp/dd.code")[1].strip()
            if code.isdigit():
                expect(code == "0", "the write failed: " + self.guest.run("cat /tmp/dd.log")[1].strip()[-100:])
                return
        raise Failure(f"the write did not end within {seconds} s")

    def read_hash(self, size, start):
        return self.guest.expect_run(f"dd if={self.DISK} bs=64k skip={start >> 16} count={size >> 16} iflag=direct "
                                     "2>/dev/null | sha256sum | cut -d' ' -f1", "the read")

    def logout(self):
        self.guest.expect_run("timeout 40 iscsiadm -m node -u >/dev/null && iscsiadm -m node -o delete", "logout")


class LioTarget:
    """The kernel's iSCSI target with ib_isert, by its configfs."""

    URL = f"iser://{GUEST}:{LIO_PORT}/{NAME}lio/0"
    DISCOVERY = f"iscsi://{GUEST}:{LIO_PORT}/?iser"
    FILE = "/tmp/lio.img"

    def __init__(self, guest):
        self.guest = guest
        portal = f"mkdir $T/np/{GUEST}:{LIO_PORT}"
        if guest.kind == "siw":
            # LIO opens a TCP listener at the portal, and siw needs this port of the kernel's TCP for itself.
            portal = f"unshare -n sh -c \"ip link set lo up; ip addr add {GUEST}/32 dev lo; {portal}\""
        # libiscsi's iSER sends no immediate data. LIO gives up a write after 3 s without data, and rxe repeats a
        # Read after 2 s.
        guest.expect_run(f"""set -e
            mount -t configfs configfs /sys/kernel/config
            modprobe target_core_file; modprobe iscsi_target_mod; modprobe ib_isert
            truncate -s {DISK_SIZE} {self.FILE}
            C=/sys/kernel/config/target; D=$C/core/fileio_0/disk; T=$C/iscsi/{NAME}lio/tpgt_1; A=$T/acls/{NAME}initiator
            mkdir -p $D; echo fd_dev_name={self.FILE},fd_dev_size={DISK_SIZE} >$D/control; echo 1 >$D/enable
            mkdir -p $T/lun/lun_0; ln -s $D $T/lun/lun_0/disk
            echo 0 >$T/attrib/authentication; echo No >$T/param/ImmediateData
            mkdir -p $A/lun_0; ln -s $T/lun/lun_0 $A/lun_0/disk; echo 60 >$A/attrib/dataout_timeout
            {portal}; echo 1 >$T/np/{GUEST}:{LIO_PORT}/iser; echo 1 >$T/enable""", "LIO")

    def hash_of(self, size):
        return self.guest.expect_run(f"dd if={self.FILE} bs=65536 count={size >> 16} 2>/dev/null | sha256sum | "
                                     "cut -d' ' -f1", "LIO's file")
