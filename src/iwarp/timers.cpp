#include "iwarp/timers.h"

#include <algorithm>

#include "tcp/tcb.h"

namespace urnic::iwarp {
namespace {

// Long to an engine that spins, nothing to one that was woken.
// Longer than a burst takes; TCP has no shorter timers.
constexpr Duration kStall = Duration::ms(1);
// bound: entries in the list of timers; limit: 1024 and twice the connections; beyond: entries of
// ended connections are removed; test: ConnectionLife.TimersOfEndedConnectionsAreRemoved
constexpr std::size_t kKept = 1024;  // entries not worth looking through

Instant tcp_deadline(const Connection& c) {
  const Instant at = tcp::next_deadline(c.tcb);
  return at.is_never() ? at : std::max(at, c.tcp_not_before);
}

}  // namespace

void Timers::arm(Connection& c) {
  if (c.is_over()) return;
  Instant at = earlier(c.stage_deadline, c.send_gate_opens);
  at = earlier(at, c.awaits_listener() ? c.redial->at : tcp_deadline(c));
  if (at < c.timer_at) {
    heap_.push(at, c.id);
    c.timer_at = at;
  }
}

Connection* Timers::pop_due(const ConnectionTable& table, Instant now) {
  TimerHeap::Entry entry;
  while (heap_.pop_due(now, &entry)) {
    Connection* c = table.find(entry.id);
    if (c == nullptr || c->timer_at != entry.at) continue;
    c->timer_at = Instant::never();
    return c;
  }
  return nullptr;
}

// A burst is stamped with the time at which it began. A caller that lost its processor in the
// middle of it, or behind it, comes back when timers of segments are due that have hardly left: the
// peer cannot have answered.
bool Timers::stalled(const Connection& c, Instant now) const {
  return real_time_ && c.tcb.timers.last_sent == last_exit_ && now - last_exit_ > kStall;
}

bool Timers::tcp_is_due(Connection& c, Instant now) const {
  if (tcp_deadline(c) > now) return false;
  if (!stalled(c, now)) return true;
  c.tcp_not_before = now + std::max(c.tcb.rtt.srtt * 2, kStall);
  return false;
}

void Timers::prune(const ConnectionTable& table) {
  // An entry of each connection that lives is wanted; at twice as many the look at all of them has
  // been paid for.
  if (heap_.size() <= kKept + 2 * table.size()) return;
  heap_.prune([&](const TimerHeap::Entry& e) {
    const Connection* owner = table.find(e.id);
    return owner != nullptr && owner->timer_at == e.at;
  });
}

}  // namespace urnic::iwarp
