#include "tcp/hystart.h"

#include <algorithm>

namespace urnic::tcp {
namespace {

// RFC 9406 4.3.
constexpr std::uint32_t kLeastGrowthUs = 4000, kMostGrowthUs = 16000, kGrowthDivisor = 8;
constexpr std::uint8_t kSamples = 8, kConservativeRounds = 5, kTrainRounds = 1;
// ACKs further apart do not come from one queue. A smaller window says nothing about the path.
constexpr Duration kLargestGap = Duration::ms(2);
constexpr std::uint32_t kLeastSegments = 16;

bool train_fills_the_path(HyStart& h, Instant now, std::uint32_t segments) {
  if (h.train == HyStart::Train::ToCome) {
    h.train = HyStart::Train::Whole;
    h.train_begin = now;
  } else if (now - h.last_ack > kLargestGap) {
    h.train = HyStart::Train::Broken;
  }
  h.last_ack = now;
  if (h.train != HyStart::Train::Whole || segments < kLeastSegments ||
      h.least_us == HyStart::kNone) {
    return false;
  }
  return (now - h.train_begin).count_us() > h.least_us / 2;
}

bool has_grown(std::uint32_t us, std::uint32_t from_us) {
  return from_us != HyStart::kNone &&
         us >= from_us + std::clamp(from_us / kGrowthDivisor, kLeastGrowthUs, kMostGrowthUs);
}

}  // namespace

HyStartSays hystart_on_ack(HyStart& h, StreamOffset una, StreamOffset nxt, Duration rtt,
                           Instant now, std::uint32_t segments) {
  // The first ACK beyond round_end begins the next round, so that rounds and trains begin together.
  if (una > h.round_end || h.round_end == StreamOffset(0)) {
    h.train = HyStart::Train::ToCome;
    h.round_end = nxt;
    h.last_min_us = h.current_min_us;
    h.current_min_us = HyStart::kNone;
    h.samples = 0;
    if (h.conservative_rounds != 0 &&
        h.conservative_rounds++ > (h.by_train ? kTrainRounds : kConservativeRounds)) {
      return HyStartSays::EndSlowStart;
    }
  }
  if (rtt > Duration::zero()) {
    const auto us = static_cast<std::uint32_t>(std::min<std::int64_t>(rtt.count_us(), 1 << 30));
    h.current_min_us = std::min(h.current_min_us, us);
    h.least_us = std::min(h.least_us, us);
    if (h.samples < 255) ++h.samples;
  }
  if (train_fills_the_path(h, now, segments)) {
    if (h.conservative_rounds != 0 && !h.by_train) return HyStartSays::EndSlowStart;
    if (h.conservative_rounds == 0) h.conservative_rounds = 1;
    h.by_train = true;
  }
  if (h.samples >= kSamples) {
    if (h.by_train) {
      if (has_grown(h.current_min_us, h.least_us)) return HyStartSays::EndSlowStart;
    } else if (h.conservative_rounds == 0) {
      if (has_grown(h.current_min_us, h.last_min_us)) {
        h.baseline_us = h.current_min_us;
        h.conservative_rounds = 1;
      }
    } else if (h.current_min_us < h.baseline_us) {
      h.conservative_rounds = 0;  // a false alarm
      h.baseline_us = HyStart::kNone;
    }
  }
  return h.conservative_rounds != 0 ? HyStartSays::GrowQuarter : HyStartSays::Grow;
}

bool hystart_rtt_is_inflated(const HyStart& h, Duration srtt) {
  const auto us = static_cast<std::uint32_t>(std::min<std::int64_t>(srtt.count_us(), 1 << 30));
  return h.least_us == HyStart::kNone || has_grown(us, h.least_us);
}

}  // namespace urnic::tcp
