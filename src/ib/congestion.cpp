#include "ib/congestion.h"

namespace urnic::ib {
namespace {

constexpr std::uint32_t kPart = 20;   // more than one in this many lost packets is too much
constexpr std::uint32_t kSingle = 1;  // a single loss is not congestion, however small the window

}  // namespace

void Congestion::take_answer(Psn una, Psn end, Instant now) {
  if (cut_ && !una.before(cut_end_)) {
    cut_ = false;
    round_ = round_ && settled_;  // the next round shows the effect of the cut
  }
  if (rule_ == CongestionRule::Dcqcn) {
    dcqcn_.advance(now);
    settle();
  }
  if (!round_ || !measured_.before(una)) return;
  round_ = false;
  if (rule_ != CongestionRule::Window) return;
  const Duration trip = spoiled_ ? Duration::zero() : now - left_;
  if (window_.round({trip, settled_, quiet_, limited_}, now)) {
    after_cut(end);
  } else {
    settle();
  }
}

void Congestion::after_cut(Psn end) {
  ++counters_.cuts;
  cut_ = true;
  cut_end_ = end;
  sent_ = lost_ = 0;
  quiet_ = false;
  settle();
}

void Congestion::lost(std::uint32_t packets, Psn end, Instant now) {
  if (!on()) return;
  spoiled_ = true;
  if (rule_ == CongestionRule::Window) window_.note_loss();
  if (cut_) return;
  lost_ += packets;
  if (lost_ <= kSingle || lost_ * kPart <= packets_) return;
  if (rule_ == CongestionRule::Window) {
    window_.cut();
  } else if (!dcqcn_.cut(now)) {
    return;
  }
  after_cut(end);
}

void Congestion::timed_out(Instant now) {
  if (!on()) return;
  if (rule_ == CongestionRule::Window) {
    window_.time_out();
  } else {
    dcqcn_.time_out(now);
  }
  after_cut(Psn());
  cut_ = false;  // everything is sent again
}

// False: the congestion is already known.
bool Congestion::act(Psn end, Instant now) {
  if (!on()) return false;
  if (rule_ == CongestionRule::Dcqcn) {
    if (!dcqcn_.cut(now)) return false;
  } else {
    if (cut_ || !window_.notified()) return false;
  }
  after_cut(end);
  return true;
}

// A flood of CNPs, or forged ones with the peer's address, costs at most one cut per round trip and
// never reduces the window below its floor.
void Congestion::notified(Psn end, bool outstanding, Instant now) {
  ++counters_.cnps;
  if (!outstanding || !act(end, now)) ++counters_.cnps_ignored;
}

}  // namespace urnic::ib
