"""Programs that do not end when their peer is lost, on any device, with reasons. `tools/programs --faults` reads this.

Before you add a row, check with gdb where the program waits, and which completions, events and `urnic stat` states it has seen."""
import re

UD = "UD has no connections, so no device reports the loss"
SPINS = "it only polls the memory that its peer writes"
SHARED = "it only polls for completions, and receives of a shared queue are not flushed with a queue pair"
CREDITS = "its Sends are complete, and over iWARP it only polls memory for a credit"
FIO = "its job prints the flushed completion and waits for the next one"
AGAIN = "it ignores the end of the stream (rrecv returns 0) and reads again"
LIBISCSI = "libiscsi has closed its connection, and the program sleeps in poll(2) for a new one that never comes"
RDM = "a receive of an RDM endpoint accepts any peer, so the end of one connection does not end it"
CMTIME = "its server writes through a null pointer when a connection fails before it is accepted"
OWN_SOCKET = "it reads from its own kernel socket to the peer, and the stopped peer's kernel answers"
WRITES_ON = "redis-benchmark repeats a failed write for ever, over any TCP"
NEVER_ASKED = "its client had not connected yet: it keeps listening"

UD_ROWS = r"-c UD|udaddy|ibv_ud|-e dgram|rxd|ud_verbs|ud_bw"

# (rows, fault, side of the victim, what the other end does, why). "waits": it was notified and does not end; "untold": no device
# would notify it; "crashes".
KNOWN = [
    (UD_ROWS, ".*", ".*", "untold", UD),
    (UD_ROWS, ".*", ".*", "waits", UD),
    (r"ib_write_lat|riostream", ".*", ".*", "waits", SPINS),
    (r"use-srq|ibv_x?srq_pingpong", ".*", ".*", "waits", SHARED),
    (r"ib_send_bw", ".*", "server", "waits", CREDITS),
    (r"fio verb=", ".*", ".*", "waits", FIO),
    (r"^rstream", ".*", "client", "waits", AGAIN),
    (r"iscsi-(perf|test-cu)", ".*", "server", "waits", LIBISCSI),
    (r"ofi_rxm", ".*", ".*", "waits", RDM),
    (r"cmtime", ".*", "client", "crashes", CMTIME),
    (r"^ib_(write|read|atomic)_bw .*without -R", "stop", "client", "waits", OWN_SOCKET),
    (r"rdma_x?client", ".*", "client", "waits", NEVER_ASKED),
    (r"sockets: redis", ".*", ".*", "waits", WRITES_ON),
]


def known(row, what, case):
    for rows, kind, side, does, why in KNOWN:
        if re.search(rows, row.name) and re.fullmatch(kind, case.kind) and re.fullmatch(side, case.side) and does == what:
            return why
    return ""
