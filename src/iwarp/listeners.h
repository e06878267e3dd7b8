// The listeners of an engine: owned here until they are closed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "iwarp/connection.h"
#include "iwarp/listener.h"

namespace urnic::iwarp {

class Listeners {
 public:
  Listener* add(const LocalEnd& local, std::shared_ptr<Gate> gate) {
    all_.push_back(std::make_unique<Listener>());
    Listener* l = all_.back().get();
    l->local = local;
    l->gate = std::move(gate);
    l->number = ++last_;
    return l;
  }
  // Who listens there; there is at most one.
  Listener* on(const IpAddress& ip, std::uint16_t port) const {
    for (const auto& l : all_) {
      if (l->listening && l->port() == port && l->local.covers(ip)) return l.get();
    }
    return nullptr;
  }
  // Somebody has it, or a part of it, and does not share.
  bool is_taken(const LocalEnd& local) const {
    return any_of([&](const Listener& l) {
      return l.local.overlaps(local) && (l.listening || !l.local.shared || !local.shared);
    });
  }
  bool is_listened_on(const LocalEnd& local) const {
    return any_of([&](const Listener& l) { return l.listening && l.local.overlaps(local); });
  }
  // Connections with this local end would be another's.
  bool is_kept(const IpAddress& ip, std::uint16_t port) const {
    return any_of([&](const Listener& l) { return l.port() == port && l.local.covers(ip); });
  }
  void remove(const Listener* listener) {
    std::erase_if(all_, [&](const auto& l) { return l.get() == listener; });
  }
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t i = 0; i < all_.size(); ++i) f(*all_[i]);
  }
  template <class F>
  bool any_of(F&& f) const {
    return std::any_of(all_.begin(), all_.end(), [&](const auto& l) { return f(*l); });
  }

  // A connection that waits for the consumer's answer; `half_open`: for its TCP first.
  static void enter(Connection& c, Listener& listener, bool half_open) {
    if (!half_open) ++listener.waiting_of[c.key.remote];  // first: there may be no memory
    c.listener = &listener;
    c.half_open = half_open;
    ++(half_open ? listener.backlog.half_open : listener.backlog.waiting);
  }
  static void tcp_established(Connection& c) {
    if (c.half_open) {
      ++c.listener->waiting_of[c.key.remote];
      --c.listener->backlog.half_open;
      ++c.listener->backlog.waiting;
    }
    c.half_open = false;
  }
  // The consumer has answered, or the connection is gone.
  static void leave(Connection& c) {
    if (c.listener == nullptr) return;
    --(c.half_open ? c.listener->backlog.half_open : c.listener->backlog.waiting);
    const auto of_peer = c.listener->waiting_of.find(c.key.remote);
    if (!c.half_open && --of_peer->second == 0) c.listener->waiting_of.erase(of_peer);
    c.half_open = false;
    c.listener = nullptr;
  }

 private:
  std::uint32_t last_ = 0;
  std::vector<std::unique_ptr<Listener>> all_;
};

}  // namespace urnic::iwarp
