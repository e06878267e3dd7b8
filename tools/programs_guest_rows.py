"""The rows of tools/programs whose other end is Linux siw or rdma_rxe. They move less data than those between two urnics, because
the guest is emulated and moves a few megabytes in a second. Each row has its own port."""
from programs_rows import PERFTEST, RPING, Row

NO_ATOMICS = "siw has no atomic operations (RFC 7306)"
NO_IMMEDIATE = "siw has no Immediate Data (RFC 7306)"
NO_EMPTY_QUEUES = "siw creates no queue pair with an empty send or receive queue, and this qperf test requests one"
NO_WAIT = "fio sends without checking that a receive is posted; siw then ends the connection, urnic waits for the receive"
NO_HASTE = "cmtime's client ends each connection at once; if iw_cm has not reported it yet, Linux hits a BUG()"
KERNEL_SOCKET = "qperf also connects to its server by a kernel socket, and the kernel does not have the address of urnic's own TCP"
CM_ALONE = "siw only connects queue pairs by rdma_cm"
# A server that sends first waits for the client's first FPDU (RFC 5044, 7.1.3). siw only sends one if this knob is set (RFC 6581).
KNOB = "peer_to_peer=1"
SPEAKS_FIRST = f"with siw's knob `{KNOB}`: the server sends first, so the client has to send an FPDU before (RFC 5044, 7.1.3; RFC 6581)"
COLUMNS = {"siw": ("siw-serves", "siw-calls", "siw-serves-own", "siw-calls-own"), "rxe": ("rxe-serves", "rxe-calls")}
# siw completes a Send with an error if the connection ends while it handles the Send, even an acknowledged one. This can happen to
# the client's last Send, after the results: the server answers it and exits.
GOOD_BYE = ("Bad wc status 2", "Unable to write to socket/rdma_cm", "Failed to close connection", "Trying to close this side")
RESULT = r"#bytes[^\n]*\n *[0-9]+ +[0-9]+ +[0-9.]+"
MORE_READS = "perftest requests as many outstanding Reads and atomics as its server has, 128 for rxe; urnic has 16 and refuses"
CALLS = ("siw-calls", "siw-calls-own")
ESTABLISH = "the client calls rdma_establish, which Linux refuses for iWARP (EINVAL), also between two siw"


class Table:
    """Collects rows; each takes the next port."""

    def __init__(self, group, guest_serves, here, first_port):
        self.group, self.guest_serves, self.here, self.port, self.rows = group, guest_serves, here, first_port, []

    def add(self, name, client, server, on="both", speaks_first=False, fixed_port=None, **more):
        self.port += 4
        words = {"here": self.here, "port": self.port}
        files = {n: text.format(**words) for n, text in more.pop("files", {}).items()}
        row = Row(name, client.format(**words), server.format(**words), port=fixed_port or self.port, on=on, files=files, **more)
        if speaks_first and self.group == "siw":
            row.siw, row.notes = dict.fromkeys(CALLS, KNOB), dict.fromkeys(CALLS, SPEAKS_FIRST)
        row.how = " ".join(w for w in client.replace("{here}", "SERVER").replace(" -lp {port}", "").replace(" -p {port}", "").split()[1:])
        self.rows.append(row)

    def perftest(self, program, options="", **more):
        name = f"{program} -R {options}".strip()
        self.add(name, f"{program} -R {options} -p {{port}} {{here}}", f"{program} -R {options} -p {{port}}", noise=PERFTEST,
                 excused=GOOD_BYE if self.group == "siw" else (), wanted=RESULT, **more)

    def without_cm(self, program, options="", **more):
        name = f"{program} {options}".strip() + " without -R"
        self.add(name, f"{program} {options} -p {{port}} {{here}}", f"{program} {options} -p {{port}}", noise=PERFTEST, **more)

    def fio(self, verb, **more):
        text = "[global]\nioengine=rdma\n{0}port={{port}}\nbs=64k\nsize=8m\nverb=" + verb + "\n"
        self.add(f"fio verb={verb}", "fio client.fio", "fio server.fio", needs="fio", seconds=120, on="iwarp",
                 files={"server.fio": text.format("") + "[receiver]\nrw=read\n",
                        "client.fio": text.format("hostname={here}\n") + "iodepth=16\n[sender]\nrw=write\n"}, **more)

    def qperf(self, test, **more):
        self.add(f"qperf -cm 1 {test}", f"qperf -t 1 -lp {{port}} -cm 1 {{here}} {test}", "qperf -lp {port}", server_stays=True,
                 wanted="=", **more)

    def pingpong(self, kind, options="", **more):
        # The first GID of rxe is its link-local address, ours has none.
        theirs, ours = (f"ibv_{kind}_pingpong {options} -g {gid} -p {{port}}" for gid in (1, 0))
        server, client = (theirs, ours) if self.guest_serves else (ours, theirs)
        self.add(f"ibv_{kind}_pingpong {options}".strip(), client + " {here}", server, **more)


def rows(group, guest_serves, here, first_port):
    no_atomics = dict.fromkeys(COLUMNS["siw"], NO_ATOMICS)
    cm_alone = dict.fromkeys(COLUMNS["siw"], CM_ALONE)
    t = Table(group, guest_serves, here, first_port)
    t.add("rping", "rping -c -a {here} -p {port} -C 20 -V", "rping -s -p {port} -C 20 -V", noise=RPING, short=True, captured=True)
    t.add("rping -S 65535", "rping -c -a {here} -p {port} -C 10 -V -S 65535", "rping -s -p {port} -C 10 -V -S 65535", noise=RPING)
    t.add("rping -q", "rping -c -q -a {here} -p {port} -C 20 -V", "rping -s -q -p {port} -C 20 -V", noise=RPING,
          but=dict.fromkeys(CALLS, ESTABLISH))
    t.add("rping -C 1000", "rping -c -a {here} -p {port} -C 1000 -V", "rping -s -p {port} -C 1000 -V", noise=RPING, seconds=120)
    t.add("rping -P, 4 clients", "rping -c -a {here} -p {port} -C 5 -V", "rping -s -P -p {port}", noise=RPING, clients=4,
          server_stays=True, pause=0.5)
    t.add("ucmatose", "ucmatose -p {port} -s {here}", "ucmatose -p {port}", speaks_first=True, short=True, captured=True)
    t.add("ucmatose 20 x 50", "ucmatose -p {port} -c 20 -C 50 -s {here}", "ucmatose -p {port} -c 20 -C 50", speaks_first=True)
    t.add("ucmatose -m", "ucmatose -m -p {port} -s {here}", "ucmatose -m -p {port}", speaks_first=True)
    t.add("rdma_client", "rdma_client -s {here} -p {port}", "rdma_server -p {port}", captured=True)
    t.add("rdma_xclient -c r", "rdma_xclient -c r -s {here} -p {port}", "rdma_xserver -c r -p {port}", on="iwarp")
    t.add("cmtime 100", "cmtime -s {here} -p {port} -c 100", "cmtime -c 100 -p {port}", server_stays=True, seconds=90,
          theirs=("failure creating qp",), but=dict.fromkeys(("siw-serves", "siw-serves-own"), NO_HASTE))  # so it does between two siw
    t.perftest("ib_write_bw", "-n 100", short=True, captured=True)
    t.perftest("ib_write_bw", "-a -n 5", seconds=150)
    t.perftest("ib_write_bw", "-s 8388608 -n 5", seconds=90)
    t.perftest("ib_write_bw", "-q 8 -n 20")
    t.perftest("ib_write_bw", "-b -n 100")
    t.perftest("ib_write_bw", "-s 64 -l 32 -n 1024")
    t.perftest("ib_write_bw", "-I 64 -s 64 -n 500")
    t.perftest("ib_write_bw", "-D 3")
    t.perftest("ib_read_bw", "-n 100", short=True, captured=True)
    t.perftest("ib_read_bw", "-a -n 5", seconds=150)
    t.perftest("ib_read_bw", "-q 8 -n 20")
    t.perftest("ib_read_bw", "-b -n 50")
    t.perftest("ib_send_bw", "-n 100", short=True, captured=True)
    t.perftest("ib_send_bw", "-a -n 5", seconds=150)
    # Of no more messages than the receiver has buffers perftest may wait for an event that nothing is signalled for: on any device.
    t.perftest("ib_send_bw", "-e -s 4096 -n 1000")
    t.perftest("ib_send_bw", "-q 8 -n 20")
    t.perftest("ib_send_bw", "--use-srq -n 100")
    t.perftest("ib_send_bw", "-b -n 100")
    t.perftest("ib_write_lat", "-n 100", speaks_first=True, captured=True)
    t.perftest("ib_read_lat", "-n 100")
    t.perftest("ib_send_lat", "-n 100")
    t.perftest("ib_send_lat", "-e -n 100")
    t.perftest("ib_atomic_bw", "-n 100", but=no_atomics)
    t.perftest("ib_atomic_lat", "-n 100", but=no_atomics)
    for verb in ("write", "read"):
        t.fio(verb)
    t.fio("send", but=dict.fromkeys(("siw-serves", "siw-serves-own"), NO_WAIT))
    for test in ("rc_lat", "rc_bi_bw"):
        t.qperf(test, but={"siw-calls-own": KERNEL_SOCKET})
    for test in ("rc_bw", "rc_rdma_read_bw", "rc_rdma_read_lat", "rc_rdma_write_bw"):
        t.qperf(test, but=dict.fromkeys(COLUMNS["siw"], NO_EMPTY_QUEUES))
    t.qperf("rc_rdma_write_lat", but=dict.fromkeys(COLUMNS["siw"], NO_IMMEDIATE))
    t.qperf("rc_compare_swap_mr", but=no_atomics)
    t.qperf("rc_fetch_add_mr", but=no_atomics)
    t.without_cm("ib_write_bw", "-n 100", but=cm_alone)
    t.without_cm("ib_read_bw", "-n 100", but={**cm_alone, "rxe-serves": MORE_READS})
    t.without_cm("ib_send_bw", "-n 100", but=cm_alone)
    t.without_cm("ib_atomic_bw", "-n 100", but={**cm_alone, "rxe-serves": MORE_READS})
    t.without_cm("ib_send_bw", "-c UC -s 1024 -n 100", on="roce")
    t.without_cm("ib_send_bw", "-c UD -s 1024 -n 50", on="roce")
    t.perftest("ib_send_bw", "-c UD -s 1024 -n 50", on="roce")
    t.perftest("ib_send_lat", "-c UD -s 512 -n 50", on="roce")
    t.add("udaddy", "udaddy -s {here}", "udaddy", fixed_port=7174, on="roce", short=True)
    t.pingpong("rc", "-n 100", but=cm_alone, short=True)
    t.pingpong("rc", "-e -n 100", but=cm_alone)
    t.pingpong("srq", "-n 100", but=cm_alone)
    t.pingpong("uc", "-n 100", on="roce")
    t.pingpong("ud", "-n 100", on="roce", short=True)
    t.add("rstream -T v", "rstream -s {here} -p {port} -T v -S 65536 -I 10 -C 5", "rstream -p {port} -T v -S 65536 -I 10 -C 5", on="iwarp")
    t.add("rstream -T n", "rstream -s {here} -p {port} -T n -T v -S 65536 -I 10 -C 5", "rstream -p {port} -T n -T v -S 65536 -I 10 -C 5", on="iwarp")
    t.add("riostream", "riostream -s {here} -p {port} -T v -S 64 -I 100 -C 1", "riostream -p {port} -T v -S 64 -I 100 -C 1", on="iwarp")
    return t.rows
