"""What of rdma-core's own tests does not pass, column by column, and why: see tools/rdma-core-tests."""
import collections
import re

COLUMNS = {
    "tcp": "iWARP over the kernel's TCP",
    "roce": "RoCEv2 over UDP, within one device",
}

# `says`: what the failure says, which for another reason would be another; `sometimes`: it may pass.
Cannot = collections.namedtuple("Cannot", "why says sometimes", defaults=(False,))

WRITE_ON_TCP = Cannot("over the kernel's TCP a Write is complete when the kernel has it, and these look at once at what it is to have done at the other end",
                      r"^PyverbsError: Data validation failure|Completion status is Success|PyverbsRDMAError not raised", True)
OTHER_PROCESS = r"^Exception: (Exception in active/passive side occurred|RDMA CM test procces is stuck)"
ONE_PORT = Cannot("its two processes have a device each, and one address cannot be both of theirs here: this needs `--port tcp`, or an address for each",
                  OTHER_PROCESS)
NO_DATAGRAMS = Cannot("iWARP's connection manager has no datagrams", OTHER_PROCESS)
ESTABLISHED = Cannot("iWARP's connection manager tells both ends of a connection at once, never of a response that waits for them", OTHER_PROCESS)
SEND_ON_IWARP = Cannot("over iWARP a Send completes when TCP has it; that the peer's receive cannot be written to is the peer's error and ends the connection",
                       r'"Remote operation error" does not match "Completion status is Local protection error"')

OF_RDMACM = ("test_rdmacm_sync_traffic", "test_rdmacm_async_traffic", "test_rdmacm_async_reject_traffic", "test_rdmacm_async_traffic_external_qp",
             "test_rdmacm_async_udp_traffic", "test_rdmacm_async_read", "test_rdmacm_async_write")
OF_WRITES = ("test_mr_rereg_access", "test_mr_rereg_access_bad_flow", "test_qp_ex_rc_rdma_write", "test_mw_type1", "test_invalidate_mw_type1",
             "test_mw_type2", "test_mw_type2_invalidate_local", "test_mw_type2_invalidate_remote", "test_mw_type2_invalidate_dealloc",
             "test_qp_ex_rc_bind_mw")
ON_IWARP = {"test_mr_rereg_pd": SEND_ON_IWARP, "test_mr_rereg_addr": SEND_ON_IWARP}

CANNOT = {
    "tcp": {**ON_IWARP, **dict.fromkeys(OF_WRITES, WRITE_ON_TCP), "test_rdmacm_async_udp_traffic": NO_DATAGRAMS,
            "test_rdmacm_async_traffic_external_qp": ESTABLISHED},
    "roce": dict.fromkeys(OF_RDMACM, ONE_PORT),
}

# (what the test says when it skips itself, what that is)
SKIPPED = (
    (r"MLX5|mlx5|EFA device", "of another vendor's device alone"),
    (r"^PCI device must be passed|cuda-python", "of a device of another kind"),
    (r"^ODP is not supported", "memory on demand: all memory is there when it is touched, and nothing is pinned"),
    (r"^Device memory is not supported|^Allocating dmabuf", "memory of a device's"),
    (r"^Multicast is not supported", "multicast"),
    (r"Raw Packet QP|^Create QP type 8 ", "raw packets"),
    (r"^Extended CQ is not supported$", "tag matching in the device"),
    (r"^There are no huge pages|^All gid indices populated", "not on this machine"),
    (r"^Importing a device", "objects shared between processes"),
    (r"^Query device real time", "a clock of the device's"),
)
SKIPPED_OF = {  # the same for single tests, of which others that say so would show a fault
    # It looks for a port of its vendor's before it looks for the device.
    r"^test_rc_modify_udp_sport$": ((r"^No supported port is up", "of another vendor's device alone"),),
    r"^test_(default_allocators|mem_align)_": ((r"^Parent Domain is not supported", "parent domains that bring an allocator of their own"),),
    r"timestamp": ((r"^Create Extended CQ is not supported$", "a clock of the device's"),),
    r"^test_qp_ex_rc_(atomic_write|flush)|^test_qp_ex_rc_flush_": ((r"^Extended QP is not supported on this device$", "Flush and atomic Write of later versions of InfiniBand"),),
}
IWARP_SKIPPED = (
    (r"^Create (UD|UC) QP|^Create QP type 4 |^Create AH |^Create XRCD ", "iWARP has one service, RC"),
)
# Those of bad flows make queue pairs of UD, whatever their names say.
IWARP_SKIPPED_OF = {
    r"_(ud|uc|xrc)_|_qp_state_bad_flow$|^test_(full_rq|rq_with_larger_sgl)_bad_flow$": (
        (r"^Extended QP is not supported on this device$", "iWARP has one service, RC"),),
}


def cannot(column):
    return CANNOT[column]


def why_skipped(column, test, said):
    """What the reason that `test` gives is here; None where it should not be."""
    iwarp = column != "roce"
    for of in (SKIPPED_OF, IWARP_SKIPPED_OF if iwarp else {}):
        for name, reasons in of.items():
            if re.search(name, test):
                for pattern, what in reasons:
                    if re.search(pattern, said):
                        return what
    for pattern, what in SKIPPED + (IWARP_SKIPPED if iwarp else ()):
        if re.search(pattern, said):
            return what
    return None
