#!/usr/bin/env python3
"""wire_judge must accept good captures of the kernel's iWARP, and reject copies with one error each. Exit code
77 without tshark."""
import os
import shutil
import struct
import sys
import tempfile
import unittest

import wire_judge

HERE = os.path.dirname(os.path.abspath(__file__))
CAPTURES = os.path.join(HERE, "..", "golden", "captures")
GOOD = os.path.join(CAPTURES, "siw-siw-rping-crc-both.pcap")
HEADERS = 14 + 20 + 32  # Ethernet, IPv4, TCP with timestamps: the payload of every segment follows


def records(path):
    """Frames of a little-endian pcap file with their record headers."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:4] == b"\xd4\xc3\xb2\xa1"
    out, at = [data[:24]], 24
    while at < len(data):
        length, = struct.unpack_from("<I", data, at + 8)
        out.append(bytearray(data[at:at + 16 + length]))
        at += 16 + length
    return out


def altered(frame, at, word):
    """A copy with a changed 16-bit word in its TCP header and a matching checksum."""
    out, tcp = bytearray(frame), 16 + 14 + 20
    before, = struct.unpack_from(">H", out, tcp + at)
    checksum, = struct.unpack_from(">H", out, tcp + 16)
    total = (~checksum & 0xffff) + (~before & 0xffff) + word  # RFC 1624
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    struct.pack_into(">H", out, tcp + at, word)
    struct.pack_into(">H", out, tcp + 16, ~total & 0xffff)
    return out


class Judge(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="urnic-judge-")
        self.addCleanup(shutil.rmtree, self.folder)

    def wrong(self, frames, rules=wire_judge.Rules()):
        path = os.path.join(self.folder, "x.pcap")
        with open(path, "wb") as f:
            f.write(b"".join(frames))
        return "\n".join(wire_judge.judge(path, rules).wrong)

    def data_frames(self, frames):
        return [i for i, f in enumerate(frames) if i and len(f) > 16 + HEADERS + 40]

    def test_good_capture_passes(self):
        verdict = wire_judge.judge(GOOD)
        self.assertEqual(verdict.wrong, [])
        self.assertEqual((verdict.good, verdict.fpdus, verdict.connections), (14, 14, 1))

    def test_flipped_bit_is_a_bad_crc_and_a_bad_checksum(self):
        frames = records(GOOD)
        frames[self.data_frames(frames)[0]][16 + HEADERS + 30] ^= 1
        wrong = self.wrong(frames)
        self.assertIn("Bad CRC32", wrong)
        self.assertIn("bad tcp checksum", wrong)

    def test_missing_segment_is_noticed(self):
        frames = records(GOOD)
        del frames[self.data_frames(frames)[1]]
        self.assertIn("not in the capture", self.wrong(frames))

    def test_segment_sent_twice_at_once_has_no_cause(self):
        frames = records(GOOD)
        at = self.data_frames(frames)[0]
        frames.insert(at + 1, frames[at])
        self.assertIn("without cause", self.wrong(frames))

    def test_connection_cut_off_has_no_fin(self):
        frames = records(GOOD)
        self.assertIn("no FIN", self.wrong(frames[:-4]))

    def test_connection_without_crc_does_not_pass(self):
        wrong = wire_judge.judge(os.path.join(CAPTURES, "siw-siw-rping-default-C3-S64.pcap")).wrong
        self.assertTrue(any("turns CRC off" in w for w in wrong))

    def test_terminate_and_reset_do_not_pass(self):
        wrong = wire_judge.judge(os.path.join(CAPTURES, "siw-terminate-no-recv-buffer.pcap")).wrong
        self.assertTrue(any("Terminate" in w for w in wrong))
        self.assertTrue(any("RST" in w for w in wrong))

    def test_refused_attempt_passes_whether_connections_may_end_badly_or_not(self):
        frames = records(GOOD)
        tcp = 16 + 14 + 20
        syn = next(f for f in frames[1:] if f[tcp + 13] == wire_judge.SYN)
        # The server's FIN: without the bytes or options of a SYN.
        fin = next(f for f in frames[1:] if f[tcp + 13] & wire_judge.FIN and f[tcp:tcp + 2] == syn[tcp + 2:tcp + 4])
        acknowledged = int.from_bytes(syn[tcp + 4:tcp + 8], "big") + 1
        reset = fin
        for at, word in ((2, 40000), (4, 0), (6, 0), (8, acknowledged >> 16), (10, acknowledged & 0xffff), (12, fin[tcp + 12] << 8 | 0x14)):
            reset = altered(reset, at, word)
        attempt = [altered(syn, 0, 40000), reset]
        for ends_badly in (False, True):
            self.assertEqual(self.wrong(frames[:1] + attempt + frames[1:], wire_judge.Rules(ends_badly=ends_badly)), "")

    def test_capture_without_iwarp_does_not_pass(self):
        self.assertIn("no MPA start-up", self.wrong(records(GOOD)[:4]))

    def test_mpa_is_known_on_a_port_that_belongs_to_another_protocol(self):
        frames = records(GOOD)
        for f in frames[1:]:
            ports = struct.unpack_from(">HH", f, 16 + 14 + 20)
            moved = [7275 if p == 7174 else p for p in ports]  # rping's port to "ulp"
            struct.pack_into(">HH", f, 16 + 14 + 20, *moved)
            checksum, = struct.unpack_from(">H", f, 16 + 14 + 20 + 16)
            checksum = ~checksum & 0xffff  # RFC 1624
            for old, new in zip(ports, moved):
                checksum += (~old & 0xffff) + new
            while checksum >> 16:
                checksum = (checksum & 0xffff) + (checksum >> 16)
            struct.pack_into(">H", f, 16 + 14 + 20 + 16, ~checksum & 0xffff)
        self.assertEqual(self.wrong(frames), "")

    def test_sack_blocks_beside_data_are_counted(self):
        self.assertEqual(sum(wire_judge.judge(GOOD).sacks_with_data.values()), 0)
        frames = records(GOOD)
        at = 16 + 14 + 20  # the TCP header; its options are two NOPs and the timestamps
        f = frames[self.data_frames(frames)[0]]
        kind, length = f[at + 22:at + 24]
        self.assertEqual((kind, length), (8, 10))
        f[at + 22] = 5  # SACK, one block
        checksum, = struct.unpack_from(">H", f, at + 16)
        checksum = (~checksum & 0xffff) + (~0x080a & 0xffff) + 0x050a  # RFC 1624
        checksum = (checksum & 0xffff) + (checksum >> 16)
        struct.pack_into(">H", f, at + 16, ~checksum & 0xffff)
        path = os.path.join(self.folder, "sack.pcap")
        with open(path, "wb") as out:
            out.write(b"".join(frames))
        self.assertEqual(sum(wire_judge.judge(path).sacks_with_data.values()), 1)

    def test_tagged_bytes_are_the_memory_they_paint(self):
        path = os.path.join(CAPTURES, "siw-siw-ib_write_bw-default-16K-n8.pcap")
        self.assertEqual(len(wire_judge.tagged_bytes(path, "10.77.0.2")), 16384)


if __name__ == "__main__":
    if not shutil.which("tshark"):
        print("skipped: tshark is not installed")
        sys.exit(77)
    unittest.main()
