#include "ib/send_credits.h"

namespace urnic::ib {

// 0, 1, 2, 3, 4, 6, 8, 12, 16, 24 ... 32768: powers of two, and the mean of each two.
std::uint32_t credits_of(std::uint8_t code) {
  if (code < 2) return code;
  const std::uint32_t half = code / 2u;
  return code % 2 == 0 ? 1u << half : 3u << (half - 1);
}

bool SendCredits::covers(Msn ssn) const {
  return unlimited_ || lsn_ - ssn < kPsnWindow;
}

void SendCredits::take(Msn msn, std::uint8_t code) {
  if (msn.before(newest_)) return;
  newest_ = msn;
  if (code == kNoCredits) {
    unlimited_ = true;
  } else {
    lsn_ = msn + credits_of(code);
  }
}

}  // namespace urnic::ib
