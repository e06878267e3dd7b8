#include "tcp/hystart.h"

#include <algorithm>

namespace urnic::tcp {
namespace {

// RFC 9406 4.3.
constexpr std::uint32_t kLeastGrowthUs = 4000, kMostGrowthUs = 16000, kGrowthDivisor = 8;
constexpr std::uint8_t kSamples = 8, kConservativeRounds = 5;

}  // namespace

HyStartSays hystart_on_ack(HyStart& h, StreamOffset una, StreamOffset nxt, Duration rtt) {
  if (una >= h.round_end) {
    h.round_end = nxt;
    h.last_min_us = h.current_min_us;
    h.current_min_us = HyStart::kNone;
    h.samples = 0;
    if (h.conservative_rounds != 0 && h.conservative_rounds++ > kConservativeRounds) {
      return HyStartSays::EndSlowStart;
    }
  }
  if (rtt > Duration::zero()) {
    const auto us = static_cast<std::uint32_t>(std::min<std::int64_t>(rtt.count_us(), 1 << 30));
    h.current_min_us = std::min(h.current_min_us, us);
    if (h.samples < 255) ++h.samples;
  }
  if (h.samples >= kSamples) {
    if (h.conservative_rounds == 0) {
      if (h.last_min_us != HyStart::kNone &&
          h.current_min_us >= h.last_min_us + std::clamp(h.last_min_us / kGrowthDivisor,
                                                         kLeastGrowthUs, kMostGrowthUs)) {
        h.baseline_us = h.current_min_us;
        h.conservative_rounds = 1;
      }
    } else if (h.current_min_us < h.baseline_us) {
      h.conservative_rounds = 0;  // a blip
      h.baseline_us = HyStart::kNone;
    }
  }
  return h.conservative_rounds != 0 ? HyStartSays::GrowQuarter : HyStartSays::Grow;
}

}  // namespace urnic::tcp
