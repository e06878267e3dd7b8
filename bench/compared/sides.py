"""The compared programs: throughput and latency by size, of urnic's wires and of today's alternatives. Each function takes a size and
returns {point: value}; it raises Absent if its programs are missing."""
import json
import os

from . import pairs

SIZES = (64, 512, 4096, 32768, 262144, 1 << 20, 8 << 20)
LATENCY_SIZES = (64, 1024, 8192, 65536, 524288)
CDF_SIZE = 64  # size for the latency distribution
PACKAGES = ("iperf3", "ucx-utils", "libfabric-bin", "perftest")
MEMIF = {"urnic, memif, MTU 1500": "1500", "urnic, memif, MTU 9000": "9000", "urnic, memif, MTU 65000": "65000"}
OVER_TCP, OVER_UDP, KERNEL, UCX, LIBFABRIC = "urnic, kernel TCP", "urnic, kernel UDP (RoCE)", "kernel TCP", "UCX tcp", "libfabric tcp"
UDP = ("--udp", "--mtu", "9000")  # the port's default on loopback
UCX_PERCENTILES = (10, 50, 90, 99, 99.9)
LOOPBACK = "127.0.0.1"


class Sides:
    """`options`: build (folder), seconds (of a run). Stores the speed of programs that take a message count, so that their runs take as long."""

    def __init__(self, options):
        self.build, self.seconds = options.build, options.seconds
        self.took = {}  # seconds per message, by side, test and size
        self.port = 21000 + os.getpid() % 9000

    def next_port(self):
        """A new port, so that the end of the previous connection does not matter."""
        self.port += 1
        return str(self.port)

    def program(self, name):
        path = os.path.join(self.build, "bench" if name.startswith("bench") else "bin", name)
        if not os.path.exists(path):
            raise pairs.Absent(f"not there: {name}: build first (ninja -C build)")
        return path

    # ---- throughput, Gb/s ----

    def throughput(self):
        """{side: function}."""
        found = {side: self.writes("--mtu", mtu) for side, mtu in MEMIF.items()}
        return found | {OVER_TCP: self.writes("--tcp"), OVER_UDP: self.writes(*UDP), KERNEL: self.iperf, UCX: self.ucx_puts, LIBFABRIC: self.libfabric_writes}

    def writes(self, *wire):
        def measure(size):
            depth = max(4, min(256, (4 << 20) // size))
            words = ["--size", str(size), "--depth", str(depth), "--signal-every", str(depth // 4), "--seconds", str(self.seconds),
                     "--warm-up", "0.1", "--json"]
            return {size: json.loads(pairs.output([self.program("bench_write_bw"), *wire, *words]))["gbits"]}
        return measure

    def iperf(self, size):
        pairs.needs("iperf3", "iperf3", "taskset")
        if size > 1 << 20:
            return {}  # the largest size of iperf3
        port = self.next_port()
        out = pairs.client_of(["iperf3", "-s", "-1", "-p", port], ["iperf3", "-c", LOOPBACK, "-p", port, "-t", "1", "-l", str(size), "-J"])
        return {size: json.loads(out)["end"]["sum_received"]["bits_per_second"] * 1e-9}

    def ucx(self, test, size, count, *more):
        """The words of ucx_perftest's last line."""
        pairs.needs("ucx-utils", "ucx_perftest", "taskset")
        port, env = self.next_port(), dict(os.environ, UCX_TLS="tcp,self", UCX_NET_DEVICES="lo")
        words = ["ucx_perftest", "-p", port, "-t", test, "-s", str(size), "-n", str(count), "-w", str(max(count // 10, 1)), *more]
        out = pairs.client_of(["ucx_perftest", "-p", port], [*words, "-f", LOOPBACK], env=env)
        return [float(word) for word in out.split()[-8:]]

    def count(self, key, first):
        """Messages that take about as long as the other sides' runs."""
        return max(10, min(2_000_000, int(self.seconds / self.took.get(key, first))))

    def ucx_puts(self, size):
        key = (UCX, "put", size)
        rate = self.ucx("ucp_put_bw", size, self.count(key, 1e-6 + size * 5e-10))[-1]
        self.took[key] = 1 / max(rate, 1e-3)
        return {size: rate * size * 8e-9}

    def libfabric_writes(self, size):
        """fi_pingpong, all that Debian packages, only measures round trips; fabtests has a stream."""
        pairs.needs("fabtests (fi_rma_bw; no package of Debian 12, and libfabric-bin has only a ping-pong)", "fi_rma_bw")
        port = self.next_port()
        words = ["fi_rma_bw", "-p", "tcp", "-e", "msg", "-o", "write", "-S", str(size), "-I", str(self.count((LIBFABRIC, "write", size), 2e-6 + size * 5e-10))]
        env = dict(os.environ, FI_TCP_IFACE="lo")
        out = pairs.client_of([*words, "-B", port], [*words, "-P", port, LOOPBACK], env=env)
        return {size: float(out.split()[-3]) * 8e-3}  # MB/sec of its row: bytes, iters, total, time, MB/sec, usec/xfer, Mxfers/sec

    # ---- half round trip, us; for CDF_SIZE also the distribution ----

    def latency(self):
        """{side: function}; points are sizes, and for CDF_SIZE ("cdf", percent)."""
        found = {side: self.write_trips("--mtu", mtu) for side, mtu in MEMIF.items()}
        return found | {OVER_TCP: self.write_trips("--tcp"), OVER_UDP: self.write_trips(*UDP), KERNEL: self.tcp_trips, UCX: self.ucx_trips, LIBFABRIC: self.libfabric_trips}

    def rounds(self, size):
        return max(200, int(self.seconds * 20000 / (1 + size / 16384)))

    def write_trips(self, *wire):
        def measure(size):
            command = [self.program("bench_write_lat"), *wire, "--size", str(size), "--rounds", str(self.rounds(size)), "--json"]
            return self.of_distribution(size, json.loads(pairs.output(command)))
        return measure

    def tcp_trips(self, size):
        return self.of_distribution(size, json.loads(pairs.output([self.program("bench_tcp_pingpong"), str(self.rounds(size)), str(size), "json"])))

    @staticmethod
    def of_distribution(size, percentiles):
        found = {size: dict(map(tuple, percentiles))[50]}
        if size == CDF_SIZE:
            found |= {("cdf", percent): us for percent, us in percentiles}
        return found

    def ucx_trips(self, size):
        """ucx_perftest reports one percentile per run, so there is one run for each. Puts, because the others use Writes."""
        key = (UCX, "trip", size)
        found = {}
        for percent in UCX_PERCENTILES if size == CDF_SIZE else (50,):
            words = self.ucx("ucp_put_lat", size, self.count(key, 1e-5 + size * 1e-9), "-R", str(percent))
            found["cdf", percent] = words[1]
            self.took[key] = max(words[2] * 2e-6, 1e-7)  # average half round trip
        trips = {size: found["cdf", 50]}
        return found | trips if size == CDF_SIZE else trips

    def libfabric_trips(self, size):
        """fi_pingpong reports an average, neither a median nor a distribution."""
        pairs.needs("libfabric-bin", "fi_pingpong", "taskset")
        port, env = self.next_port(), dict(os.environ, FI_TCP_IFACE="lo")
        words = ["fi_pingpong", "-p", "tcp", "-e", "msg", "-S", str(size), "-I", str(self.rounds(size) // 4)]
        out = pairs.client_of([*words, "-B", port], [*words, "-P", port, LOOPBACK], env=env)
        return {size: float(out.split()[-2])}
