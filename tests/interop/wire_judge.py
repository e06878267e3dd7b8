#!/usr/bin/env python3
"""wire_judge.py FILE... - checks captures of iWARP connections with tshark.

A capture passes if tshark finds nothing malformed, every checksum and every MPA CRC is good, both
sides agreed on CRC, every byte of both directions belongs to a start-up frame or to an FPDU, nothing
was retransmitted without cause, neither side sent duplicate ACKs without end, and every
connection ended with FIN from both sides. A RST is accepted only as the answer to a SYN. Causes of a
retransmission: silence for as long as the least time-out, a duplicate ACK, or an earlier
retransmission with a cause that was sent later than the bytes in question. `Rules` has the
exceptions for a capture with faults, errors or without CRC. Prints one line per file; exit 1 if one
did not pass.
"""
import collections
import dataclasses
import re
import subprocess
import sys

# Settings for tshark 4.0: these dissectors misinterpret the content of iWARP Sends.
OPTIONS = ["--disable-protocol", "nvme-tcp", "--disable-protocol", "rpcordma",
           "--disable-protocol", "smb_direct", "-o", "tcp.reassemble_out_of_order:TRUE",
           # MPA is recognized by its start-up frames, which tshark checks only after the port
           # number: on 7275, or any ephemeral port that IANA has assigned, it would see another
           # protocol. Each process has its own MAC (E-34): two consecutive processes with one
           # address are not a conflict.
           "-o", "arp.detect_duplicate_ips:FALSE", "-o", "tcp.try_heuristic_first:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-n"]
FIELDS = ["frame.number", "frame.time_relative", "tcp.stream", "ip.src", "tcp.seq", "tcp.len", "tcp.flags",
          "iwarp_mpa.req", "iwarp_mpa.rep", "iwarp_mpa.pdlength", "iwarp_mpa.crc_flag",
          "iwarp_mpa.ulpdulength", "iwarp_mpa.crc_check", "iwarp_rdma.opcode",
          "tcp.analysis.retransmission", "tcp.analysis.lost_segment", "tcp.analysis.out_of_order",
          "tcp.analysis.duplicate_ack", "tcp.options.sack_le", "ip.checksum.status", "tcp.checksum.status",
          "tcp.checksum", "_ws.expert.severity", "_ws.expert.message", "_ws.malformed"]
FIN, SYN, RST = 1, 2, 4
WARNING = 0x00600000  # tshark's expert severities: notes are lower
# TCP warnings that are checked individually here, or that are no fault (a full window).
TCP_WARNINGS = re.compile("RST|out-of-order|retransmission|zero window|completely full|D-SACK",
                          re.I)
LEAST_TIMEOUT = 0.19  # seconds; 200 ms in both stacks
# Both stacks retransmit the end of a burst after two round trips (RFC 8985), in milliseconds by
# their clocks; on a busy host the acknowledgment may arrive at any time. This many retransmissions
# need no cause visible here: for our own TCP only of the last segment sent so far, for Linux any.
FEW_PROBES, FEW_PROBES_SHARE = 2, 0.01
LEAST_PROBE = 0.001  # seconds
# Each duplicate ACK answers a segment; a storm has more of them than the other side sent segments.
FEW_DUPLICATE_ACKS = 8
STARTUP_HEADER = 20   # MPA Request and Reply before the private data

OPCODES = {0: "write", 1: "read request", 2: "read response", 3: "send", 4: "send invalidate",
           5: "send solicited", 6: "send invalidate solicited", 7: "terminate"}


@dataclasses.dataclass
class Rules:
    """Exceptions that apply to a capture."""
    linux: tuple = ()         # addresses of ends whose TCP is the kernel's
    crc: bool = True          # False: CRC was turned off, and must be
    lossy: bool = False       # frames are lost or reordered: no causes are required
    terminates: bool = False  # a Terminate is expected in this case
    ends_badly: bool = False  # RST, or no FIN from one side
    rejects: bool = False     # MPA Replies with R: no FPDU follows


class Judgement:
    """The content of one capture, and its errors."""

    def __init__(self):
        self.frames = self.fpdus = self.good = self.bad = 0
        self.opcodes = collections.Counter()        # name -> FPDUs
        self.segments = collections.Counter()       # source address -> TCP segments
        self.retransmits = collections.Counter()    # source address -> segments, whatever the cause
        self.duplicate_acks = collections.Counter()
        self.probes = collections.Counter()         # retransmissions without a cause to be seen here
        self.sacks_with_data = collections.Counter()  # segments whose SACK option reduces the payload
        self.refused = 0                            # SYNs answered by RST
        self.connections = 0                        # those with an MPA Reply
        self.wrong = []

    def line(self):
        kinds = ", ".join(f"{n} {name}" for name, n in sorted(self.opcodes.items()))
        return (f"{self.frames} frames, {self.connections} connections, {self.good} of {self.fpdus} "
                f"FPDUs with good CRC ({kinds})")


class Direction:
    """One direction of one connection."""

    def __init__(self):
        self.syn = self.fin = self.startup = False
        self.end = 0         # relative sequence number after the last byte
        self.accounted = 0   # bytes in start-up frames and FPDUs
        self.sent = {}       # sequence number -> when last sent
        self.highest = 0     # sequence number of the last segment sent first
        self.trouble = -1.0  # when the peer last sent a duplicate ACK, or we last retransmitted


def tshark(arguments, path):
    done = subprocess.run(["tshark", "-r", path] + OPTIONS + arguments, capture_output=True,
                          text=True, errors="replace", check=False)
    if done.returncode:
        raise RuntimeError(f"tshark cannot read {path}: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def fpdu_bytes(ulpdu_length):
    return (2 + ulpdu_length + 3) // 4 * 4 + 4


def linux_zero(row, linux):
    """Linux without offload writes 0xffff for a checksum of zero, which also verifies."""
    return row["ip.src"] in linux and row["tcp.checksum"] == "0xffff" and \
        row["ip.checksum.status"] == "1"


def judge(path, rules=Rules()):
    """Checks the capture `path`."""
    linux = rules.linux
    out = Judgement()
    streams = collections.defaultdict(lambda: collections.defaultdict(Direction))
    arguments = ["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=;"]
    for name in FIELDS:
        arguments += ["-e", name]
    # Separates the expert texts of the fields: they do not contain tabs.
    for text in tshark(arguments, path).splitlines():
        row = dict(zip(FIELDS, text.split("\t")))
        out.frames += 1
        where = f"frame {row['frame.number']}"
        if row["_ws.malformed"]:
            out.wrong.append(f"{where}: malformed")
        for severity, message in zip(row["_ws.expert.severity"].split(";"),
                                     row["_ws.expert.message"].split(";")):
            if severity and int(severity, 0) >= WARNING and \
                    not TCP_WARNINGS.search(message) and not linux_zero(row, linux):
                out.wrong.append(f"{where}: {message}")
        for layer in ("ip", "tcp"):
            if "0" in row[f"{layer}.checksum.status"].split(";") and not linux_zero(row, linux):
                out.wrong.append(f"{where}: bad {layer} checksum")
        if row["tcp.stream"]:
            look_at_segment(out, streams[row["tcp.stream"]], row, where, rules)
    for number, stream in streams.items():
        look_at_end(out, number, stream, rules)
    decoded = tshark(["-O", "iwarp_mpa"], path)
    out.good = len(re.findall(r"\(Good CRC32\)", decoded))
    for bad in re.findall(r"CRC check: .*\(Bad CRC32.*\)", decoded):
        out.bad += 1
        out.wrong.append(bad)
    if out.good + out.bad != (out.fpdus if rules.crc else 0):
        out.wrong.append(f"{out.good + out.bad} of {out.fpdus} FPDUs have a CRC that is checked")
    for source, probes in out.probes.items():
        if probes > max(FEW_PROBES, FEW_PROBES_SHARE * out.segments[source]):
            out.wrong.append(f"{probes} segments retransmitted by {source} without cause")
    for source, again in out.duplicate_acks.items():
        others = sum(n for address, n in out.segments.items() if address != source)
        if again > others + FEW_DUPLICATE_ACKS:
            out.wrong.append(f"{again} duplicate ACKs from {source} for {others} segments")
    if not out.connections:
        out.wrong.append("no MPA start-up in this capture")
    return out


def look_at_segment(out, stream, row, where, rules):
    source, flags = row["ip.src"], int(row["tcp.flags"], 16)
    length, sequence = int(row["tcp.len"]), int(row["tcp.seq"])
    side = stream[source]
    out.segments[source] += 1
    now = float(row["frame.time_relative"])
    if row["tcp.analysis.duplicate_ack"]:
        out.duplicate_acks[source] += 1
        for address, other in stream.items():
            if address != source:
                other.trouble = now
    if row["tcp.analysis.lost_segment"] and not rules.lossy:
        out.wrong.append(f"{where}: a segment from {source} before it is not in the capture")
    if length and row["tcp.options.sack_le"]:
        out.sacks_with_data[source] += 1
    before = side.sent.get(sequence)
    if length or flags & (SYN | FIN):
        side.sent[sequence] = now
    if row["tcp.analysis.retransmission"] or row["tcp.analysis.out_of_order"]:
        out.retransmits[source] += 1
        if not rules.lossy and (before is None or
                                (now - before < LEAST_TIMEOUT and side.trouble < before)):
            probe = before is not None and now - before >= LEAST_PROBE and sequence == side.highest
            if source in rules.linux or probe:
                out.probes[source] += 1
            else:
                out.wrong.append(f"{where}: retransmitted by {source} without cause")
        side.trouble = now
        return
    side.syn |= bool(flags & SYN)
    side.fin |= bool(flags & FIN)
    if length:
        side.end = max(side.end, sequence + length)
        side.highest = max(side.highest, sequence)
    if flags & RST:
        if any(other.startup for other in stream.values()) or side.syn:
            if not rules.ends_badly:
                out.wrong.append(f"{where}: RST from {source}")
        else:
            out.refused += 1
            stream["refused"].syn = True
    startup = row["iwarp_mpa.req"] or row["iwarp_mpa.rep"]
    if startup:
        side.startup = True
        side.accounted += STARTUP_HEADER + int(row["iwarp_mpa.pdlength"].split(";")[0])
        out.connections += bool(row["iwarp_mpa.rep"])
        # tshark prints booleans as 1 and 0, or True and False.
        with_crc = row["iwarp_mpa.crc_flag"] in ("1", "True")
        if row["iwarp_mpa.rep"] and with_crc != rules.crc and not rules.rejects:
            out.wrong.append(f"{where}: the MPA Reply turns CRC {'on' if with_crc else 'off'}")
    for ulpdu_length in filter(None, row["iwarp_mpa.ulpdulength"].split(";")):
        side.accounted += fpdu_bytes(int(ulpdu_length))
        out.fpdus += 1
    for opcode in filter(None, row["iwarp_rdma.opcode"].split(";")):
        out.opcodes[OPCODES.get(int(opcode, 16), f"opcode {opcode}")] += 1
    if "0x07" in row["iwarp_rdma.opcode"].split(";") and not rules.terminates:
        out.wrong.append(f"{where}: Terminate from {source}")


def look_at_end(out, number, stream, rules):
    if "refused" in stream:
        return
    for source, side in stream.items():
        if not side.startup:
            out.wrong.append(f"connection {number}: no MPA start-up frame from {source}")
        if not side.fin and not rules.ends_badly:
            out.wrong.append(f"connection {number}: no FIN from {source}")
        found = max(side.end - 1, 0)  # the SYN uses number 0
        if found != side.accounted and not out.retransmits and not rules.lossy:
            out.wrong.append(f"connection {number}: {found} bytes from {source}, of which "
                             f"{side.accounted} in start-up frames and FPDUs")


def tagged_bytes(path, source, opcode="0x00"):
    """The memory image written by the tagged FPDUs of one kind from `source`, lowest offset first."""
    image = {}
    fields = ["ip.src", "iwarp_rdma.opcode", "iwarp_ddp.tagged_offset", "data.data"]
    arguments = ["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=;",
                 "-Y", f"ip.src == {source} && iwarp_ddp.tagged_flag == 1"]
    for name in fields:
        arguments += ["-e", name]
    for text in tshark(arguments, path).splitlines():
        _, opcodes, offsets, data = text.split("\t")
        kinds = opcodes.split(";")
        if kinds.count(opcode) != len(kinds):
            raise RuntimeError(f"{path}: FPDUs of several kinds in one segment")
        for offset, found in zip(offsets.split(";"), data.split(";")):
            image[int(offset, 16)] = bytes.fromhex(found)
    return b"".join(image[offset] for offset in sorted(image))


def main():
    failed = False
    for path in sys.argv[1:]:
        result = judge(path)
        print(f"{path}: {result.line()}")
        for what in result.wrong[:20]:
            print(f"  {what}")
        failed |= bool(result.wrong)
    return 1 if failed or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
