// What TCP must know of the network below it.
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
    NeighbourUsable,     // `address` (a next hop) is at `mac`: new, or moved
    NeighbourFailed,     // `address` does not answer
    NeighbourForgotten,  // resolve again before the next use of `address`
    Recheck,             // events were lost or the link came up: resolve every next hop again
    Icmp,                // see `icmp`: TCP judges (E-18)
    AddressUsable,       // own `address` passed duplicate detection
    AddressDuplicate,    // own `address` is taken by `mac`: not used until the next link-up
    AddressConflict,     // `mac` claims our usable `address`; we defended it
  };
  Kind kind = Kind::Recheck;
  IpAddress address;
  MacAddress mac;
  IcmpError icmp;
};

// Those not yet taken; bounded.
class EventList {
 public:
  // Counts in `*lost` what finds no room.
  explicit EventList(std::uint64_t* lost) : lost_(lost) { events_.reserve(kFirst); }

  void add(Event e) {
    if (has_room()) {
      events_.push_back(std::move(e));
      return;
    }
    // Nothing that TCP waits for may be lost in silence: the last one says "look at everything".
    ++*lost_;
    if (events_.back().kind != Event::Kind::Recheck) {
      Event recheck;
      recheck.kind = Event::Kind::Recheck;
      events_.push_back(recheck);
    }
  }
  bool empty() const { return events_.empty(); }
  // Moves all of them, oldest first, into `out` (its old contents are dropped).
  void take(std::vector<Event>& out) {
    out.clear();
    out.swap(events_);
  }

 private:
  // False as well when there is no memory for it.
  bool has_room() {
    const std::size_t n = events_.size();
    if (n < events_.capacity() && n < kMost) return true;
    if (n >= kMost) return false;
    try {
      events_.reserve(2 * n + kFirst);
      return true;
    } catch (const std::bad_alloc&) {
      return n == 0;  // a list that nobody has taken from yet: whoever adds learns of it
    }
  }

  // bound: unfetched events of an interface; limit: 1024 (`kMost`); beyond: the last one becomes
  // "check everything", counted (`events_lost`); test: InterfaceIcmp.AFloodOfErrorsEndsInOneRecheck
  static constexpr std::size_t kFirst = 32, kMost = 1024;
  std::uint64_t* lost_;
  std::vector<Event> events_;
};

}  // namespace urnic::net
