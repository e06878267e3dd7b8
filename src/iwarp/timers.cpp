#include "iwarp/timers.h"

#include <algorithm>

#include "tcp/tcb.h"

namespace urnic::iwarp {
namespace {

// Longer than a burst takes. It is long for a polling engine, and short for one that was woken. TCP
// has no shorter timers.
constexpr Duration kStall = Duration::ms(1);
// bound: entries in the list of timers; limit: 1024 and twice the connections; beyond: entries of
// ended connections are removed; test: ConnectionLife.TimersOfEndedConnectionsAreRemoved
constexpr std::size_t kKept = 1024;  // fewer entries are not worth a search

Instant tcp_deadline(const Connection& c) {
  const Instant at = tcp::next_deadline(c.tcb);
  return at.is_never() ? at : std::max(at, c.tcp_not_before);
}

}  // namespace

void Timers::arm(Connection& c) {
  if (c.is_over()) return;
  Instant at = earlier(c.stage_deadline, c.send_gate_opens);
  at = earlier(at, c.awaits_listener() ? c.redial->at : tcp_deadline(c));
  if (c.link != nullptr && c.link->faults != nullptr) [[unlikely]]
    at = earlier(at, fault_deadline(*c.link, c.in_tx_queue));
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

// A burst is stamped with the time at which it began. If the caller lost its processor during or
// after it, it returns when timers of segments are due that have only just left, so the peer cannot
// have answered yet.
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
  // Each open connection needs one entry. Waiting until there are twice as many bounds the cost of
  // the search per entry.
  if (heap_.size() <= kKept + 2 * table.size()) return;
  heap_.prune([&](const TimerHeap::Entry& e) {
    const Connection* owner = table.find(e.id);
    return owner != nullptr && owner->timer_at == e.at;
  });
}

}  // namespace urnic::iwarp
