"""The QEMU guest with Linux siw for tests: image, start and stop, programs in it."""
import base64
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST_SCRIPT = os.path.join(HERE, "siw", "guest")
BUILD_IMAGE = os.path.join(HERE, "siw", "build-image")
BUILD_PROGRAMS = os.path.join(HERE, "siw", "build-programs")
CASE_TIMEOUT = 60  # seconds


class Skip(Exception):
    pass


class Failure(Exception):
    pass


class OutOfTime(BaseException):
    """Not an Exception, so that no case mistakes it for its own failure."""


def expect(condition, what):
    if not condition:
        raise Failure(what)


def find_image():
    """Folder of the guest's image with our program for it; builds missing files."""
    folder = find_debian_image()
    done = subprocess.run([BUILD_PROGRAMS, folder], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip("the guest's program cannot be built: " + done.stderr.strip()[-300:])
    return folder


def find_debian_image():
    """Folder of the guest's image; builds it unless this build-image has made it."""
    for program in ("qemu-system-x86_64", "tshark", "python3"):
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")
    if os.environ.get("SIWVM_IMG"):
        return os.environ["SIWVM_IMG"]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(cache, "urnic", "siw-guest")
    with open(BUILD_IMAGE, "rb") as f:
        recipe = hashlib.sha256(f.read()).hexdigest()
    try:
        os.makedirs(folder, exist_ok=True)
        lock = open(os.path.join(folder, "lock"), "w", encoding="ascii")
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as e:
        raise Skip(f"no place for the guest's image: {e}") from e
    stamp = os.path.join(folder, "recipe")
    if os.path.exists(stamp):
        with open(stamp, encoding="ascii") as f:
            if f.read().strip() == recipe:
                return folder
    for program in ("apt-get", "dpkg-deb", "gcc", "make", "readelf", "cpio", "xz"):
        if not shutil.which(program):
            raise Skip(f"the guest's image cannot be built: {program} is not installed")
    print("building the guest's image (once, about a minute)", flush=True)
    log = os.path.join(folder, "build.log")
    with open(log, "w", encoding="utf-8") as out:
        failed = subprocess.run([BUILD_IMAGE, folder], stdout=out, stderr=out,
                                check=False).returncode
    if failed:
        with open(log, encoding="utf-8", errors="replace") as f:
            tail = f.read().strip().splitlines()[-3:]
        raise Skip(f"the guest's image cannot be built, see {log}: " + " | ".join(tail))
    shutil.rmtree(os.path.join(folder, "work"), ignore_errors=True)  # 1 GB of packages
    with open(stamp, "w", encoding="ascii") as f:
        f.write(recipe + "\n")
    return folder


class Guest:
    """The QEMU guest; programs in it are run through siw/guest."""

    def __init__(self, image, folder, address, tap=None, options=()):
        self.folder, self.name, self.address, self.tap = folder, "siw", address, tap
        self.options = options  # more options of siw/guest
        self.image, self.variant = image, ("", 1500)
        self.environment = dict(os.environ, SIWVM_IMG=image, SIWVM_RUN=os.path.join(folder, "run"))
        self.wire = os.path.join(folder, "guest.sock"), os.path.join(folder, "urnic.sock")
        os.makedirs(self.environment["SIWVM_RUN"], exist_ok=True)
        self.watchdog = None

    def call(self, *arguments, timeout=CASE_TIMEOUT):
        try:
            return subprocess.run([GUEST_SCRIPT, *arguments], env=self.environment, timeout=timeout,
                                  capture_output=True, text=True, errors="replace", check=False)
        except subprocess.TimeoutExpired as e:
            raise Failure(f"the guest did not answer {arguments[:1]} within {timeout} s") from e

    def start(self):
        wire = ("--tap", self.tap) if self.tap else ("--dgram", ",".join(self.wire))
        done = self.call("start", self.name, *wire, "--ip", self.address + "/24", *self.options, timeout=200)
        if done.returncode:
            raise Skip("the guest does not boot here: " + done.stderr.strip()[-300:])
        print(done.stderr.strip(), flush=True)
        # If a test is killed, no QEMU may remain.
        self.watchdog = subprocess.Popen(
            ["sh", "-c", 'while kill -0 "$0" 2>/dev/null; do sleep 1; done; kill -9 "$1"',
             str(os.getpid()), str(self.pid())], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.run("dmesg -c >/dev/null")
        with open(os.path.join(self.image, "verbs_peer"), "rb") as f:
            program = base64.b64encode(f.read()).decode()
        self.run(f"echo {program} | base64 -d >/bin/verbs_peer; chmod 755 /bin/verbs_peer")

    def become(self, parameters, mtu):
        """Loads another siw: the one with module parameters ("crc=1 ..."), or the unmodified one ("")."""
        if self.variant == (parameters, mtu):
            return
        load = f"insmod /lib/siw-tune/siw.ko {parameters}" if parameters else "modprobe siw"
        status, output = self.run(
            "rdma link del siw0; for i in $(seq 50); do rmmod siw 2>/dev/null && break; usleep 100000; "
            f"done; ip link set eth0 mtu {mtu} && modprobe libcrc32c && {load} && "
            "rdma link add siw0 type siw netdev eth0 && dmesg -c >/dev/null")
        expect(status == 0, f"the guest cannot load siw with '{parameters}': {output[-200:]}")
        self.variant = (parameters, mtu)

    def pid(self):
        with open(os.path.join(self.environment["SIWVM_RUN"], self.name, "pid"),
                  encoding="ascii") as f:
            return int(f.read())

    def stop(self):
        """Stops QEMU, whatever state the guest is in."""
        if self.watchdog:
            self.watchdog.kill()
            self.watchdog.wait()
        try:
            pid = self.pid()
        except (OSError, ValueError):
            return
        try:
            self.call("stop", self.name, timeout=20)
        except Failure:
            pass
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def revive(self):
        """Reboots the guest if its kernel does not answer: a stopped emulated NIC is not the fault of either end.
        Returns a description of that, or "". Only with a tap, where others than the ends of a case can ping it."""
        if not self.tap or subprocess.run(["ping", "-c", "5", "-i", "0.5", "-W", "5", self.address],
                                          capture_output=True, check=False).returncode == 0:
            return ""
        said = f"the guest's kernel does not answer (its console: {self.console()}): booted anew"
        self.stop()
        self.variant = ("", 1500)
        try:
            self.start()
        except Skip as e:
            raise Failure(f"{said}, in vain: {e}") from e
        return said

    def console(self):
        """The last output of the guest's kernel, if the guest does not answer any more."""
        path = os.path.join(self.environment["SIWVM_RUN"], self.name, "console.log")
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = [line.strip() for line in f if "RIP:" in line or "Workqueue:" in line
                     or "BUG" in line]
        return " | ".join(lines[:3]) or "nothing"

    def run(self, script):
        done = self.call("exec", self.name, script)
        return done.returncode, done.stdout

    def serve(self, program, port):
        """Starts a server in the background and waits until it listens."""
        # rping's standard error would be mixed into its standard output.
        status, _ = self.run(
            f"rm -f /tmp/status; ( {program} >/tmp/log 2>/tmp/err; echo $? >/tmp/status ) & "
            # The kernel's own listener; connections of the previous case may still be in TIME-WAIT.
            f"for i in $(seq 200); do grep -q ':{port:04X} 00000000:0000 0A' /proc/net/tcp && exit 0; "
            "usleep 50000; done; exit 1")
        expect(status == 0, f"the guest does not listen on port {port}")

    def served(self):
        """Exit status and output of the server, which is ending."""
        _, output = self.run("for i in $(seq 100); do [ -s /tmp/status ] && break; usleep 50000; "
                             "done; cat /tmp/status || echo running; cat /tmp/log; "
                             "grep -qx 0 /tmp/status || cat /tmp/err")
        status, _, log = output.partition("\n")
        return status, log

    def client(self, program):
        """Exit status and standard output of a client; standard error too if it fails."""
        return self.run(f"timeout {CASE_TIMEOUT - 10} {program} 2>/tmp/err; s=$?; "
                        "[ $s = 0 ] || cat /tmp/err; exit $s")

    def complaints(self):
        """The kernel's messages about siw since the last call."""
        output = self.call("exec", self.name, "dmesg -c", timeout=15).stdout
        return [line for line in output.splitlines() if "siw" in line]
