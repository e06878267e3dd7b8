"""Programs that do not end when their peer has gone, whatever the device: which, and why. `tools/programs --faults` looks here.

What was looked at before a row came to stand here: where the program waits (gdb), and what it had been told (completions, events,
`urnic stat`)."""
import re

UD = "UD has no connections: nobody tells it, on any device"
SPINS = "it looks at the memory that its peer writes and at nothing else"
SHARED = "it looks for completions alone, and receives of a shared queue are not flushed with a queue pair"
CREDITS = "its Sends are all complete, and over iWARP it waits for a credit in its memory without a look at anything else"
FIO = "its job prints the flushed completion and waits for the next one"
AGAIN = "it takes the end of the stream (rrecv answers 0) for nothing, and reads again"
LIBISCSI = "libiscsi has taken its connection down, and the program sleeps in poll(2) for a new one that nobody makes"
RDM = "a receive of an RDM endpoint waits for anybody, so the end of one connection below ends none of them"
CMTIME = "its server writes the time of a connection that failed before it was accepted through a null pointer"
OWN_SOCKET = "it reads from the socket of its own by which it found its peer, whose kernel answers for who is stopped"
NEVER_ASKED = "its client had not asked yet: it listens on"

# (rows, fault, side that is struck, what the other one does, why); what it does is "waits": it has been told, and does not end;
# "untold": nothing tells it, as with any device; "crashes".
KNOWN = [
    (r"-c UD|udaddy|ibv_ud|-e dgram|rxd|ud_verbs|ud_bw", ".*", ".*", "untold", UD),
    (r"-c UD|udaddy|ibv_ud|-e dgram|rxd|ud_verbs|ud_bw", ".*", ".*", "waits", UD),
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
]


def known(row, what, case):
    for rows, kind, side, does, why in KNOWN:
        if re.search(rows, row.name) and re.fullmatch(kind, case.kind) and re.fullmatch(side, case.side) and does == what:
            return why
    return ""
