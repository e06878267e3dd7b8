// Listeners, and the local addresses and ports that are kept for a program.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/ip_address.h"
#include "base/ring.h"
#include "base/time.h"
#include "kernel_tcp/socket.h"
#include "tcp/host_logic.h"
#include "verbs/connection.h"

namespace urnic::iwarp {

using verbs::LocalEnd;

struct Listener : verbs::Listener {
  bool listening = false;    // else it is only kept: connections to it are refused
  std::uint32_t number = 0;  // its number at the poller
  // From now on connections may use it.
  LocalEnd to_connect_from() const {
    if (socket.is_open()) socket.let_in();
    return local;
  }
  // Connections between SYN and the consumer's answer. Those that wait for the consumer take
  // precedence; half-open ones get the rest.
  tcp::Backlog backlog;
  // Number of waiting connections with established TCP, by peer; and how many one peer may have.
  std::map<IpAddress, std::uint32_t> waiting_of;
  std::uint32_t most_of_peer = 1;
  bool is_full_for(const IpAddress& peer) const {
    const auto has = waiting_of.find(peer);
    return has != waiting_of.end() && has->second >= most_of_peer;
  }
  // Connections whose TCP is established, in that order. While their peers send nothing, the oldest
  // makes room when the backlog is full. Some entries may be stale (data was sent, or the
  // connection is gone).
  struct Silent {
    std::uint64_t connection;
    Instant since;
  };
  Ring<Silent> silent;
  // Over the kernel's TCP:
  kernel_tcp::Socket socket;
  bool acceptable = false;  // connections wait in the kernel, as far as known
  bool paused = false;      // because there are no descriptors
  std::uint32_t pending() const { return backlog.waiting + backlog.half_open; }
};

// The place of a passive connection in the backlog of its listener: none, half open (TCP's
// handshake is not done), or waiting for the program's answer. The listener's counters move with
// it.
class BacklogPlace {
 public:
  Listener* listener() const { return listener_; }  // nullptr: it has no place
  bool is_half_open() const { return half_open_; }

  // `half_open`: its TCP handshake comes first.
  void enter(Listener& listener, const IpAddress& peer, bool half_open) {
    if (!half_open) ++listener.waiting_of[peer];  // first, since it may fail for lack of memory
    listener_ = &listener;
    half_open_ = half_open;
    ++(half_open ? listener.backlog.half_open : listener.backlog.waiting);
  }
  void tcp_established(const IpAddress& peer) {
    if (!half_open_) return;
    ++listener_->waiting_of[peer];
    --listener_->backlog.half_open;
    ++listener_->backlog.waiting;
    half_open_ = false;
  }
  // The program has answered, or the connection is gone.
  void leave(const IpAddress& peer) {
    if (listener_ == nullptr) return;
    --(half_open_ ? listener_->backlog.half_open : listener_->backlog.waiting);
    const auto of_peer = listener_->waiting_of.find(peer);
    if (!half_open_ && --of_peer->second == 0) listener_->waiting_of.erase(of_peer);
    half_open_ = false;
    listener_ = nullptr;
  }

 private:
  Listener* listener_ = nullptr;
  bool half_open_ = false;  // never without a listener
};

}  // namespace urnic::iwarp
