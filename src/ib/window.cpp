#include "ib/window.h"

namespace urnic::ib {

Duration AimdWindow::base() const {
  if (least_ == Duration::zero()) return least_before_;
  return least_before_ == Duration::zero() ? least_ : std::min(least_, least_before_);
}

void AimdWindow::measured(Duration trip, Instant now) {
  if (span_end_.is_never() || span_end_ <= now) {
    least_before_ = least_;
    least_ = trip;
    span_end_ = now + kBaseAge;
  }
  least_ = std::min(least_, trip);
  queueing_ = trip - base();
  if (target_ == Duration::zero()) target_ = least_target();
  if (target_ < least_target()) target_ = target_ + target_ / 64;
  target_ = std::clamp(target_, shortest_target(), kMostTarget);
}

// Judges the first round trip after a cut for length. If we were alone in the queue, the cut would
// have shortened it. If it is as long as before, other senders fill the queue, and if we yielded
// each time we would end with nothing.
void AimdWindow::judge_cut(Duration trip) {
  if (cut_at_ == Duration::zero()) return;
  const bool helped = trip < cut_at_ - cut_at_ / 8;
  if (helped) {
    if (target_ > least_target()) target_ = std::max(least_target(), target_ - target_ / 16);
  } else {
    target_ = std::min(kMostTarget, target_ * 2);
  }
  cut_at_ = Duration::zero();
}

void AimdWindow::cut_for_length() {
  cut();
  if (cut_at_ == Duration::zero()) cut_at_ = base() + queueing_;
}

bool AimdWindow::round(const Round& r, Instant now) {
  const bool known = r.trip != Duration::zero();
  if (known) measured(r.trip, now);
  if (known && r.settled) judge_cut(r.trip);
  if (!r.quiet) return false;
  if (known && queueing_ > target_) {
    cut_for_length();
    return true;
  }
  if (r.limited) grow();
  return false;
}

// If the target was raised, senders that ignore marks fill the queue. A long queue is then marked
// all the time, whatever we do: only its length counts.
bool AimdWindow::notified() {
  const bool is_long = queueing_ > least_target();
  if (is_long && target_ > least_target()) return false;
  if (is_long && cut_at_ == Duration::zero()) cut_at_ = base() + queueing_;
  cut_to(window_ / 2);
  return true;
}

// Grows fast without a queue, by one packet with a queue.
void AimdWindow::grow() {
  std::uint32_t more = kOne;
  if (window_ < threshold_) {
    more = window_;
  } else if (queueing_ < least_target() / 4) {
    more = std::max(kOne, window_ / 8);
  }
  window_ = std::min(most_, window_ + more);
}

void AimdWindow::cut_to(std::uint32_t window) {
  window_ = threshold_ = std::max(floor(), window);
}

void AimdWindow::cut() {
  cut_to(window_ - window_ / 10 * 3);
}

void AimdWindow::time_out() {
  cut();
  window_ = floor();
}

// The queue overflows at this length: other senders that react to losses back off here, so we do so
// earlier.
void AimdWindow::note_loss() {
  if (queueing_ <= shortest_target()) return;
  target_ = std::max(shortest_target(), std::min(target_, queueing_ - queueing_ / 4));
}

}  // namespace urnic::ib
