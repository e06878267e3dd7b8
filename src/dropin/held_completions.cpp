#include "dropin/held_completions.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "dropin/alarms.h"
#include "dropin/injector.h"

namespace urnic::dropin {

std::unique_ptr<HeldCompletions> HeldCompletions::make() {
  const Injector* const injector = Injector::get();
  if (injector == nullptr) return nullptr;
  const bool is_needed = injector->has(VerbsKind::late) || injector->has(VerbsKind::split) ||
                         injector->has(VerbsKind::cq_full);
  return is_needed ? std::make_unique<HeldCompletions>() : nullptr;
}

HeldCompletions::~HeldCompletions() {
  alarms().cancel(this);
}

int HeldCompletions::poll(CompletionQueue& queue, std::span<Completion> out) {
  const std::lock_guard guard(mutex_);
  const Instant now = monotonic_now();
  const int taken = take(queue, out.size(), now);
  if (taken < 0 && waiting_.empty()) return -1;
  return hand_out(out, now);
}

void HeldCompletions::arm(CompletionQueue& queue, bool solicited_only) {
  armed_ = true;
  queue.arm(solicited_only);
  const std::lock_guard guard(mutex_);
  const bool has_one = !waiting_.empty() && waiting_.front().due <= monotonic_now();
  if (has_one && armed_.exchange(false)) queue.notify();
}

int HeldCompletions::take(CompletionQueue& queue, std::size_t most, Instant now) {
  std::array<Completion, 32> got;
  int n = 0;
  while (most != 0) {
    const std::size_t want = std::min(most, got.size());
    n = queue.poll({got.data(), want});
    for (int i = 0; i < n; ++i) keep(queue, got[static_cast<std::size_t>(i)], now);
    if (n < 0 || static_cast<std::size_t>(n) < want) break;
    most -= want;
  }
  return n;
}

void HeldCompletions::keep(CompletionQueue& queue, const Completion& c, Instant now) {
  Injector& injector = *Injector::get();
  const std::string about = "wr_id " + std::to_string(c.wr_id);
  Instant due = now;
  if (const auto hit = injector.next(VerbsKind::late, {}, about)) {
    due = now + Duration::ns(hit->argument);
  }
  last_ = std::max(last_, due);
  waiting_.push_back({c, last_});
  if (last_ > now) {
    alarms().set(
        last_,
        [this, &queue] {
          if (armed_.exchange(false)) queue.notify();
        },
        this);
  }
  if (injector.next(VerbsKind::cq_full, {}, about)) queue.overrun();
}

int HeldCompletions::hand_out(std::span<Completion> out, Instant now) {
  std::size_t n = 0;
  while (n < std::min(out.size(), waiting_.size()) && waiting_[n].due <= now) ++n;
  if (n > 1 && Injector::get()->next(VerbsKind::split, {}, "1 of " + std::to_string(n))) n = 1;
  for (std::size_t i = 0; i < n; ++i) out[i] = waiting_[i].completion;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(n));
  return static_cast<int>(n);
}

}  // namespace urnic::dropin
