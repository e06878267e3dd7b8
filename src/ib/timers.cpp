#include "ib/timers.h"

#include <algorithm>
#include <array>

namespace urnic::ib {
namespace {

constexpr std::int64_t kAckTick = 4096;    // ns
constexpr std::int64_t kRnrTick = 10'000;  // ns

// By code, in units of 10 us.
constexpr std::array<std::uint32_t, 32> kRnrTicks = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

bool take(std::uint8_t* left) {
  if (*left == 0) return false;
  --*left;
  return true;
}

}  // namespace

Duration ack_timeout(std::uint8_t code) {
  code &= 31;
  return code == 0 ? Duration::zero() : Duration::ns(kAckTick << code);
}

Duration rnr_wait(std::uint8_t code) {
  return Duration::ns(kRnrTick * kRnrTicks[code & 31]);
}

TransportTimer::TransportTimer(std::uint8_t code, Duration least) : timeout_(ack_timeout(code)) {
  if (timeout_ > Duration::zero()) timeout_ = std::max(timeout_, least);
}

void TransportTimer::restart(Instant now) {
  due_ = timeout_ > Duration::zero() ? now + timeout_ : Instant::never();
}

bool RetryCounters::take_retry() {
  return take(&retries_left_);
}

bool RetryCounters::take_rnr_retry() {
  return rnr_retries_ == kRnrForEver || take(&rnr_left_);
}

}  // namespace urnic::ib
