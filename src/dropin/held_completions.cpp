#include "dropin/held_completions.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/clock.h"
#include "dropin/alarms.h"
#include "dropin/completion.h"
#include "dropin/context.h"
#include "dropin/injector.h"
#include "dropin/queue_pair.h"

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

int HeldCompletions::poll(Cq& cq, std::span<Completion> out) {
  int n = 0;
  bool must_report = false;
  {
    const std::lock_guard guard(mutex_);
    const Instant now = monotonic_now();
    if (!ended_) take(cq.queue, out.size(), now);
    n = ended_ && waiting_.empty() ? -1 : hand_out(out, now);
    must_report = std::exchange(must_report_, false);
  }
  if (must_report) report_overrun(cq);
  return n;
}

void HeldCompletions::arm(Cq& cq, bool solicited_only) {
  armed_ = true;
  cq.queue.arm(solicited_only);
  const std::lock_guard guard(mutex_);
  const bool has_one = !waiting_.empty() && waiting_.front().due <= monotonic_now();
  if (has_one && armed_.exchange(false)) cq.queue.notify();
}

void HeldCompletions::report_overrun(Cq& cq) {
  ibv_async_event e{};
  e.event_type = IBV_EVENT_CQ_ERR;
  e.element.cq = cq.base();
  Context::of(cq.ex.context)->async.push(e);
  fail_all(cq.adapter, cq.base());
}

void HeldCompletions::take(CompletionQueue& queue, std::size_t most, Instant now) {
  std::array<Completion, 32> got;
  while (most != 0 && !ended_) {
    const std::size_t want = std::min(most, got.size());
    const int n = queue.poll({got.data(), want});
    if (n < 0) ended_ = true;
    for (int i = 0; i < n && !ended_; ++i) keep(queue, got[static_cast<std::size_t>(i)], now);
    if (n < static_cast<int>(want)) break;
    most -= want;
  }
}

void HeldCompletions::keep(CompletionQueue& queue, const Completion& c, Instant now) {
  Injector& injector = *Injector::get();
  const std::string about = "wr_id " + std::to_string(c.wr_id);
  if (injector.next(VerbsKind::cq_full, {}, about)) {  // this one found no room
    ended_ = must_report_ = true;
    return;
  }
  const auto hit = injector.next(VerbsKind::late, {}, about);
  const Instant due = hit ? now + Duration::ns(hit->argument) : now;
  waiting_.push_back({c, due});
  if (!hit) return;
  alarms().set(
      due,
      [this, &queue] {
        if (armed_.exchange(false)) queue.notify();
      },
      this);
}

// In order: behind one that is late, the others wait.
int HeldCompletions::hand_out(std::span<Completion> out, Instant now) {
  std::size_t n = 0;
  while (n < std::min(out.size(), waiting_.size()) && waiting_[n].due <= now) ++n;
  if (n > 1 && Injector::get()->next(VerbsKind::split, {}, "1 of " + std::to_string(n))) n = 1;
  for (std::size_t i = 0; i < n; ++i) out[i] = waiting_[i].completion;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(n));
  return static_cast<int>(n);
}

}  // namespace urnic::dropin
