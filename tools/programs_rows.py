"""The rows of tools/programs: the program, its command lines, and known failures.

`rows(here)` returns the rows of a column whose server has the address `here`."""
import os


class Row:
    def __init__(self, name, client, server=None, port=18515, seconds=60, short=False, clients=1, server_stays=False,
                 files=None, noise=(), wanted=None, missing=None, pause=0.0, descriptors=None, prepare=(), killed=False,
                 needs=None, settings=None, sockets=False, sysfs=False, fixed=False, but=None, on="iwarp",
                 captured=False, siw=None, complaints=False, notes=None, theirs=(), excused=(), makes=()):
        self.name = name
        self.client = client.split() if isinstance(client, str) else client
        self.needs = needs or self.client[0]  # the program that has to be there
        self.server = server.split() if isinstance(server, str) else server
        self.port = port
        self.seconds = seconds  # both ends together
        self.short = short  # in the short form as well
        self.clients = clients
        self.descriptors = descriptors  # ulimit -n
        self.pause = pause  # between the clients
        self.how = " ".join(self.client[1:])  # as the table shows it
        self.server_stays = server_stays  # it serves on, and is ended by us
        self.files = files or {}
        self.prepare = prepare  # commands, when the server listens
        self.killed = killed  # the server does not end for less
        self.noise = noise  # on standard error, as with any device
        self.wanted = wanted  # in what the client prints
        self.missing = missing  # why it does not work yet
        self.settings = settings or {}  # of the environment of both ends
        self.makes = makes  # files of fixed names, outside of the row's folder
        self.sockets = sockets  # its TCP sockets are rsockets
        self.sysfs = sysfs  # it looks for devices in the file system
        self.fixed = fixed  # it names its address itself: a row of the first column alone
        self.on = on  # whose columns it is in: "iwarp", "roce", "both"
        self.but = but or {}  # columns that the program itself cannot do: why
        # Where the other end is a guest's:
        self.captured = captured  # what passes between the two is judged by tshark
        self.siw = siw or {}  # columns where siw has parameters, and these
        self.notes = notes or {}  # of columns, what is to be said where it works
        self.theirs = theirs  # noise that the end in the guest makes besides
        self.excused = excused  # what it says when it may end with a failure, its results being there
        self.complaints = complaints  # its kernel may say something


ROCE = {"URNIC_TRANSPORT": "roce", "URNIC_PORT": "udp:bind=127.0.0.1"}
RPING = ("DISCONNECT EVENT", "wait for RDMA_READ_ADV state")  # it says so on any device
IB_LIKE = {"URNIC_IDENTITY": "ib-like"}
# Two devices: the kernel's TCP, which leads nowhere but to loopback, and a wire between both ends.
TWO_DEVICES = {"settings": {"URNIC_CONFIG": "two.toml"}, "fixed": True, "files": {
    "two.toml": '[device.lan]\nport = "tcp"\n[device.lab]\nport = "memif:socket=@two-devices,mtu=9000"\nidentity = "ib-like"\n'}}
# Columns that a program cannot be in, whatever the device.
PERFTEST_BUT = {"::1": "perftest only resolves IPv4 addresses, also with --ipv6"}
FIO_BUT = {"::1": "fio's rdma engine uses gethostbyname, which only knows IPv4"}
PINGPONG_BUT = {"::1": "its server listens with a kernel socket on the first address of getaddrinfo, 0.0.0.0"}
XSERVER_BUT = {"::1": "its server listens on the first address of rdma_getaddrinfo, 0.0.0.0, and has no option for another"}
# Which name their XRC domains; whoever runs them next is perhaps another user.
XSRQ_FILES = ("/tmp/xrc_domain",)
XRC_FILES = ("/tmp/xrc_domain_client", "/tmp/xrc_domain_server")  # perftest
QPERF_BUT = dict.fromkeys(("roce-udp", "roce-memif"), "without rdma_cm qperf addresses its peer by LID, which no RoCE device has")
QPERF_CM_BUT = {"::1": "qperf only resolves IPv4 addresses for rdma_cm"}
QEMU_BUT = {"::1": "QEMU takes every Ethernet device for RoCE and refuses IPv6 over it"}
MIGRATION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs_migration.py")
RCOPY_BUT = {"::1": "rcopy splits HOST:FILE at the first colon"}
# Of perftest, which knows what other vendors' devices can do inline.
PERFTEST = ("Device not recognized to implement inline feature", "Unable to open file descriptor",
            "Conflicting CPU frequency")
INITIATOR = "-i iqn.2026-11.urnic:initiator"
TGTADM = "tgtadm -C 9 --lld iser --tid 1 --mode "
DISK = ("truncate -s 64M disk.img", TGTADM + "target --op new -T iqn.2026-11.urnic:disk",
        TGTADM + "logicalunit --op new --lun 1 -b {folder}/disk.img", TGTADM + "target --op bind -I ALL",
        TGTADM + "target --op bind -Q iqn.2026-11.urnic:initiator")
RANDOM = ("dd if=/dev/urandom of=in bs=1M count=64",)
HTTP_NOISE = ('"GET /in',)


def rows(here):
    host = f"[{here}]" if ":" in here else here  # in a URL
    bound = f" -b {here}" if ":" in here else ""  # of programs that listen on IPv4 when not told
    at = f" -a {here}" if ":" in here else ""  # of rping, the same
    server = f" -s {here}" if ":" in here else ""  # of rdma_server, which otherwise has 0.0.0.0

    def perftest(program, options="", **more):
        return Row(f"{program} -R {options}".strip(), f"{program} -R {options} {here}", f"{program} -R {options}",
                   noise=PERFTEST, but=PERFTEST_BUT, **more)

    def without_cm(program, options="", settings=None, **more):
        name = f"{program} {options}".strip() + " without -R" + (", ib-like" if settings else "")
        return Row(name, f"{program} {options} {here}", f"{program} {options}", noise=PERFTEST, settings=settings,
                   but=PERFTEST_BUT, **more)

    def fio(verb):
        server = ("[global]\nioengine=rdma\nport=5555\nbs=64k\nsize=64m\nverb={0}\n[receiver]\nrw=read\n").format(verb)
        client = (f"[global]\nioengine=rdma\nhostname={here}\nport=5555\nbs=64k\nsize=64m\niodepth=16\nverb={verb}\n"
                  "[sender]\nrw=write\n")
        return Row(f"fio verb={verb}", "fio client.fio", "fio server.fio", port=5555, seconds=120, short=verb == "write", but=FIO_BUT,
                   files={"server.fio": server, "client.fio": client})

    def ucx(test, options, **more):
        return Row(f"ucx_perftest -t {test} {options}", f"ucx_perftest {here} -t {test} {options}", "ucx_perftest", port=13337, on="roce",
                   sysfs=True, wanted="Final:", settings={"UCX_TLS": "rc_verbs,ud_verbs,self", "UCX_NET_DEVICES": "urnic0:1"}, **more)

    # libfabric takes devices at addresses of interfaces other than "lo" alone, so there is one, and each end has an address of its own.
    def fabric(provider, options, roce=False, **more):
        def end(address, rest=""):
            own = f"export URNIC_TRANSPORT=roce URNIC_PORT=udp:bind={address},mtu=5000; " if roce else ""
            return ["sh", "-c", f"{own}exec fi_pingpong -p '{provider}' {options}{rest}"]

        made = "ip link add fabric type veth peer name other && ip addr add 10.5.5.1/24 dev fabric && ip addr add 10.5.5.2/24 dev fabric && " \
               "ip link set other up && ip link set fabric up && "
        server = end("10.5.5.1")
        server[2] = made + server[2]
        return Row(f"fi_pingpong -p {provider} {options}" + (" as RoCE" if roce else ""), end("10.5.5.2", " 10.5.5.1"), server, port=47592, fixed=True,
                   needs="fi_pingpong", wanted=r"\d+ +=10 ", settings={"FI_LOG_LEVEL": "error"}, noise=("libfabric:",), **more)

    # The client is in a namespace of its own, at the other end of a veth pair.
    def fabric_between(provider, options, **more):
        made = ("unshare -n sh -c 'echo $$ > other.pid; exec sleep 60' & until test -s other.pid; do sleep 0.1; done; other=$(cat other.pid); "
                "ip link add fabric type veth peer name fabric netns $other && ip addr add 10.5.6.1/24 dev fabric && ip link set fabric up && "
                "nsenter -t $other -n sh -c 'ip link set lo up; ip addr add 10.5.6.2/24 dev fabric; ip link set fabric up' && ")
        return Row(f"fi_pingpong -p {provider} {options} between two namespaces",
                   ["sh", "-c", f"exec nsenter -t $(cat other.pid) -n fi_pingpong -p '{provider}' {options} 10.5.6.1"],
                   ["sh", "-c", f"{made}exec fi_pingpong -p '{provider}' {options}"], port=47592, fixed=True,
                   needs="fi_pingpong", wanted=r"\d+ +=10 ", settings={"FI_LOG_LEVEL": "error"}, noise=("libfabric:",), **more)

    def qperf(test, missing=None, **more):
        return Row(f"qperf -cm 1 {test}", f"qperf -t 1 -cm 1 {here} {test}", "qperf", port=19765, server_stays=True,
                   short=test == "rc_bw", missing=missing, wanted="=", but=QPERF_CM_BUT, **more)

    # tgt's iSER target with one disk of 64 MiB. It keeps running for its initiators' sake when asked to end.
    lun = f"iser://{host}:3261/iqn.2026-11.urnic:disk/1"
    # All but Read10.Async and Write10.Async, in which libiscsi 1.19 takes a descriptor from an empty list (more
    # commands at once than it has made), and ReadDefectData1*.Simple, where the program frees what libiscsi's iSER lends.
    scsi_tests = (
        "n=0; for t in $(iscsi-test-cu -l | grep -E '^SCSI[.](Read|Write|CompareAndWrite)[A-Za-z0-9]*[.]' |"
        " grep -vE '(Read10|Write10)[.]Async|ReadDefectData'); do"
        f" iscsi-test-cu {INITIATOR} --dataloss -t $t {lun} > test.log 2>&1 && n=$((n+1)) || echo \"$t failed: $(tail -n 1 test.log)\"; done;"
        " echo $n of 87 passed or were skipped")

    def iser(name, client, program=None, seconds=60, **more):
        if isinstance(client, str):
            client = client.format(INITIATOR)
        return Row(f"tgtd --iser, {name}", client, "tgtd -f --iser port=3261,pool_sz_mb=64 -C 9", port=3261, seconds=seconds,
                   server_stays=True, killed=True, prepare=DISK, noise=("tgtd:", "lba"), needs=program, **more)

    # As its service starts it: it listens, forks, and its first process ends.
    daemon = "tgtd --iser port=3261,pool_sz_mb=64 -C 9 -p $PWD/tgtd.pid; trap 'kill -9 $(cat tgtd.pid); exit' TERM; while :; do sleep 0.1; done"

    def iser_of_daemon(name, client, **more):
        row = iser(name, client, **more)
        row.name, row.server, row.killed = f"tgtd --iser as a daemon, {name}", ["sh", "-c", daemon], False
        return row

    qemu_disk = f"driver=raw,file.driver=iscsi,file.transport=iser,file.portal={host}:3261,file.target=iqn.2026-11.urnic:disk,file.lun=1," \
                "file.initiator-name=iqn.2026-11.urnic:initiator"

    # rstream and riostream, of the same options.
    def rstream(program, options, **more):
        return Row(f"{program} {options}".strip(), f"{program} -s {here} {options}".strip(), f"{program} {options}{bound}", port=7471, **more)

    def migration():
        row = Row("QEMU live migration", ["/usr/bin/python3", MIGRATION, "source", here], f"/usr/bin/python3 {MIGRATION} target {here}", port=4444,
                  needs="qemu-system-x86_64", wanted=r"migrated \d+ MiB", noise=("RDMA Device opened",), short=True, on="both", but=QEMU_BUT)
        row.how = f"migrate rdma:{here}:4444"  # what it is told by its monitor
        return row

    http = f"/usr/bin/python3 -m http.server 8000 --bind {here}"

    def over_sockets(name, client, server, port, **more):
        return Row(f"sockets: {name}", ["sh", "-c", client], server, port=port, sockets=True, **more)

    return [
        Row("ibv_devices", "ibv_devices", short=True, fixed=True, wanted="urnic0"),
        Row("ibv_devinfo -v", "ibv_devinfo -v", short=True, fixed=True, wanted="PORT_ACTIVE"),
        Row("ibv_asyncwatch, 2 s", ["sh", "-c", "stdbuf -oL timeout 2 ibv_asyncwatch; test $? = 124"], fixed=True, needs="ibv_asyncwatch",
            wanted="urnic0: async event FD"),
        Row("ibstat as RoCE", "ibstat", fixed=True, sysfs=True, wanted="State: Active", settings=ROCE),
        Row("ibstatus", "ibstatus", fixed=True, sysfs=True, wanted="4: ACTIVE"),
        Row("two devices: ibv_devices", "ibv_devices", wanted="lab", **TWO_DEVICES),
        Row("two devices: rping by the kernel's TCP", "rping -c -a 127.0.0.1 -C 20 -V", "rping -s -C 20 -V", noise=RPING, port=7174,
            **TWO_DEVICES),
        Row("two devices: rping by memif", "rping -c -a 10.77.0.1 -C 20 -V", "rping -s -C 20 -V", noise=RPING, port=7174, short=True, **TWO_DEVICES),
        Row("two devices: ib_write_bw -d lab", "ib_write_bw -d lab -n 500 127.0.0.1", "ib_write_bw -d lab -n 500", noise=PERFTEST,
            wanted="lab", **TWO_DEVICES),
        Row("two devices: rstream by memif", "rstream -s 10.77.0.1 -S 1000 -C 100", "rstream -S 1000 -C 100", port=7471, short=True, **TWO_DEVICES),
        Row("two devices: ibv_rc_pingpong -d lan", "ibv_rc_pingpong -d lan -g 1 127.0.0.1", "ibv_rc_pingpong -d lan -g 1", **TWO_DEVICES),
        Row("two devices: ibv_rc_pingpong -d lab", "ibv_rc_pingpong -d lab -g 0 127.0.0.1", "ibv_rc_pingpong -d lab -g 0", **TWO_DEVICES),
        Row("rping", f"rping -c -a {here} -C 50 -V", f"rping -s -a {here} -C 50 -V", noise=RPING, port=7174, short=True, on="both"),
        Row("rping -S 65535", f"rping -c -a {here} -C 20 -V -S 65535", "rping -s -C 20 -V -S 65535" + at, noise=RPING, port=7174, on="both"),
        Row("rping -q", f"rping -c -q -a {here} -C 20 -V", "rping -s -q -C 20 -V" + at, noise=RPING, port=7174, on="both"),
        Row("rping -C 2000", f"rping -c -a {here} -C 2000 -V", "rping -s -C 2000 -V" + at, noise=RPING, port=7174, seconds=120),
        # Its server keeps one request in hand: of two that come together it forgets the first.
        Row("rping -P, 20 clients", f"rping -c -a {here} -C 5 -V", "rping -s -P" + at, noise=RPING, port=7174, clients=20, server_stays=True, pause=0.3,
            seconds=120, on="both"),
        Row("rping ::1", "rping -c -a ::1 -C 20 -V", "rping -s -a ::1 -C 20 -V", noise=RPING, port=7174, short=True, fixed=True),
        Row("ucmatose", f"ucmatose -s {here}", "ucmatose" + bound, port=7471, short=True, on="both"),
        Row("ucmatose 20 x 50", f"ucmatose -c 20 -C 50 -s {here}", "ucmatose -c 20 -C 50" + bound, port=7471, on="both"),
        Row("ucmatose -m", f"ucmatose -m -s {here}", "ucmatose -m" + bound, port=7471, on="both"),
        Row("ucmatose, 900 connections, ulimit -n 1024", f"ucmatose -c 900 -C 2 -s {here}", "ucmatose -c 900 -C 2" + bound, port=7471,
            descriptors=1024),
        Row("rdma_client", f"rdma_client -s {here}", "rdma_server" + server, port=7471, short=True, on="both"),
        Row("rdma_xclient -c r", f"rdma_xclient -c r -s {here}", "rdma_xserver -c r", port=7471, short=True, but=XSERVER_BUT),
        Row("rdma_xserver -c x is refused", ["sh", "-c", "rdma_xserver -c x; test $? = 255"], fixed=True, needs="rdma_xserver",
            noise=("rdma_create_ep: Operation not supported",)),
        Row("cmtime 100", f"cmtime -s {here} -c 100", "cmtime -c 100" + bound, port=7471, server_stays=True, seconds=90, on="both"),
        Row("cmtime 1000", f"cmtime -s {here} -c 1000", "cmtime -c 1000" + bound, port=7471, server_stays=True, seconds=120),
        perftest("ib_write_bw", short=True, on="both"),
        perftest("ib_write_bw", "-a -n 100", seconds=180, on="both"),
        perftest("ib_write_bw", "-s 8388608 -n 20", on="both"),
        perftest("ib_write_bw", "-q 8 -n 500", on="both"),
        perftest("ib_write_bw", "-b", on="both"),
        perftest("ib_write_bw", "-s 64 -l 32 -n 4096", on="both"),
        perftest("ib_write_bw", "-I 64 -s 64"),
        perftest("ib_write_bw", "-D 5", on="both"),
        perftest("ib_read_bw", short=True, on="both"),
        perftest("ib_read_bw", "-a -n 100", seconds=180, on="both"),
        perftest("ib_read_bw", "-q 8 -n 500", on="both"),
        perftest("ib_send_bw", short=True, on="both"),
        perftest("ib_send_bw", "-a -n 100", seconds=180, on="both"),
        perftest("ib_send_bw", "-e", short=True, on="both"),
        perftest("ib_send_bw", "--use-srq -n 1000", on="both"),
        perftest("ib_send_bw", "-b", on="both"),
        perftest("ib_write_lat", "-n 100", short=True, seconds=90, on="both"),
        perftest("ib_read_lat", on="both"),
        perftest("ib_send_lat", short=True, on="both"),
        perftest("ib_send_lat", "-e -n 500", seconds=90, on="both"),
        perftest("ib_atomic_bw", on="both"),
        perftest("ib_atomic_lat", on="both"),
        fio("write"),
        fio("read"),
        fio("send"),
        qperf("rc_bw", on="both"),
        qperf("rc_lat", on="both"),
        qperf("rc_bi_bw", on="both"),
        qperf("rc_rdma_read_bw", on="both"),
        qperf("rc_rdma_read_lat", on="both"),
        qperf("rc_rdma_write_bw", on="both"),
        qperf("rc_rdma_write_lat", on="both"),
        qperf("rc_compare_swap_mr", on="both"),
        qperf("rc_fetch_add_mr", on="both"),
        without_cm("ib_write_bw", short=True, on="both"),
        without_cm("ib_write_bw", "-q 8 -n 500", on="both"),
        without_cm("ib_write_lat", "-n 100", seconds=90, on="both"),
        without_cm("ib_read_bw", on="both"),
        without_cm("ib_write_bw", settings=IB_LIKE),
        without_cm("ib_read_bw", settings=IB_LIKE),
        without_cm("ib_send_bw", settings=IB_LIKE),
        without_cm("ib_send_lat", settings=IB_LIKE),
        without_cm("ib_atomic_bw", settings=IB_LIKE),
        Row("ibv_rc_pingpong", f"ibv_rc_pingpong -g 0 {here}", "ibv_rc_pingpong -g 0", settings=IB_LIKE, short=True, but=PINGPONG_BUT),
        Row("ibv_rc_pingpong as iWARP", f"ibv_rc_pingpong -g 1 {here}", "ibv_rc_pingpong -g 1", but=PINGPONG_BUT),
        Row("ibv_rc_pingpong -e", f"ibv_rc_pingpong -e -g 0 {here}", "ibv_rc_pingpong -e -g 0", settings=IB_LIKE, but=PINGPONG_BUT),
        Row("ibv_srq_pingpong", f"ibv_srq_pingpong -g 0 {here}", "ibv_srq_pingpong -g 0", settings=IB_LIKE, short=True, but=PINGPONG_BUT),
        Row("ibv_devinfo -v as RoCE", "ibv_devinfo -v", short=True, fixed=True, wanted="RoCE v2", settings=ROCE),
        Row("ibv_rc_pingpong as RoCE", f"ibv_rc_pingpong -g 0 {here}", "ibv_rc_pingpong -g 0", short=True, on="roce"),
        Row("ibv_rc_pingpong -e as RoCE", f"ibv_rc_pingpong -e -g 0 {here}", "ibv_rc_pingpong -e -g 0", on="roce"),
        Row("ibv_srq_pingpong as RoCE", f"ibv_srq_pingpong -g 0 {here}", "ibv_srq_pingpong -g 0", on="roce"),
        Row("ibv_uc_pingpong", f"ibv_uc_pingpong -g 0 {here}", "ibv_uc_pingpong -g 0", short=True, on="roce"),
        Row("ibv_ud_pingpong", f"ibv_ud_pingpong -g 0 {here}", "ibv_ud_pingpong -g 0", short=True, on="roce"),
        Row("ibv_xsrq_pingpong", f"ibv_xsrq_pingpong -g 0 {here}", "ibv_xsrq_pingpong -g 0", short=True, on="roce", makes=XSRQ_FILES),
        Row("ibv_xsrq_pingpong -e -n 100", f"ibv_xsrq_pingpong -e -n 100 -g 0 {here}", "ibv_xsrq_pingpong -e -n 100 -g 0", on="roce", makes=XSRQ_FILES),
        without_cm("ib_send_bw", "-c XRC", on="roce", makes=XRC_FILES),
        without_cm("ib_send_lat", "-c XRC", on="roce", makes=XRC_FILES),
        without_cm("ib_write_bw", "-c XRC", on="roce", makes=XRC_FILES),
        without_cm("ib_read_bw", "-c XRC", on="roce", makes=XRC_FILES),
        without_cm("ib_send_bw", on="roce"),
        without_cm("ib_send_lat", on="roce"),
        without_cm("ib_read_lat", on="roce"),
        without_cm("ib_atomic_bw", on="roce", short=True),
        # Nobody holds back who sends without acknowledgements: no more at a time than buffers have room for.
        without_cm("ib_write_bw", "-c UC -s 1024 -n 100", on="roce"),
        without_cm("ib_send_bw", "-c UC -s 1024 -n 100", on="roce", short=True),
        without_cm("ib_write_lat", "-c UC -n 100", on="roce", seconds=90),
        without_cm("ib_send_lat", "-c UC -n 500", on="roce", seconds=90),
        without_cm("ib_send_bw", "-c UD -s 1024 -n 100", on="roce", short=True),
        without_cm("ib_send_lat", "-c UD -n 500", on="roce", seconds=90),
        perftest("ib_send_bw", "-c UD -s 1024 -n 100", on="roce", short=True),
        perftest("ib_send_lat", "-c UD -n 500", on="roce", seconds=90),
        Row("udaddy", f"udaddy -s {here}", "udaddy", port=7174, on="roce", short=True),
        Row("udaddy 5 x 20", f"udaddy -c 5 -C 20 -S 1000 -s {here}", "udaddy -c 5 -C 20 -S 1000", port=7174, on="roce"),
        ucx("tag_lat", "-n 500 -w 50", short=True),
        ucx("tag_bw", "-n 200 -w 10 -s 65536"),
        ucx("ucp_put_lat", "-n 500 -w 50"),
        ucx("ucp_get", "-n 200 -w 10 -s 65536"),
        ucx("ucp_am_bw", "-n 300 -w 10"),
        ucx("stream_bw", "-n 300 -w 10"),
        ucx("ucp_fadd", "-n 300 -w 10"),
        ucx("am_bw", "-d urnic0:1 -x rc_verbs -n 300 -w 10"),
        ucx("am_lat", "-d urnic0:1 -x ud_verbs -n 300 -w 10"),
        Row("io_demo", f"io_demo -i 300 -d 4096:65536 -q {here}", "io_demo -d 4096:65536 -q", port=1337, on="roce", sysfs=True, server_stays=True, wanted="status 'OK'",
            settings={"UCX_TLS": "rc_verbs,ud_verbs,self", "UCX_NET_DEVICES": "urnic0:1", "UCX_SOCKADDR_TLS_PRIORITY": "rdmacm"}),
        fabric("verbs", "-e msg", short=True),
        fabric("verbs;ofi_rxm", "-e rdm -m tagged"),
        fabric_between("verbs", "-e msg"),
        fabric_between("verbs;ofi_rxm", "-e rdm -m tagged"),
        fabric("verbs", "-e msg", roce=True, short=True),
        fabric("verbs", "-e dgram", roce=True),
        fabric("verbs;ofi_rxm", "-e rdm -m tagged", roce=True),
        fabric("verbs;ofi_rxd", "-e rdm", roce=True),
        Row("qperf uc_bw", f"qperf -t 1 {here} uc_bw", "qperf", port=19765, on="roce", but=QPERF_BUT),
        Row("qperf ud_bw", f"qperf -t 1 {here} ud_bw", "qperf", port=19765, on="roce", but=QPERF_BUT),
        iser("iscsi-inq", "iscsi-inq {} " + lun, wanted="Peripheral Device Type:DIRECT_ACCESS", short=True),
        iser("iscsi-ls", f"iscsi-ls {{}} iscsi://{host}:3261/?iser", wanted="Target:iqn.2026-11.urnic:disk"),
        iser("iscsi-readcapacity16", "iscsi-readcapacity16 {} " + lun, wanted="Total size:67108864"),
        iser("iscsi-perf, 30 s", "iscsi-perf {} -t 30 " + lun, wanted="finished"),
        iser("iscsi-test-cu --dataloss", ["sh", "-c", scsi_tests], program="iscsi-test-cu", wanted="87 of 87 passed or were skipped",
             seconds=180),
        iser_of_daemon("iscsi-perf, 5 s", "iscsi-perf {} -t 5 " + lun, wanted="finished", short=True),
        # libiscsi lends buffers of 256 KiB over iSER and has none for what is longer, such as the 2 MiB of `qemu-img convert`.
        iser("qemu-img info, qemu-io", ["sh", "-c", f"qemu-img info --image-opts {qemu_disk} && qemu-io -c 'write -P 7 4k 256k' -c 'write -P 9 1M 4k' "
                                        f"-c 'read -P 7 4k 256k' -c 'read -P 9 1M 4k' -c 'read -P 0 0 4k' --image-opts {qemu_disk}"],
             program="qemu-io", wanted=r"virtual size: 64 MiB[^$]*read 4096/4096 bytes at offset 0"),
        migration(),
        rstream("rstream", "", seconds=90),
        rstream("rstream", "-T v -S 65536 -I 100 -C 10", short=True, on="both"),
        rstream("rstream", "-T b -T v -S 100000 -I 100 -C 10"),
        rstream("rstream", "-T n -S 65536 -I 100 -C 10"),
        rstream("rstream", "-T v -B 4096 -S 65536 -I 20 -C 10"),
        rstream("rstream", "-T v -i 0 -S 64 -I 1000 -C 10"),
        rstream("rstream", "-k 10 -S 64 -I 100 -C 10"),
        Row("rstream ::1", "rstream -T v -s ::1 -S 65536 -I 100 -C 10", "rstream -T v -b ::1 -S 65536 -I 100 -C 10", port=7471, fixed=True),
        # Waits for its data in memory, without a call: by default 100 000 times.
        rstream("riostream", "-T v -S 64 -I 1000 -C 1"),
        rstream("riostream", "-T v -S 1000000 -I 50 -C 2"),
        rstream("riostream", "-T v -S 65536 -I 100 -C 10", short=True),
        Row("rcopy, 64 MiB", ["sh", "-c", f"rcopy in {here}:out && cmp in out && echo the same"], "rcopy", port=7427, short=True, but=RCOPY_BUT,
            server_stays=True, needs="rcopy", prepare=RANDOM, wanted="the same"),
        over_sockets("http.server, curl", f"curl -sS -o got http://{host}:8000/in && cmp in got && echo the same", http, 8000,
                     needs="curl", short=True, prepare=RANDOM, wanted="the same", server_stays=True, noise=HTTP_NOISE),
        over_sockets("http.server, 20 of curl at once",
                     f"curl -sS --parallel -o 'got#1' 'http://{host}:8000/in?[1-20]' 2> progress && for i in $(seq 20); do cmp in got$i || exit 1; done; "
                     "echo the same", http, 8000,
                     needs="curl", prepare=RANDOM, wanted="the same", server_stays=True, noise=HTTP_NOISE),
        over_sockets("iperf3", f"iperf3 -c {here} -t 2", "iperf3 -s -1", 5201, short=True, needs="iperf3", wanted="iperf Done"),
        over_sockets("iperf3 -R -P 4", f"iperf3 -c {here} -t 2 -R -P 4", "iperf3 -s -1", 5201, needs="iperf3", wanted="iperf Done"),
        over_sockets("redis", f"redis-benchmark -h {here} -p 6380 -n 2000 -q -t set,get,lpush,lrange_100 && redis-cli -h {here} -p 6380 set a 7 && "
                     f"redis-cli -h {here} -p 6380 get a", f"redis-server --port 6380 --bind {here} --save '' --daemonize no", 6380, needs="redis-benchmark",
                     wanted=r"(?m)^7$", server_stays=True, short=True),
        over_sockets("iperf3 -6", "iperf3 -c ::1 -t 1", "iperf3 -s -1", 5201, needs="iperf3", wanted="iperf Done", fixed=True),
    ]
