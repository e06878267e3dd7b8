// The listeners of an engine. Owned here until they are closed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

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
  // The listener at that address; there is at most one.
  Listener* on(const IpAddress& ip, std::uint16_t port) const {
    for (const auto& l : all_) {
      if (l->listening && l->port() == port && l->local.covers(ip)) return l.get();
    }
    return nullptr;
  }
  // True if all or part of it is in use and not shared.
  bool is_taken(const LocalEnd& local) const {
    return any_of([&](const Listener& l) {
      return l.local.overlaps(local) && (l.listening || !l.local.shared || !local.shared);
    });
  }
  bool is_listened_on(const LocalEnd& local) const {
    return any_of([&](const Listener& l) { return l.listening && l.local.overlaps(local); });
  }
  // True if connections with this local end would belong to another user of it.
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

 private:
  std::uint32_t last_ = 0;
  std::vector<std::unique_ptr<Listener>> all_;
};

}  // namespace urnic::iwarp
