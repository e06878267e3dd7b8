#include "engine/link.h"

namespace urnic::engine {
namespace {

constexpr Duration kLookAgain = Duration::us(1);

}  // namespace

bool Link::look(Instant now) {
  next_look_ = now + kLookAgain;
  const port::Info info = port_->info();
  const bool up = info.link_up != 0;
  // Down and up between two checks: there may be another peer now.
  const bool again = up && info.link_epoch != epoch_;
  if (up == up_ && !again) return false;
  if (again) epoch_ = info.link_epoch;
  if (up_) hooks_->on_link(false, again ? "replaced by another peer" : port_->why());
  if (!up) {
    if (interface_->is_up()) interface_->link_down();
    if (up_) lost_at_ = now;
    up_ = false;
    return false;
  }
  if (again) interface_->link_up(now);
  up_ = true;
  lost_at_ = Instant::never();
  hooks_->on_link(true, "");
  return true;
}

Instant Link::given_up_at() const {
  const bool told = lost_at_.is_never() || timeout_ == Duration::zero();
  return told ? Instant::never() : lost_at_ + timeout_;
}

std::string Link::give_up() {
  const std::string reason = port_->why();
  std::string why = "the link has been down for " + std::to_string(timeout_.count_ms()) + " ms" +
                    (reason.empty() ? "" : ": " + reason);
  lost_at_ = Instant::never();
  return why;
}

}  // namespace urnic::engine
