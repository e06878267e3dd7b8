#include "ib/probe.h"

namespace urnic::ib {

void Probe::answered(Psn una, Instant now) {
  if (!measuring_ || !measured_.before(una)) return;
  measuring_ = false;
  const Duration sample = now - left_;
  round_trip_ = round_trip_ == Duration::zero() ? sample : (round_trip_ * 7 + sample) / 8;
}

void Probe::left(Psn psn, Psn end, Instant now) {
  wanted_ = false;
  probed_ = true;
  probe_ = psn;
  end_ = end;
  if (doublings_ < kMostDoublings) ++doublings_;
  wait(now);
}

bool Probe::shows_loss(Psn una) {
  if (!probed_ || !probe_.before(una)) return false;
  probed_ = false;
  return una == probe_ + 1 && una.before(end_);
}

}  // namespace urnic::ib
