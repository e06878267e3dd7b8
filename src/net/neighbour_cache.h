// The MACs of on-link addresses: the state machine for ARP and neighbour discovery (RFC 4861, 7.3;
// ARP uses the same rules). It is bounded, driven by "now", and does no I/O: the owner takes its
// requests from a list.
//
// States: Incomplete (request sent, no answer yet), Reachable (confirmed within 30 s), Stale
// (known, unconfirmed), Delay (used while stale: the upper layer has 5 s to confirm), Probe
// (sending requests to the known MAC), Failed (no answer; kept for a second so that callers learn
// it). Reachable becomes Stale only when the entry is next read, so an idle cache needs no timer
// (E-39).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/ip_address.h"
#include "base/time.h"
#include "net/counters.h"

namespace urnic::net {

struct NeighbourTiming {
  Duration retransmit = Duration::s(1);   // between two requests
  unsigned retries = 3;                   // requests before giving up
  Duration reachable = Duration::s(30);   // REACHABLE_TIME
  Duration first_probe = Duration::s(5);  // DELAY_FIRST_PROBE_TIME
  Duration failed_hold = Duration::s(1);
};

enum class NeighbourState : std::uint8_t { Incomplete, Reachable, Stale, Delay, Probe, Failed };

struct NeighbourEvent {
  enum class Kind : std::uint8_t {
    Usable,     // resolved, or the MAC has changed
    Failed,     // no host answered
    Forgotten,  // evicted: resolve again before the next use
  };
  Kind kind = Kind::Usable;
  IpAddress address;
  MacAddress mac;  // for Usable only
};

class NeighbourCache {
 public:
  struct Lookup {
    enum class Kind : std::uint8_t { Mac, Pending, Unreachable };
    Kind kind = Kind::Pending;
    MacAddress mac;
  };
  // A request to send: to all hosts that may have `address`, or to the MAC that had it.
  struct Request {
    IpAddress address;
    std::optional<MacAddress> to;
  };
  struct Advertisement {
    std::optional<MacAddress> mac;  // absent: the sender confirms the known MAC
    bool solicited = false;
    bool override_entry = true;
  };
  enum class Learned : std::uint8_t { Ignored, Same, New, Changed };

  NeighbourCache(std::size_t limit, const NeighbourTiming& timing)
      : limit_(limit < 4 ? 4 : limit), timing_(timing) {}

  // For senders: starts resolution if needed, or probing if the entry is stale.
  Lookup lookup(const IpAddress& address, Instant now);
  // `address` itself sent us a request (ARP request, solicitation): creates or updates its entry.
  Learned learn(const IpAddress& address, const MacAddress& mac, Instant now);
  // A reply or announcement: never creates an entry (RFC 4861, 7.2.5; RFC 826 merge).
  Learned advertised(const IpAddress& address, const Advertisement& a, Instant now);
  // The upper layer saw forward progress through this neighbour (RFC 4861, 7.3.1).
  void confirm(const IpAddress& address, Instant now);
  // The upper layer saw a timeout: probe now instead of trusting the entry.
  void doubt(const IpAddress& address, Instant now);

  // Sets the link state; initially it is down. While it is down, nothing is requested and nothing
  // fails. When it comes up, all known MACs are forgotten (the other end may be a different host),
  // and pending addresses are requested again. The owner must tell its users to resolve again.
  void link_up(Instant now);
  void link_down();

  Instant next_deadline() const {
    return timers_.empty() ? Instant::never() : Instant::from_ns(timers_.begin()->first);
  }
  // Handles the earliest deadline if it is not after `now`; true when there was one.
  bool run_one(Instant now);

  std::vector<Request>& requests() { return requests_; }
  std::vector<NeighbourEvent>& events() { return events_; }

  std::size_t size() const { return index_.size(); }
  // The state at `now`; nullopt if unknown. Does not count as use.
  std::optional<NeighbourState> state(const IpAddress& address, Instant now) const;
  std::uint64_t evictions() const { return evictions_; }

 private:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = 0xffffffff;
  struct Entry {
    IpAddress address;
    MacAddress mac;
    NeighbourState state = NeighbourState::Incomplete;
    unsigned asked = 0;  // requests sent in the current Incomplete or Probe state
    Instant until;       // end of Reachable, or of the hold time of Failed
    Instant due;         // timer, when armed
    bool armed = false;
    bool known = false;  // selects the list that contains the entry: `mac` is usable
    Slot prev = kNone, next = kNone;
  };
  // Least recently used entries first.
  struct List {
    Slot head = kNone, tail = kNone;
    std::size_t size = 0;
  };

  Entry* find(const IpAddress& address);
  Slot slot_of(const Entry& e) const { return static_cast<Slot>(&e - entries_.data()); }
  Entry& create(const IpAddress& address);
  void make_room();
  void erase(Slot s);
  void link(Entry& e);
  void unlink(Entry& e);
  void touch(Entry& e);
  void arm(Entry& e, Instant at);
  void disarm(Entry& e);
  void settle(Entry& e, Instant now);  // Reachable becomes Stale by age
  void ask(Entry& e, Instant now);
  void start_incomplete(Entry& e, Instant now);
  void become(Entry& e, NeighbourState s, Instant now);
  void give_up(Entry& e, Instant now);
  Learned set_mac(Entry& e, const MacAddress& mac, NeighbourState s, Instant now);

  std::size_t limit_;
  NeighbourTiming timing_;
  bool up_ = false;
  std::vector<Entry> entries_;
  std::vector<Slot> free_;
  // Sorted, not hashed: a flood cannot slow it down, and its order is the same in every run.
  std::map<IpAddress, Slot> index_;
  std::set<std::pair<std::int64_t, Slot>> timers_;
  List known_, unknown_;
  std::vector<Request> requests_;
  std::vector<NeighbourEvent> events_;
  std::uint64_t evictions_ = 0;
};

inline void count(NeighbourCounters* n, NeighbourCache::Learned what) {
  if (what == NeighbourCache::Learned::New) ++n->resolved;
  if (what == NeighbourCache::Learned::Changed) ++n->changed;
  if (what == NeighbourCache::Learned::Ignored) ++n->unsolicited_ignored;
}

}  // namespace urnic::net
