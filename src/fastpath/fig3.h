// Fig 3: InLogic for streams with markers, as its decision table (specification 3.2), and the five
// cases of Fig 1C, which tell how much is known about a segment whose CRC is wrong. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "fastpath/validation_unit.h"
#include "mpa/framing.h"

namespace urnic::fastpath {

// Tells whether the header of the first DDP segment is at the assumed place (section 2).
enum class HeaderCase : std::uint8_t {
  A,  // a validated frame ends where the segment begins
  B,  // not A; the first marker inside it points at its start
  C,  // not A; ... points outside, or is not a valid marker
  D,  // not A; ... points inside, but not to the start
  E,  // not A; no marker inside
};

// Row of the decision table. None: another procedure decided.
enum class Row : std::uint8_t { None, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10 };
std::string_view row_name(Row);

// Returns which of B..E holds for the payload that begins at `pos` of the marker grid (B, C, D, E
// predicates, Q-9). The first marker of the first frame decides. `known_end`: the Case A predicate
// holds, that is, the segment begins where a validated frame ends (RCV.NXT, or the right edge of a
// block accepted while FAST; Q-8).
HeaderCase header_case(bool known_end, ByteView payload, std::uint32_t pos, const Validation&);

// S2 to S13: returns the row for a segment with `payload` bytes. `header` is used only if the first
// frame is invalid (T4, T5, T6, T8).
Row fig3_row(bool slow, std::uint32_t payload, const Validation&, HeaderCase header);

// True for certain corruption: S9, no matter how many attempts there were (T4, T5, T9, and T8 in
// Cases A and B). The other errors are the rows marked with a diamond, which section 4 modifies.
bool certain(Row row, HeaderCase header);

}  // namespace urnic::fastpath
