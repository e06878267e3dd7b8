"""The tests of rdma-core that fail or are skipped, for each column, and why. tools/rdma-core-tests reads this."""
import collections
import re

COLUMNS = {
    "tcp": "iWARP over the kernel's TCP",
    "roce": "RoCEv2 over UDP, within one device",
}

# `says`: what the failure says, which for another reason would be another; `sometimes`: it may pass.
Cannot = collections.namedtuple("Cannot", "why says sometimes", defaults=(False,))

WRITE_ON_TCP = Cannot("over the kernel's TCP a Write completes when the kernel has it, and these tests check the peer's memory immediately",
                      r"^PyverbsError: Data validation failure|Completion status is Success|PyverbsRDMAError not raised", True)
OTHER_PROCESS = r"^Exception: (Exception in active/passive side occurred|RDMA CM test procces is stuck)"
ONE_PORT = Cannot("its two processes open one device each, and two devices cannot share one address here; use `--port tcp` or an address for each",
                  OTHER_PROCESS)
NO_DATAGRAMS = Cannot("iWARP's connection manager has no datagrams", OTHER_PROCESS)
ESTABLISHED = Cannot("iWARP's connection manager reports ESTABLISHED at both ends; it has no CONNECT_RESPONSE", OTHER_PROCESS)
SEND_ON_IWARP = Cannot("over iWARP a Send completes when TCP has it; an error of the peer's receive buffer is reported at the peer and ends the connection",
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
    (r"MLX5|mlx5|EFA device", "another vendor's functions (mlx5, EFA)"),
    (r"^PCI device must be passed|cuda-python", "PCI or CUDA"),
    (r"^ODP is not supported", "on-demand paging (urnic does not pin memory, so it needs none)"),
    (r"^Device memory is not supported|^Allocating dmabuf", "device memory"),
    (r"^Multicast is not supported", "multicast"),
    (r"Raw Packet QP|^Create QP type 8 ", "raw packets"),
    (r"^Extended CQ is not supported$", "tag matching in the device"),
    (r"^There are no huge pages|^All gid indices populated", "huge pages, or a free GID index, on this machine"),
    (r"^Importing a device", "import of objects from another process"),
    (r"^Query device real time", "a device clock"),
)
SKIPPED_OF = {  # the same for single tests, of which others that say so would show a fault
    # It looks for a port of its vendor's before it looks for the device.
    r"^test_rc_modify_udp_sport$": ((r"^No supported port is up", "another vendor's functions (mlx5, EFA)"),),
    r"^test_(default_allocators|mem_align)_": ((r"^Parent Domain is not supported", "parent domains with their own allocator"),),
    r"timestamp": ((r"^Create Extended CQ is not supported$", "a device clock"),),
    r"^test_qp_ex_rc_(atomic_write|flush)|^test_qp_ex_rc_flush_": ((r"^Extended QP is not supported on this device$", "Flush and atomic Write of later InfiniBand versions"),),
}
IWARP_SKIPPED = (
    (r"^Create (UD|UC) QP|^Create QP type 4 |^Create AH |^Create XRCD ", "services other than RC (iWARP only has RC)"),
)
# Those of bad flows make queue pairs of UD, whatever their names say.
IWARP_SKIPPED_OF = {
    r"_(ud|uc|xrc)_|_qp_state_bad_flow$|^test_(full_rq|rq_with_larger_sgl)_bad_flow$": (
        (r"^Extended QP is not supported on this device$", "services other than RC (iWARP only has RC)"),),
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
