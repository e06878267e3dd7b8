// Events from the network layer to TCP.
#pragma once

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "base/ip_address.h"
#include "net/icmp.h"

namespace urnic::net {

struct Event {
  enum class Kind : std::uint8_t {
    NeighbourUsable,     // the MAC of `address` (a next hop) is `mac`: new or changed
    NeighbourFailed,     // `address` did not answer
    NeighbourForgotten,  // resolve `address` again before its next use
    Recheck,             // events were lost or the link came up: resolve all next hops again
    Icmp,                // see `icmp`: TCP decides (E-18)
    AddressUsable,       // own `address` passed duplicate detection
    AddressDuplicate,    // another host, `mac`, has our `address`: unused until the next link-up
    AddressConflict,     // `mac` claims our usable `address`; we have defended it
  };
  Kind kind = Kind::Recheck;
  IpAddress address;
  MacAddress mac;
  IcmpError icmp;
};

// The events not yet taken; bounded.
class EventList {
 public:
  // Counts in `*lost` the events for which there was no room.
  explicit EventList(std::uint64_t* lost) : lost_(lost) { events_.reserve(kFirst); }

  void add(Event e) {
    if (has_room()) {
      events_.push_back(std::move(e));
      return;
    }
    // TCP must not miss an event: if there is no room, the last event becomes "check everything".
    ++*lost_;
    if (events_.back().kind != Event::Kind::Recheck) {
      Event recheck;
      recheck.kind = Event::Kind::Recheck;
      events_.push_back(recheck);
    }
  }
  bool empty() const { return events_.empty(); }
  // Moves all events, oldest first, into `out` (its old contents are dropped).
  void take(std::vector<Event>& out) {
    out.clear();
    out.swap(events_);
  }

 private:
  // Also false if there is no memory.
  bool has_room() {
    const std::size_t n = events_.size();
    if (n < events_.capacity() && n < kMost) return true;
    if (n >= kMost) return false;
    try {
      events_.reserve(2 * n + kFirst);
      return true;
    } catch (const std::bad_alloc&) {
      return n == 0;  // an empty list: report bad_alloc to the caller
    }
  }

  // bound: unfetched events of an interface; limit: 1024 (`kMost`); beyond: the last one becomes
  // "check everything", counted (`events_lost`); test: InterfaceIcmp.AFloodOfErrorsEndsInOneRecheck
  static constexpr std::size_t kFirst = 32, kMost = 1024;
  std::uint64_t* lost_;
  std::vector<Event> events_;
};

}  // namespace urnic::net
