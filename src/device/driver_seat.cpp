// An application thread that takes the place of our thread while it waits (seat.h).
#include <errno.h>
#include <poll.h>

#include "device/driver.h"
#include "device/nap.h"
#include "device/uncancelled.h"

namespace urnic::device {
// Leaves the seat, also when the thread is cancelled in its sleep. The seat is kept for the thread.
class Driver::Sitting {
 public:
  explicit Sitting(Driver* driver) : d_(driver) {}
  ~Sitting() {
    d_->ownership_.take();
    d_->send_gathered();
    d_->wake_up();
    const Instant now = monotonic_now();
    if (serves) d_->serve_arrivals(now);
    d_->seat_.away(now);
    d_->seat_.rise(now);
    d_->leave();
  }
  Sitting(const Sitting&) = delete;
  Sitting& operator=(const Sitting&) = delete;
  bool serves = false;  // something has arrived, or is due

 private:
  Driver* d_;
};

bool Driver::wait(int fd, Duration most) {
  const Uncancelled uncancelled;
  seat_.back(monotonic_now());
  Instant until;
  const Place place = sit_down(&until);
  if (place == Place::Served) return true;
  pollfd fds[kMaxFds + 2];
  fds[0] = {fd, POLLIN, 0};
  if (place == Place::Beside) {
    const bool slept = uncancelled.sleep(fds, 1, most) >= 0 || errno != EINTR;
    seat_.away(monotonic_now());
    return slept;
  }
  const Instant begun = monotonic_now();
  Sitting sitting(this);
  fds[1] = {seat_.bell().get(), POLLIN, 0};
  const unsigned n = 2 + port_descriptors(fds + 2, kMaxFds);
  const Instant given_up = most == kForEver ? Instant::never() : begun + most;
  int woken = seat_.lookout().out(fds, n, begun, std::min(until, given_up));
  if (woken == 0) {
    const Duration left = left_until(std::min(until, given_up));
    if (left != Duration()) sleeps_.fetch_add(1, std::memory_order_relaxed);
    woken = uncancelled.sleep(fds, n, left);
  }
  const bool gives_up = given_up < until;
  if (woken < 0) return errno != EINTR;
  if (fds[1].revents != 0) seat_.bell().clear();
  sitting.serves = woken == 0 ? !gives_up : woken > (fds[0].revents != 0 ? 1 : 0);
  return true;
}

Driver::Place Driver::sit_down(Instant* until) {
  if (options_.progress != Progress::Auto || inherited() || !seat_.offered()) return Place::Beside;
  ownership_.take();
  send_gathered();
  const Place place = choose_place(monotonic_now());
  *until = asleep_.until;
  leave();
  return place;
}

// Needs the ownership. Another application thread that comes back all the time without sleeping
// drives.
Driver::Place Driver::choose_place(Instant now) {
  const bool lent = seat_.lent();
  if (caller_.comes_back() || sleeper_.load(std::memory_order_relaxed) == Sleeper::Watching ||
      !seat_.sit(now)) {
    return Place::Beside;
  }
  if (!lent) wake_.signal();  // relieves our thread, which may be asleep on the port
  if (fall_asleep()) return Place::Seated;
  sleeper_ = Sleeper::Awake;
  serve_arrivals(now);
  seat_.away(now);
  seat_.rise(now);
  return Place::Served;
}

// Our thread waits here until the seat is its own again.
void Driver::be_relieved() {
  for (bool lent = true; lent && !stop_;) {
    pollfd fds[2 + WatchedDescriptors::kMost] = {{wake_.get(), POLLIN, 0},
                                                 {seat_.timer(), POLLIN, 0}};
    const unsigned n = 2 + watched_.add_to(fds + 2);
    sleeps_.fetch_add(1, std::memory_order_relaxed);
    ::ppoll(fds, n, nullptr, nullptr);
    if (fds[0].revents != 0) wake_.clear();
    watched_.serve();
    ownership_.take();
    seat_.take_back(monotonic_now());
    lent = seat_.lent();
    leave();
  }
}

}  // namespace urnic::device
