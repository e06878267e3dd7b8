// The transmit path that all parts of an engine share: buffers of the port in bursts, frames to own
// addresses, and frames that the interface itself sends. Also gives access to the interface's
// information about neighbours.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "net/header_template.h"
#include "net/interface.h"
#include "port/port.h"
#include "port/tx_batch.h"

namespace urnic::net {

// Returns the IP MTU of the route from an own address to another one; nullopt: unknown. Its answers
// are input, as frames are.
using RouteMtu = std::function<std::optional<std::uint32_t>(const IpAddress&, const IpAddress&)>;

class Wire {
 public:
  using Bytes = std::vector<std::uint8_t>;

  // `queue` of `port`; the port must outlive this object. `mtu`: in IP bytes. `udp_source_port`:
  // the fixed UDP source port if it cannot be chosen, as with a socket; 0: any. `route_mtu`: for
  // frames that leave by the kernel's routes; empty: all routes carry `mtu`.
  Wire(port::Port* port, unsigned queue, std::uint32_t mtu, std::uint32_t link_header,
       net::InterfaceConfig config, std::uint16_t udp_source_port = 0, RouteMtu route_mtu = {})
      : interface_(std::move(config)),
        mtu_(mtu),
        udp_source_port_(udp_source_port),
        route_mtu_(std::move(route_mtu)),
        tx_(port, queue, mtu + link_header) {}

  net::Interface& interface() { return interface_; }
  const net::Interface& interface() const { return interface_; }
  port::TxBatch& tx() { return tx_; }
  const port::TxBatch& tx() const { return tx_; }
  std::uint32_t mtu() const { return mtu_; }
  // The IP MTU of the route from an own address, at most mtu().
  std::uint32_t mtu_between(const IpAddress& own, const IpAddress& to) const {
    const auto route = route_mtu_ ? route_mtu_(own, to) : std::nullopt;
    return std::min(route.value_or(mtu_), mtu_);
  }
  std::uint16_t udp_source_port() const { return udp_source_port_; }

  net::HeaderTemplate make_header(const MacAddress& to, const IpAddress& from,
                                  const IpAddress& dst) const;

  // ---- frames to own addresses, which are looped back (E-30)
  // Connections wait until there is room again. Replies without a connection have some additional
  // places and are lost after that.
  bool loop_full() const { return loop_.size() >= kMostLooped; }
  bool loop_full_for_replies() const { return loop_.size() >= kMostLoopedReplies; }
  // Adds a frame of at most `bytes`. The caller writes it and then shortens or removes it.
  Bytes& new_looped(std::size_t bytes) { return loop_.emplace_back(bytes); }
  void take_back_looped() { loop_.pop_back(); }
  std::size_t looped() const { return loop_.size(); }
  Bytes next_looped();

  // ---- sending
  void begin_sending() { tx_.clear_full(); }
  // Sends the ARP, ND and ICMP frames of the interface.
  void send_control_frames();
  // Sends everything kept so far.
  void finish_sending();
  std::uint64_t times_full() const { return times_full_; }

 private:
  // bound: frames that an engine sends to itself; beyond: connections wait for room; replies
  // without a connection have 1024 more places and are lost beyond; test:
  // Loopback.LoopedFramesAreBounded
  static constexpr std::size_t kMostLooped = 4096;
  static constexpr std::size_t kMostLoopedReplies = kMostLooped + 1024;

  net::Interface interface_;
  std::uint32_t mtu_;
  std::uint16_t udp_source_port_;
  RouteMtu route_mtu_;
  port::TxBatch tx_;
  std::deque<Bytes> loop_;
  std::uint64_t times_full_ = 0;
};

}  // namespace urnic::net
