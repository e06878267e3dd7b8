#include "fastpath/fig3.h"

#include <array>

namespace urnic::fastpath {

std::string_view row_name(Row row) {
  static constexpr std::array<std::string_view, 11> kNames = {"-",  "T1", "T2", "T3", "T4", "T5",
                                                              "T6", "T7", "T8", "T9", "T10"};
  return kNames[static_cast<std::size_t>(row)];
}

HeaderCase header_case(bool known_end, ByteView payload, std::uint32_t pos, const Validation& v) {
  if (known_end) return HeaderCase::A;
  const std::uint32_t at = mpa::to_marker(pos);
  // Only a marker inside the first frame says anything about it.
  if (at + mpa::kMarker > payload.size() || at >= v.frames.front().length) {
    return HeaderCase::E;
  }
  const mpa::Marker m = mpa::parse_marker(payload.data() + at);
  if (m.reserved != 0 || m.fpdu_pointer % 4 != 0) return HeaderCase::C;
  if (m.fpdu_pointer == at) return HeaderCase::B;
  // A pointer of 0 in the middle of a segment means that a frame begins there.
  return m.fpdu_pointer > at ? HeaderCase::C : HeaderCase::D;
}

Row fig3_row(bool slow, std::uint32_t payload, const Validation& v, HeaderCase header) {
  if (slow) return Row::T1;  // S2
  const FrameResult& first = v.frames.front();
  const FrameResult& error = v.frames.back();           // the check ended there, or all are valid
  const bool several = first.length < payload;          // S4: P > F0
  if (first.length > payload) return Row::T2;           // S5: F0 > P
  if (v.all_valid) return several ? Row::T7 : Row::T3;  // S11, S6
  if (error.status == FrameStatus::BadMarker) return Row::T6;  // a marker indicates Case C or D
  if (v.frames.size() == 1) {  // S12: the first one is invalid; treated as if it were alone (S8,
                               // S10)
    if (several) return Row::T8;
    if (header == HeaderCase::A) return Row::T4;
    return header == HeaderCase::B ? Row::T5 : Row::T6;
  }
  return error.status == FrameStatus::Invalid ? Row::T9 : Row::T10;  // S13
}

bool certain(Row row, HeaderCase header) {
  switch (row) {
    case Row::T4:
    case Row::T5:
    case Row::T9:
      return true;
    case Row::T8:
      return header == HeaderCase::A || header == HeaderCase::B;
    default:
      return false;
  }
}

}  // namespace urnic::fastpath
