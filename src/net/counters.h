// Counters of the network layer as plain numbers (D10). One struct per engine; all monotonic.
#pragma once

#include <array>
#include <cstdint>

#include "net/drop_reason.h"

namespace urnic::net {

// Packets of one protocol: received, sent, malformed.
struct PacketCounters {
  std::uint64_t rx = 0, tx = 0, bad = 0;
};

struct IcmpCounters {
  std::uint64_t rx = 0, bad = 0;
  std::uint64_t echo_requests = 0, echo_replies = 0, echo_rate_limited = 0;
  // Errors about our own TCP segments that became events; errors that quoted something else.
  std::uint64_t errors = 0, errors_unusable = 0;
};

struct NeighbourCounters {
  std::uint64_t resolved = 0, failed = 0, evicted = 0;
  std::uint64_t changed = 0;              // an existing entry got a different MAC (RFC 826 update)
  std::uint64_t unsolicited_ignored = 0;  // ARP or NA that would have created an entry
};

struct Counters {
  // Frames rejected by classify() or accepts(), by reason.
  std::array<std::uint64_t, kDropReasons> dropped{};
  PacketCounters arp, nd;
  IcmpCounters icmp;
  NeighbourCounters neighbours;
  std::uint64_t router_advertisements_ignored = 0, redirects_ignored = 0, multicast_ignored = 0;
  std::uint64_t address_conflicts = 0, address_defences = 0;
  std::uint64_t other_ignored = 0;  // unicast to us, of a protocol that urnic does not support
  std::uint64_t output_full = 0;    // a frame of ours did not fit into the output queue
  std::uint64_t events_lost = 0;    // events replaced by one Event::Kind::Recheck

  void drop(DropReason r) { ++dropped[static_cast<std::size_t>(r)]; }
  std::uint64_t dropped_by(DropReason r) const { return dropped[static_cast<std::size_t>(r)]; }
};

}  // namespace urnic::net
