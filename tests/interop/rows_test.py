"""How a case checks an end's counters: exactly, except for data forgotten by a downgrade (R-45, R-49)."""
import unittest

import rows
import wire_judge
from guest import Failure

MSS = 1448


class End:
    """An end of a case that is not run."""

    def __init__(self, name):
        self.name, self.is_siw, self.guest, self.address = name, name == "siw", None, name


def read_case(received, downgrades, retransmitted):
    """The failure of a case of ten Reads whose client counted `received` bytes; empty if there is none."""
    case = rows.Case("read", End("siw"), End("own"))
    case.judgement = wire_judge.Judgement()
    case.judgement.retransmits["siw"] = retransmitted
    case.judgement.retransmits["own"] = 100  # must not excuse what siw sent
    counters = {"crc": True, "fast": True, "slow_reason": "", "recovery_attempts": 2 * downgrades,
                "downgrades": downgrades, "mss": MSS, "read_response_bytes_received": received}
    try:
        case.check_urnic("client", case.client, counters)
        case.check_placed_again()
    except Failure as e:
        return str(e)
    return ""


class PlacedAgain(unittest.TestCase):
    BYTES = 10 * 16384

    def test_exact_is_right_with_a_downgrade_or_without(self):
        self.assertEqual(read_case(self.BYTES, 0, 0), "")
        self.assertEqual(read_case(self.BYTES, 1, 2), "")

    def test_more_without_a_downgrade_is_a_fault(self):
        self.assertIn("read_response_bytes_received", read_case(self.BYTES + 1428, 0, 6))

    def test_less_is_a_fault_whatever_happened(self):
        self.assertIn("read_response_bytes_received", read_case(self.BYTES - 1, 1, 6))

    def test_a_downgrade_may_count_again_what_was_sent_again(self):
        self.assertEqual(read_case(self.BYTES + 4 * 1428, 1, 6), "")

    def test_no_more_than_was_sent_again(self):
        self.assertIn("4 retransmitted segments", read_case(self.BYTES + 4 * MSS + 1, 1, 4))


if __name__ == "__main__":
    unittest.main()
