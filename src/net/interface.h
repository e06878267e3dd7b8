// One attachment to a network: own addresses, routes, neighbours, ARP, neighbour discovery, ICMP.
// It contains everything between an Ethernet frame and a TCP segment except the hot path.
//
// A function of (state, input, now). Frames to send are collected in a bounded queue that the
// engine empties with next_output; information for TCP is collected as events. Not thread safe: use
// it from one thread at a time (the one that owns the engine).
//
// Receiving: the engine classifies every frame, handles kind Tcp itself (calling accepts()), and
// passes all others to input(). Sending: resolve() returns the MAC for a HeaderTemplate. If it
// returns Pending, the sender waits for NeighbourUsable or NeighbourFailed of that next hop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ip_address.h"
#include "base/rng.h"
#include "base/time.h"
#include "base/token_bucket.h"
#include "net/classify.h"
#include "net/counters.h"
#include "net/event.h"
#include "net/ndp.h"
#include "net/neighbour_cache.h"
#include "net/output.h"
#include "net/own_addresses.h"
#include "net/route_table.h"

namespace urnic::net {

// Duplicate address detection: constants of RFC 5227 1.1 and RFC 4862 5.1. quick() is for links
// where all hosts answer within milliseconds (the RFCs leave that to the link).
struct DadTiming {
  Duration probe_wait = Duration::s(1);  // maximum random delay before the first probe
  unsigned probes = 3;                   // ARP probes; neighbour discovery sends one
  Duration probe_min = Duration::s(1);
  Duration probe_max = Duration::s(2);
  Duration announce_wait = Duration::s(2);  // after the last ARP probe
  Duration retransmit = Duration::s(1);     // after the solicitation (RetransTimer)

  static constexpr DadTiming quick() {
    return {Duration::ms(10), 3, Duration::ms(20), Duration::ms(40), Duration::ms(50),
            Duration::ms(100)};
  }
};

struct InterfaceConfig {
  // All zero: derived from the first address (mac_from_ip).
  MacAddress mac;
  // Own addresses with the length of the on-link prefix, e.g. 10.0.0.1/24.
  std::vector<IpPrefix> addresses;
  // Also use fe80::/64 with the interface identifier derived from the MAC.
  bool link_local = true;
  std::vector<Route> routes;
  std::uint16_t vlan = 0;    // 1..4094; 0: untagged
  std::uint32_t mtu = 1500;  // IP bytes per frame, 576..65535; IPv6 needs 1280
  bool duplicate_detection = false;
  DadTiming dad;
  NeighbourTiming neighbour;
  // bound: neighbours of an interface; limit: 4096; beyond: the least recently used is forgotten
  // and resolved again when needed; test: NeighbourTest.FullTableEvictsTheLeastRecentlyUsed
  std::size_t neighbour_limit = 4096;
  // bound: echo replies of an interface; limit: 100 in a second, 50 at once; beyond: no reply,
  // counted (`echo_rate_limited`); test: InterfaceIcmp.EchoRepliesAreRateLimited
  std::uint32_t icmp_per_second = 100, icmp_burst = 50;  // echo replies
  // For a link that ends in the kernel's sockets: all other hosts are reached through this station.
  // No address is resolved, and no own address is announced or defended.
  std::optional<MacAddress> only_neighbour;
  // bound: frames that an interface sends itself (ARP, ND, ICMP); limit: 64 KiB; beyond: the frame
  // is not made, counted (`output_full`); requests are repeated; test: InterfaceOutput.IsBounded,
  // FrameQueue.IsFifoAndBounded
  std::size_t output_bytes = 64 * 1024;  // frames waiting to be sent; at least two of MTU size
  std::uint64_t seed = 1;                // for random delays
};

// Empty if the configuration is valid, else one line with the error.
std::string check(const InterfaceConfig& c);

struct Resolution {
  enum class Kind : std::uint8_t {
    Mac,          // send to `mac`
    Pending,      // request sent; an event for `next_hop` will follow (while the link is up)
    Unreachable,  // no route, not a unicast destination, or the next hop does not answer
    Loopback,     // an own address: loop the frame back
  };
  Kind kind = Kind::Unreachable;
  MacAddress mac;
  IpAddress next_hop;
};

class Interface {
 public:
  // `config` must pass check(). The link is down until link_up. Addresses that need no duplicate
  // detection are usable at once.
  explicit Interface(InterfaceConfig config);
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;

  // ---- properties -----------------------------------------------------------------------------
  const MacAddress& mac() const { return output_.mac(); }
  std::uint32_t mtu() const { return config_.mtu; }
  std::uint16_t vlan() const { return config_.vlan; }
  const std::vector<OwnAddress>& addresses() const { return addresses_.all(); }
  const Counters& counters() const { return counters_; }
  Counters& counters() { return counters_; }
  const NeighbourCache& neighbours() const { return cache_; }
  // True for a usable own address.
  bool is_own(const IpAddress& a) const { return addresses_.usable(a); }
  // Replaces the addresses after they have changed in the kernel whose sockets the link ends in
  // (only_neighbour).
  void set_addresses(const std::vector<IpPrefix>& now) {
    addresses_.keep_only(now, AddressState::Usable);
  }

  // ---- receiving ------------------------------------------------------------------------------
  // True if the frame is for this host: MAC, VLAN and destination address are ours. For kind Tcp.
  bool accepts(const Classified& c) const {
    return c.dst_mac == mac() && c.vlan == config_.vlan && is_own(c.dst);
  }
  // True if another host can have this address. It must not be our own, a broadcast address of our
  // networks, or a loopback address (RFC 1122 3.2.1.3, RFC 4291 2.5.3), unless a socket of this
  // host received it from there.
  bool may_send(const IpAddress& a) const;
  // Handles any frame except kind Tcp. `frame` is the whole frame (contiguous, not changing during
  // the call). If only part of a frame is provided, messages that end after it are dropped. Never
  // fails.
  void input(const Classified& c, ByteView frame, Instant now);

  // ---- sending --------------------------------------------------------------------------------
  // True if there is a route to `dst`, regardless of whether any host answers.
  bool has_route(const IpAddress& dst) const;
  Resolution resolve(const IpAddress& dst, Instant now);
  // Selects the own address to send from (RFC 6724, reduced to the needs of one interface); nullopt
  // if there is no usable one of that IP version.
  std::optional<IpAddress> choose_source(const IpAddress& dst) const;
  // TCP reports forward progress (confirm) or a timeout (doubt) on a connection through `next_hop`.
  void confirm(const IpAddress& next_hop, Instant now);
  void doubt(const IpAddress& next_hop, Instant now);

  // The length of the next frame to send; 0 if there is none.
  std::size_t output_size() const { return output_.queue().front_size(); }
  // Moves the next frame to `dst` and returns its length; 0 if there is none or dst is too small.
  std::size_t next_output(MutBytes dst) { return output_.queue().pop(dst); }

  // ---- time and link --------------------------------------------------------------------------
  Instant next_deadline() const;
  // Handles everything due up to `now`, in deadline order.
  void run_timers(Instant now);
  // The link (or, with memif, another peer) came up: announces own addresses, or probes for them
  // first.
  void link_up(Instant now);
  void link_down();
  bool is_up() const { return output_.is_up(); }

  // ---- events ---------------------------------------------------------------------------------
  bool has_events() const { return !events_.empty(); }
  // Moves all events, oldest first, into `out` (its old contents are dropped).
  void take_events(std::vector<Event>& out) { events_.take(out); }

 private:
  // Defined in interface.cpp.
  void drain_cache();
  void run_address(OwnAddress& own);
  void conflict(OwnAddress& own, const MacAddress& with, Instant now);
  void duplicate(OwnAddress& own, const MacAddress& with);

  // Defined in interface_arp.cpp.
  void input_arp(const Classified& c, ByteView frame, Instant now);

  // Defined in interface_icmp.cpp.
  void input_icmp(const Classified& c, ByteView frame, Instant now);
  void input_icmp6(const Classified& c, ByteView frame, Instant now);
  void input_error(const Classified& c, ByteView message);
  void reply_echo(const Classified& c, ByteView message, Instant now);

  // Defined in interface_nd.cpp.
  void input_nd(const Classified& c, ByteView message, Instant now);
  void input_solicitation(const Classified& c, const NdMessage& m, Instant now);
  void input_advertisement(const Classified& c, const NdMessage& m, Instant now);
  void input_mld_query(const Classified& c, ByteView message, Instant now);

  InterfaceConfig config_;
  Counters counters_;
  OwnAddresses addresses_;
  RouteTable routes_;
  NeighbourCache cache_;
  Output output_;
  TokenBucket icmp_limit_;
  Rng rng_;
  EventList events_;
  Instant mld_due_ = Instant::never();  // time of the next listener report
  unsigned mld_left_ = 0;
};

}  // namespace urnic::net
