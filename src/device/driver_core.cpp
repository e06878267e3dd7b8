// The core of an application whose polls find nothing (poll_wait.h).
#include <poll.h>

#include <algorithm>
#include <thread>

#include "device/driver.h"
#include "device/nap.h"
#include "device/uncancelled.h"

namespace urnic::device {

// Needs the ownership; called at the end of a poll by the application.
PollWait::Core Driver::Core::after(bool any, Instant now) {
  if (any) {
    d_->caller_.wait.forget();
    return PollWait::Core::Kept;
  }
  PollWait::For what = PollWait::For::Arrival;
  if (d_->engine_->waits_for_room()) {
    what = d_->engine_->over_kernel_tcp() ? PollWait::For::SocketRoom : PollWait::For::PortRoom;
  } else if (d_->options_.doze == Duration() || !d_->caller_.habit.steady()) {
    // `doze` is 0, or the application does other work between its polls
    return PollWait::Core::Kept;
  }
  const PollWait::Core core = d_->caller_.wait.in_vain(what, now);
  if (core != PollWait::Core::Kept) d_->caller_.habit.yield();
  return core;
}

// Call without ownership. Returns the time at which it ended.
Instant Driver::Core::leave(PollWait::Core how, Instant now) {
  if (how == PollWait::Core::SleptOn && doze(now)) return monotonic_now();
  std::this_thread::yield();
  const Instant back = monotonic_now();
  d_->ownership_.take();
  d_->caller_.wait.yielded(now, back);
  d_->leave();
  return back;
}

// Sleeps on the port until something arrives or is due, and only for a moment, because for our
// thread the application is still in its poll. Our thread, which is watching, does not sleep on the
// port meanwhile. False: dozing is not allowed now.
bool Driver::Core::doze(Instant now) {
  if (d_->options_.doze == Duration()) return false;
  d_->ownership_.take();
  const bool watched = d_->sleeper_.load(std::memory_order_relaxed) == Sleeper::Watching;
  const bool armed = watched && !d_->port_->arm(d_->queue_);
  const Instant until = std::min(d_->engine_->next_deadline(), now + d_->options_.doze);
  d_->leave();
  if (armed) {
    const Uncancelled uncancelled;
    pollfd fds[kMaxFds];
    const unsigned n = d_->port_descriptors(fds, kMaxFds);
    ::ppoll(fds, n, Nap(left_until(until)).get(), nullptr);
    d_->sleeps_.fetch_add(1, std::memory_order_relaxed);
  }
  d_->ownership_.take();
  if (watched && d_->sleeper_.load(std::memory_order_relaxed) == Sleeper::Watching) {
    d_->port_->disarm(d_->queue_);
  }
  d_->leave();
  return watched;
}

}  // namespace urnic::device
