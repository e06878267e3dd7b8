// Where connections are waited for, and the addresses and ports kept for somebody.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/gate.h"
#include "base/ip_address.h"
#include "base/ring.h"
#include "base/time.h"
#include "sockets/socket.h"
#include "tcp/host_logic.h"

namespace urnic::iwarp {

// Which addresses of ours, and which port of them.
struct LocalEnd {
  // The any-address of version 6 stands for all of version 4 too, unless `v6_only`.
  SocketAddress at{IpAddress::any_v6(), 0};
  bool v6_only = false;
  bool shared = false;  // others that are shared may overlap, until one of them listens

  bool covers(const IpAddress& ip) const {
    if (at.ip == IpAddress::any_v6()) return ip.is_v6() || !v6_only;
    if (at.ip == IpAddress::any_v4()) return ip.is_v4();
    return at.ip == ip;
  }
  // There is an address and port that is of both.
  bool overlaps(const LocalEnd& o) const {
    return at.port == o.at.port && (covers(o.at.ip) || o.covers(at.ip));
  }
};

struct Listener {
  LocalEnd local;
  bool listening = false;    // else it is only kept: who connects is refused
  std::uint32_t number = 0;  // its name at the poller
  std::uint16_t port() const { return local.at.port; }
  // Connections may have it from now on.
  LocalEnd to_connect_from() const {
    if (socket.is_open()) socket.let_in();
    return local;
  }
  // Connections between SYN and the consumer's answer. Half-open ones have what those that wait for
  // the consumer leave of it.
  tcp::Backlog backlog;
  // Of those that wait, whose TCP is established, by peer; and how many one may have.
  std::map<IpAddress, std::uint32_t> waiting_of;
  std::uint32_t most_of_peer = 1;
  bool is_full_for(const IpAddress& peer) const {
    const auto has = waiting_of.find(peer);
    return has != waiting_of.end() && has->second >= most_of_peer;
  }
  // Connections whose TCP is established, in that order: while they say nothing, the oldest of them
  // gives way when the backlog is full. Some have spoken or are gone meanwhile.
  struct Silent {
    std::uint64_t connection;
    Instant since;
  };
  Ring<Silent> silent;
  void* owner = nullptr;
  std::shared_ptr<Gate> gate;  // null: everybody may come
  // Over the kernel's TCP:
  sockets::Socket socket;
  bool acceptable = false;  // connections wait in the kernel, as far as we know
  bool paused = false;      // for want of descriptors
  std::uint32_t pending() const { return backlog.waiting + backlog.half_open; }
};

}  // namespace urnic::iwarp
