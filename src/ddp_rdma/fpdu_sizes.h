// The sizes of the FPDUs of one stream, from the agreed framing and TCP's EMSS.
#pragma once

#include <cstdint>

#include "base/stream_offset.h"
#include "ddp_rdma/header.h"
#include "mpa/framing.h"

namespace urnic::ddp {

constexpr std::uint32_t header_of(bool tagged) {
  return tagged ? kTaggedHeader : kUntaggedHeader;
}

// The space left in the segment that is being cut.
struct Room {
  std::uint32_t bytes = 0;
  bool first = false;     // the segment is still empty
  bool must_cut = false;  // if no FPDU fits, cut a part of one
};

class FpduSizes {
 public:
  static constexpr std::uint32_t kSmallestFpdu = 20;  // zero-length tagged

  // `pack_partial`: see SenderConfig.
  explicit FpduSizes(bool pack_partial) : pack_partial_(pack_partial) { measure(); }

  const mpa::Framing& framing() const { return framing_; }
  std::uint32_t emss() const { return emss_; }
  // Estimates made with another framing or EMSS must be made again.
  void set_framing(const mpa::Framing& framing) {
    framing_ = framing;
    measure();
  }
  void set_emss(std::uint32_t emss) {
    emss_ = emss;
    measure();
  }

  // Payload of a full-size FPDU.
  std::uint32_t most(bool tagged) const { return tagged ? tagged_max_ : untagged_max_; }
  // Bytes of an FPDU that is cut at `at`.
  std::uint32_t of(StreamOffset at, std::uint32_t ulpdu) const {
    return framing_.marked() ? mpa::marked_size(framing_.pos(at.value()), ulpdu)
                             : mpa::fpdu_size(ulpdu);
  }
  // Upper bound for the bytes of an FPDU at any position, including markers.
  std::uint64_t estimate(std::uint32_t ulpdu) const {
    const std::uint32_t base = mpa::fpdu_size(ulpdu);
    return framing_.marked() ? base + mpa::kMarker * (base / mpa::kMarkerData + 1) : base;
  }
  // The same for all FPDUs of `payload` bytes of a message.
  std::uint64_t estimate_message(std::uint64_t payload, bool tagged) const {
    const std::uint32_t header = header_of(tagged), full = most(tagged);
    if (payload <= full) return estimate(header + static_cast<std::uint32_t>(payload));
    const std::uint64_t whole = payload / full;
    const auto rest = static_cast<std::uint32_t>(payload % full);
    return whole * estimate(header + full) + (rest != 0 ? estimate(header + rest) : 0);
  }

  // Sets `*payload` for the next FPDU, at `at`, of a message with `remaining` bytes left. `fresh`:
  // the message has not begun. Returns false if the FPDU does not go into this segment.
  bool fit(StreamOffset at, bool tagged, std::uint32_t remaining, bool fresh, const Room& room,
           std::uint32_t* payload) const;

 private:
  static constexpr std::uint32_t kDefaultEmss = 536;  // until TCP reports one

  void measure() {
    const std::uint32_t ulpdu = mpa::framed_mulpdu(framing_.policy, emss_);
    tagged_max_ = ulpdu - kTaggedHeader;
    untagged_max_ = ulpdu - kUntaggedHeader;
  }

  mpa::Framing framing_;
  std::uint32_t emss_ = kDefaultEmss;
  std::uint32_t tagged_max_ = 0, untagged_max_ = 0;  // payload of one FPDU for emss_
  bool pack_partial_;
};

}  // namespace urnic::ddp
