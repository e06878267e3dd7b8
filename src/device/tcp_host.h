// Byte-stream TCP on a port: one tcp::Stack and one net::Interface on one port. For programs that
// need bytes and no RDMA.
//
// A function of (state, frames, now), except for wait(), which sleeps. One thread at a time.
//
//   TcpHost host({.interface = {.addresses = {*IpPrefix::parse("10.0.0.2/24")}}},
//                std::move(port));
//   Endpoint e = host.stack().open();
//   host.connect(e, *SocketAddress::parse("10.0.0.1:7"), monotonic_now());
//   for (;;) {
//     while (host.poll(monotonic_now())) use(host.stack());
//     host.wait(Instant::never());
//   }
//
// Frames go out in poll() and at the start of wait().
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ring.h"
#include "net/interface.h"
#include "port/port.h"
#include "port/tx_batch.h"
#include "tcp/stack.h"

namespace urnic::device {

struct TcpHostConfig {
  // Must pass net::check(). A zero MAC is replaced by the port's, if it has one. An MTU above the
  // port's is replaced by the port's.
  net::InterfaceConfig interface;
  // Configuration of the stack; its addresses are the interface's usable ones, its MTU the
  // interface's.
  tcp::StackConfig stack;
  // Limit of datagrams that wait for an ARP or ND answer, and of those that wait for room in the
  // port; beyond it the newest are dropped (TCP retransmits).
  // bound: datagrams waiting for a next hop, and for the port; limit: 1024; beyond: the newest is
  // dropped, counted (`overflow`), and TCP retransmits; test:
  // TcpHostTest.WaitingForANeighbourIsBounded, TcpHostTest.AFullPortDelaysDatagramsAndLosesNone
  std::size_t waiting_limit = 1024;
};

struct TcpHostCounters {
  std::uint64_t frames_in = 0, frames_out = 0;
  std::uint64_t not_for_us = 0;    // TCP to other addresses
  std::uint64_t bad_checksum = 0;  // TCP
  std::uint64_t unreachable = 0;   // datagrams without a route to their destination
  std::uint64_t overflow = 0;      // datagrams beyond the waiting limit
};

class TcpHost {
 public:
  TcpHost(TcpHostConfig config, port::Port port, unsigned queue = 0);
  ~TcpHost();
  TcpHost(const TcpHost&) = delete;
  TcpHost& operator=(const TcpHost&) = delete;

  tcp::Stack& stack() { return stack_; }
  net::Interface& interface() { return interface_; }
  port::Port& port() { return port_; }
  const TcpHostCounters& counters() const { return counters_; }

  // Like Stack::connect(); the interface chooses the source address unless one is bound.
  tcp::Status connect(tcp::Endpoint, const SocketAddress& remote, Instant now);

  // Receives one burst, runs timers, and sends everything that the port takes. False when there was
  // nothing to do.
  bool poll(Instant now);
  // Earliest timer; never() when none runs.
  Instant next_deadline() const;

  // Sends what is pending, then sleeps until a frame, a timer, `until`, or one of `more` (its
  // revents are set). Returns at once when the port has work already. Monotonic clock.
  void wait(Instant until, std::span<pollfd> more = {});

 private:
  struct Held {
    IpAddress next_hop;
    std::vector<std::uint8_t> datagram;
  };

  bool receive_burst(Instant now);
  void take_frame(const port::Frame& f, Instant now);
  void look_at_link(Instant now);
  void take_events(Instant now);
  void add_usable_addresses();
  void send(ByteView datagram, Instant now);
  bool send_frame(ByteView datagram, const MacAddress& to);
  void hold(Ring<Held>& queue, const IpAddress& next_hop, ByteView datagram);
  void release_waiting(const IpAddress* next_hop, Instant now);
  bool send_control();
  bool send_all(Instant now);

  TcpHostConfig config_;
  port::Port port_;
  unsigned queue_;
  net::Interface interface_;
  tcp::Stack stack_;
  port::TxBatch tx_;
  TcpHostCounters counters_;
  Ring<Held> unresolved_;            // waiting for a next hop to be resolved
  Ring<Held> unsent_;                // waiting for room in the port
  Ring<Held> loop_;                  // to ourselves
  std::vector<std::uint8_t> frame_;  // the frame being processed
  std::vector<net::Event> events_;
  std::vector<IpAddress> known_;  // own addresses that the stack has
  std::uint32_t link_epoch_ = 0;
};

}  // namespace urnic::device
