// The validation unit for policies with markers: E1 and E2 find the ends of frames by the grid, E3
// by the length alone (Fig 8).
#include <algorithm>

#include "base/crc32c.h"
#include "base/fused.h"
#include "base/inet_checksum.h"
#include "fastpath/validation_unit.h"

namespace urnic::fastpath {
namespace {

// The size of the FPDU that would start at `rest`, by its length field.
struct Asked {
  std::uint32_t size;
  bool possible = true;
};

constexpr std::uint32_t kSmallest = mpa::fpdu_size(0);

// Visits the potential FPDUs of a payload, as validate() does. `ask` returns the size of each.
template <class Ask>
void walk(ByteView payload, Validation& out, Ask&& ask) {
  out.frames.clear();
  const std::size_t total = payload.size();
  std::size_t at = 0;
  std::uint64_t sum = 0;
  bool good = true;
  while (at < total && good) {
    const ByteView rest = payload.subspan(at);
    const Asked asked = ask(rest, static_cast<std::uint32_t>(at));
    FrameResult r{static_cast<std::uint32_t>(at), asked.size, FrameStatus::TooLong};
    good = false;
    if (asked.size <= rest.size()) {
      const FusedSums s = fused_crc_sum(rest.first(asked.size), kCrc32cInit);
      sum += s.sum;
      at += asked.size;
      good = s.crc == kCrcResidue && asked.possible;
      r.status = good ? FrameStatus::Valid : FrameStatus::Invalid;
    }
    out.frames.push_back(r);
  }
  // InLogic stops at the first error, but the TCP checksum covers the rest as well. Frame sizes are
  // multiples of four, so every part begins at an even offset and the sums can be added.
  if (at < total) sum += inet_sum(payload.subspan(at));
  sum = (sum & 0xffffffffu) + (sum >> 32);
  sum = (sum & 0xffffffffu) + (sum >> 32);
  out.sum = static_cast<std::uint32_t>(sum);
  out.all_valid = good && !out.frames.empty();
}

}  // namespace

void validate_marked(ByteView payload, std::uint32_t pos, Validation& out) {
  walk(payload, out, [pos](ByteView rest, std::uint32_t at) -> Asked {
    const auto shape = mpa::frame_shape(mpa::Policy::Markers, rest, pos + at);
    return {shape ? shape->size : static_cast<std::uint32_t>(rest.size()) + kSmallest};
  });
}

void validate_modified(ByteView payload, Validation& out) {
  walk(payload, out, [](ByteView rest, std::uint32_t) -> Asked {
    // 8.S100: a word of zero is a marker between two frames, not a length field. 8.S102, 8.S104:
    // the length field is in the next word.
    const bool marker = rest.size() >= mpa::kMarker && load_be32(rest.data()) == 0;
    const std::uint32_t field = marker ? mpa::kMarker : 0;
    if (rest.size() < field + mpa::kLengthField) {
      return {static_cast<std::uint32_t>(rest.size()) + kSmallest};
    }
    // 8.S106: the length leads to the CRC. A length below the smallest frame is invalid. One
    // smallest frame is then skipped, so that the walk continues, and counted as invalid whatever
    // its bytes are.
    const std::uint32_t frame = mpa::modified_frame(load_be16(rest.data() + field));
    return {field + std::max(frame, kSmallest), frame >= kSmallest};
  });
}

void check_markers(mpa::Policy policy, ByteView payload, std::uint32_t pos, Validation& v) {
  for (std::size_t i = 0; i < v.frames.size(); ++i) {
    FrameResult& r = v.frames[i];
    if (r.status != FrameStatus::Valid) continue;
    const ByteView fpdu = payload.subspan(r.offset, r.length);
    const std::uint32_t at = pos + r.offset;
    const auto shape = mpa::frame_shape(policy, fpdu, at);
    if (at % 4 == 0 && shape && shape->possible && shape->size == r.length &&
        mpa::pointers_right(fpdu, at)) {
      continue;
    }
    r.status = FrameStatus::BadMarker;
    v.frames.resize(i + 1);
    v.all_valid = false;
    return;
  }
}

}  // namespace urnic::fastpath
