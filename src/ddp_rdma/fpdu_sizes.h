// How large the FPDUs of one stream are: by the framing that was agreed and the EMSS that TCP says.
#pragma once

#include <cstdint>

#include "base/stream_offset.h"
#include "ddp_rdma/header.h"
#include "mpa/framing.h"

namespace urnic::ddp {

constexpr std::uint32_t header_of(bool tagged) {
  return tagged ? kTaggedHeader : kUntaggedHeader;
}

// What is left of the segment that is being cut.
struct Room {
  std::uint32_t bytes = 0;
  bool first = false;     // nothing is in the segment yet
  bool must_cut = false;  // then a part of one FPDU, when none fits
};

class FpduSizes {
 public:
  static constexpr std::uint32_t kSmallestFpdu = 20;  // zero-length tagged

  // `pack_partial`: see SenderConfig.
  explicit FpduSizes(bool pack_partial) : pack_partial_(pack_partial) { measure(); }

  const mpa::Framing& framing() const { return framing_; }
  std::uint32_t emss() const { return emss_; }
  // Estimates made with another framing or EMSS have to be made again.
  void set_framing(const mpa::Framing& framing) {
    framing_ = framing;
    measure();
  }
  void set_emss(std::uint32_t emss) {
    emss_ = emss;
    measure();
  }

  // Payload of an FPDU of full size.
  std::uint32_t most(bool tagged) const { return tagged ? tagged_max_ : untagged_max_; }
  // Bytes of an FPDU cut at `at`.
  std::uint32_t of(StreamOffset at, std::uint32_t ulpdu) const {
    return framing_.marked() ? mpa::marked_size(framing_.pos(at.value()), ulpdu)
                             : mpa::fpdu_size(ulpdu);
  }
  // Bytes of an FPDU wherever it will begin: with markers, as many as it can have.
  std::uint64_t estimate(std::uint32_t ulpdu) const {
    const std::uint32_t base = mpa::fpdu_size(ulpdu);
    return framing_.marked() ? base + mpa::kMarker * (base / mpa::kMarkerData + 1) : base;
  }
  // The same of all FPDUs of `payload` bytes of a message.
  std::uint64_t estimate_message(std::uint64_t payload, bool tagged) const {
    const std::uint32_t header = header_of(tagged), full = most(tagged);
    if (payload <= full) return estimate(header + static_cast<std::uint32_t>(payload));
    const std::uint64_t whole = payload / full;
    const auto rest = static_cast<std::uint32_t>(payload % full);
    return whole * estimate(header + full) + (rest != 0 ? estimate(header + rest) : 0);
  }

  // Payload of the next FPDU, at `at`, of a message that has `remaining` bytes to go and is
  // `fresh` when it has not begun. False: not in this segment.
  bool fit(StreamOffset at, bool tagged, std::uint32_t remaining, bool fresh, const Room& room,
           std::uint32_t* payload) const;

 private:
  static constexpr std::uint32_t kDefaultEmss = 536;  // until TCP says

  void measure() {
    const std::uint32_t ulpdu = mpa::framed_mulpdu(framing_.policy, emss_);
    tagged_max_ = ulpdu - kTaggedHeader;
    untagged_max_ = ulpdu - kUntaggedHeader;
  }

  mpa::Framing framing_;
  std::uint32_t emss_ = kDefaultEmss;
  std::uint32_t tagged_max_ = 0, untagged_max_ = 0;  // payload of one FPDU by emss_
  bool pack_partial_;
};

}  // namespace urnic::ddp
