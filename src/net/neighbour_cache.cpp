#include "net/neighbour_cache.h"

namespace urnic::net {

using State = NeighbourState;

NeighbourCache::Entry* NeighbourCache::find(const IpAddress& address) {
  const auto it = index_.find(address);
  return it == index_.end() ? nullptr : &entries_[it->second];
}

void NeighbourCache::link(Entry& e) {
  List& list = e.known ? known_ : unknown_;
  const Slot s = slot_of(e);
  e.prev = list.tail;
  e.next = kNone;
  (list.tail == kNone ? list.head : entries_[list.tail].next) = s;
  list.tail = s;
  ++list.size;
}

void NeighbourCache::unlink(Entry& e) {
  List& list = e.known ? known_ : unknown_;
  (e.prev == kNone ? list.head : entries_[e.prev].next) = e.next;
  (e.next == kNone ? list.tail : entries_[e.next].prev) = e.prev;
  --list.size;
}

void NeighbourCache::touch(Entry& e) {
  unlink(e);
  link(e);
}

void NeighbourCache::arm(Entry& e, Instant at) {
  disarm(e);
  if (!up_) return;
  timers_.emplace(at.ns(), slot_of(e));  // must come first: it may throw
  e.due = at;
  e.armed = true;
}

void NeighbourCache::disarm(Entry& e) {
  if (!e.armed) return;
  timers_.erase({e.due.ns(), slot_of(e)});
  e.armed = false;
}

NeighbourCache::Entry& NeighbourCache::create(const IpAddress& address) {
  if (index_.size() >= limit_) make_room();
  Slot s;
  if (free_.empty()) {
    s = static_cast<Slot>(entries_.size());
    if (free_.capacity() <= entries_.size()) free_.reserve(2 * entries_.size() + 8);
    entries_.emplace_back();
    free_.push_back(s);
  }
  s = free_.back();
  index_.emplace(address, s);  // the last operation that may throw
  free_.pop_back();
  entries_[s] = Entry{};
  Entry& e = entries_[s];
  e.address = address;
  link(e);
  return e;
}

// A scan of the link (packets from, or to, addresses that do not exist) fills the table with
// entries that never resolve. Such entries replace each other before they replace a neighbour that
// works.
void NeighbourCache::make_room() {
  const bool unknown = unknown_.size > limit_ / 4 || known_.size == 0;
  const Slot victim = unknown ? unknown_.head : known_.head;
  Entry& e = entries_[victim];
  ++evictions_;
  const bool failed = e.state == State::Incomplete;
  events_.push_back(
      {failed ? NeighbourEvent::Kind::Failed : NeighbourEvent::Kind::Forgotten, e.address, {}});
  erase(victim);
}

void NeighbourCache::erase(Slot s) {
  Entry& e = entries_[s];
  disarm(e);
  unlink(e);
  index_.erase(e.address);
  free_.push_back(s);
}

void NeighbourCache::settle(Entry& e, Instant now) {
  if (e.state == State::Reachable && now >= e.until) e.state = State::Stale;
}

void NeighbourCache::ask(Entry& e, Instant now) {
  if (!up_) return;
  ++e.asked;
  std::optional<MacAddress> to;
  if (e.state == State::Probe) to = e.mac;
  arm(e, now + timing_.retransmit);  // first: if the request cannot be stored, the timer repeats it
  requests_.push_back({e.address, to});
}

void NeighbourCache::start_incomplete(Entry& e, Instant now) {
  e.state = State::Incomplete;
  e.asked = 0;
  ask(e, now);
}

void NeighbourCache::become(Entry& e, State s, Instant now) {
  disarm(e);
  e.state = s;
  e.asked = 0;
  if (s == State::Reachable) e.until = now + timing_.reachable;
  if (s == State::Delay) arm(e, now + timing_.first_probe);
  if (s == State::Probe) ask(e, now);
}

void NeighbourCache::give_up(Entry& e, Instant now) {
  disarm(e);
  unlink(e);
  e.known = false;
  link(e);
  e.state = State::Failed;
  e.until = now + timing_.failed_hold;
  events_.push_back({NeighbourEvent::Kind::Failed, e.address, {}});
}

NeighbourCache::Lookup NeighbourCache::lookup(const IpAddress& address, Instant now) {
  Entry* e = find(address);
  if (e == nullptr) {
    e = &create(address);
    start_incomplete(*e, now);
  } else if (e->state == State::Incomplete && !e->armed && up_) {
    start_incomplete(*e, now);  // there was no memory for the timer
  }
  settle(*e, now);
  touch(*e);
  switch (e->state) {
    case State::Failed:
      if (now < e->until) return {Lookup::Kind::Unreachable, {}};
      start_incomplete(*e, now);
      return {Lookup::Kind::Pending, {}};
    case State::Incomplete:
      return {Lookup::Kind::Pending, {}};
    case State::Stale:
      if (up_) become(*e, State::Delay, now);
      break;
    case State::Reachable:
    case State::Delay:
    case State::Probe:
      break;
  }
  return {Lookup::Kind::Mac, e->mac};
}

NeighbourCache::Learned NeighbourCache::set_mac(Entry& e, const MacAddress& mac, State s,
                                                Instant now) {
  const bool fresh = !e.known;
  const bool changed = !fresh && e.mac != mac;
  if (fresh) {
    unlink(e);
    e.known = true;
    link(e);
  }
  e.mac = mac;
  become(e, s, now);
  if (fresh || changed) events_.push_back({NeighbourEvent::Kind::Usable, e.address, mac});
  return fresh ? Learned::New : changed ? Learned::Changed : Learned::Same;
}

NeighbourCache::Learned NeighbourCache::learn(const IpAddress& address, const MacAddress& mac,
                                              Instant now) {
  Entry* e = find(address);
  if (e == nullptr) e = &create(address);
  // The same MAC again proves nothing new, so the entry keeps its state (RFC 4861, 7.2.3).
  if (e->known && e->mac == mac) return Learned::Same;
  return set_mac(*e, mac, State::Stale, now);
}

NeighbourCache::Learned NeighbourCache::advertised(const IpAddress& address, const Advertisement& a,
                                                   Instant now) {
  Entry* e = find(address);
  if (e == nullptr) return Learned::Ignored;
  settle(*e, now);
  if (!e->known) {
    if (!a.mac) return Learned::Ignored;
    return set_mac(*e, *a.mac, a.solicited ? State::Reachable : State::Stale, now);
  }
  const bool other = a.mac && *a.mac != e->mac;
  if (other && !a.override_entry) {
    if (e->state == State::Reachable) e->state = State::Stale;
    return Learned::Ignored;
  }
  if (a.solicited) return set_mac(*e, a.mac.value_or(e->mac), State::Reachable, now);
  if (other) return set_mac(*e, *a.mac, State::Stale, now);
  return Learned::Same;
}

void NeighbourCache::confirm(const IpAddress& address, Instant now) {
  Entry* e = find(address);
  if (e == nullptr || !e->known) return;
  become(*e, State::Reachable, now);
}

void NeighbourCache::doubt(const IpAddress& address, Instant now) {
  Entry* e = find(address);
  if (e == nullptr || !e->known || e->state == State::Probe || !up_) return;
  touch(*e);
  become(*e, State::Probe, now);
}

void NeighbourCache::link_up(Instant now) {
  up_ = true;
  for (auto it = index_.begin(); it != index_.end();) {
    const Slot s = (it++)->second;
    Entry& e = entries_[s];
    disarm(e);
    if (e.state == State::Incomplete) {
      start_incomplete(e, now);
    } else {
      erase(s);
    }
  }
}

void NeighbourCache::link_down() {
  for (auto& [address, s] : index_) {
    Entry& e = entries_[s];
    disarm(e);
    if (e.state == State::Delay || e.state == State::Probe) e.state = State::Stale;
  }
  up_ = false;
  requests_.clear();
}

bool NeighbourCache::run_one(Instant now) {
  if (timers_.empty() || timers_.begin()->first > now.ns()) return false;
  Entry& e = entries_[timers_.begin()->second];
  const Instant at = e.due;  // not `now`: late polling must not delay the schedule
  disarm(e);
  if (e.state == State::Delay) {
    become(e, State::Probe, at);
  } else if (e.asked < timing_.retries) {
    ask(e, at);
  } else {
    give_up(e, at);
  }
  return true;
}

std::optional<State> NeighbourCache::state(const IpAddress& address, Instant now) const {
  const auto it = index_.find(address);
  if (it == index_.end()) return std::nullopt;
  const Entry& e = entries_[it->second];
  return e.state == State::Reachable && now >= e.until ? State::Stale : e.state;
}

}  // namespace urnic::net
