// The link below the engine, and what its end means for the connections over it (E-43).
#include "engine/engine.h"

namespace urnic::engine {
namespace {

constexpr Duration kLookAgain = Duration::us(1);

}  // namespace

// The port tells when its link came or went (memif: a peer, or another one).
void Engine::look_at_link(Instant now) {
  next_look_ = now + kLookAgain;
  const port::Info info = port_->info();
  const bool up = info.link_up != 0;
  // Gone and back between two looks: what was behind it may be another now.
  const bool again = up && info.link_epoch != link_epoch_;
  if (up == link_up_ && !again) return;
  if (again) link_epoch_ = info.link_epoch;
  if (link_up_) hooks_->on_link(false, again ? "another peer came" : port_->why());
  if (!up) {
    if (interface_.is_up()) interface_.link_down();
    if (link_up_) link_lost_at_ = now;
    link_up_ = false;
    return;
  }
  if (again) interface_.link_up(now);
  link_up_ = true;
  link_lost_at_ = Instant::never();
  hooks_->on_link(true, "");
  ask_peers(now);
}

Instant Engine::link_given_up_at() const {
  const bool told = link_lost_at_.is_never() || options_.link_timeout == Duration::zero();
  return told ? Instant::never() : link_lost_at_ + options_.link_timeout;
}

// The link has been away for too long: nobody will answer. Connections that are still being opened
// have a time-out of their own.
void Engine::give_up_link(Instant now) {
  link_lost_at_ = Instant::never();
  const std::string why = port_->why();
  const std::string text = "the link has been down for " +
                           std::to_string(options_.link_timeout.count_ms()) + " ms" +
                           (why.empty() ? "" : ": " + why);
  connections_.for_each([&](Connection& c) {
    if (c.loopback || c.stage == Stage::Opening) return;
    if (c.qp != nullptr || c.startup != nullptr) fail_connection(c, Errc::unreachable, text, now);
  });
}

// Who is behind the link now may not know our connections: idle ones would wait for ever. One
// keep-alive probe each (RFC 9293, 3.8.4) draws an ACK, or the RST of somebody else.
void Engine::ask_peers(Instant now) {
  connections_.for_each([&](Connection& c) {
    if (c.loopback || c.link != nullptr || c.qp == nullptr) return;
    tcp::probe_peer(c.tcb, now);
    enqueue_tx(c);
    arm_timer(c);
  });
}

// Keep-alive of one connection (RFC 1122, 4.2.3.6: a setting per connection), over either TCP.
void Engine::set_keepalive(Connection& c, const ConnectParams& params, Instant now) {
  const Duration idle =
      params.keepalive.value_or(options_.keepalive) ? options_.keepalive_idle : Duration::zero();
  if (c.link != nullptr) {
    c.link->socket.set_keepalive(static_cast<int>((idle.count_ms() + 999) / 1000));
    return;
  }
  tcp::set_keepalive(c.tcb, idle, now);
  arm_timer(c);
}

}  // namespace urnic::engine
