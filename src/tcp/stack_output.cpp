// Sends segments as datagrams, runs timers, and reports changes at the end of each entry.
#include <algorithm>
#include <limits>

#include "base/inet_checksum.h"
#include "tcp/stack.h"

namespace urnic::tcp {
// ---- segments
// ---------------------------------------------------------------------------------------

void StackCore::pump(Socket& s, Instant now) {
  for (;;) {
    const SendPlan plan = plan_send(s.tcb, {StreamOffset(s.tx.end()), s.more}, now);
    if (plan.kind == Send::None) return;
    emit(s, plan, now);
  }
}

void StackCore::emit(Socket& s, const SendPlan& plan, Instant now) {
  if (plan.kind == Send::None) return;
  const std::size_t ip = ip_header(s.remote.ip);
  const std::uint32_t len = plan.limit;
  DatagramQueue::Bytes bytes = out_.make(ip + plan.header + len);
  std::uint8_t* const tcp_at = bytes.data() + ip;
  std::uint32_t sum = 0;
  bool psh = false;
  if (len != 0) {
    const MutBytes payload(tcp_at + plan.header, len);
    s.tx.copy(plan.begin.value(), payload);
    sum = inet_sum(payload);
    const std::uint64_t end = plan.begin.value() + len;
    psh = end == s.tx.end() && !s.more;
    if (s.options.psh_rule == PshRule::EndOfWrite) {
      psh = false;
      while (!s.write_ends.empty() && s.write_ends.front() <= end) {
        psh |= s.write_ends.front() > plan.begin.value();
        s.write_ends.pop_front();
      }
    }
  }
  std::uint8_t ect = 0;
  write_header(s.tcb, plan, len, psh, s.local.port, s.remote.port,
               pseudo_sum(s.local.ip, s.remote.ip), sum, now, tcp_at, &ect);
  if (plan.kind == Send::Retransmit) {
    ++s.retransmissions;
    ++counters_.retransmissions;
  }
  if (plan.kind == Send::Rst) ++counters_.resets_sent;
  sent(s.tcb, plan, len, psh, now);
  out_.send(s.local.ip, s.remote.ip, static_cast<std::uint8_t>((s.options.tos & 0xfc) | ect),
            s.ip_id++, std::move(bytes), now);
}

void StackCore::emit_reset(const net::Classified& c, const Segment& reset, Instant now) {
  if (out_.reply(c, reset, now)) ++counters_.resets_sent;
}

bool Stack::next_output(Datagram* out) {
  return out_.next(out);
}

// ---- timers
// -----------------------------------------------------------------------------------------

namespace {
// bound: entries in the list of timers of a TCP stack; limit: 1024 and twice the endpoints; beyond:
// entries of closed endpoints are removed; test: StackTest.TimersOfClosedEndpointsAreRemoved
constexpr std::size_t kSpareTimers = 1024;  // fewer entries are not worth a search

Instant socket_deadline(const Socket& s) {
  return earlier(tcp::next_deadline(s.tcb), s.orphan_deadline);
}
}  // namespace

void StackCore::arm(Socket& s) {
  const Instant at = socket_deadline(s);
  if (at >= s.timer_at) return;  // the list holds an entry for an earlier time
  s.timer_at = at;
  timers_.push({at, s.slot, s.generation});
  if (timers_.size() > kSpareTimers + 2 * sockets_.size()) [[unlikely]]
    prune_timers();
}

// Each live endpoint needs one entry. Pruning when there are twice as many bounds its cost per
// entry. Without it, endpoints that open and close faster than their deadlines pass would leave any
// number of entries.
void StackCore::prune_timers() {
  timers_.prune([&](const SocketTimers::Entry& e) {
    const Socket* s = sockets_.at(e.slot, e.generation);
    return s != nullptr && !s->dead && s->timer_at == e.at;
  });
}

// Runs the timers that are due before `until` (or at it, if `including`), in order. Stale entries
// are corrected on the way, so the top of the heap is right afterwards.
void StackCore::run_timers(Instant until, bool including) {
  if (including || until > Instant::from_ns(std::numeric_limits<std::int64_t>::min())) {
    time_wait_.run(including ? until : until - Duration::ns(1));
  }
  while (!timers_.empty()) {
    const SocketTimers::Entry top = timers_.front();
    Socket* s = sockets_.at(top.slot, top.generation);
    const bool current = s != nullptr && !s->dead && s->timer_at == top.at;
    const Instant due = current ? socket_deadline(*s) : top.at;
    if (current && due <= top.at && !(top.at < until || (including && top.at == until))) return;
    timers_.pop();
    if (!current) continue;
    s->timer_at = Instant::never();
    if (due > top.at) {  // the deadline was moved later
      arm(*s);
      continue;
    }
    if (s->orphan_deadline <= top.at) {
      enter_closed(s->tcb, CloseReason::None);
    } else {
      on_deadline(s->tcb, top.at);
    }
    pump(*s, top.at);
    end_or_arm(*s, top.at);
  }
}

Instant Stack::next_deadline() const {
  const Instant next = timers_.empty() ? Instant::never() : timers_.front().at;
  return earlier(next, time_wait_.next_deadline());
}

void Stack::run(Instant at) {
  const Entry entry(*this, at);
  run_timers(entry.now(), true);
}

// ---- reports
// ----------------------------------------------------------------------------------------

void StackCore::note(Socket& s, std::uint32_t changes) {
  if (on_change_ == nullptr) return;
  s.changes |= changes;
  if (s.reported) return;
  s.reported = true;
  changed_.push_back(static_cast<std::uint64_t>(SocketTable::handle(s)));
}

void StackCore::deliver() {
  if (depth_ != 0 || delivering_) return;
  delivering_ = true;
  for (;;) {
    if (out_.deliver()) continue;
    if (changed_.empty()) break;
    const std::uint64_t e = changed_.front();
    changed_.pop_front();
    Socket* s = sockets_.of(static_cast<Endpoint>(e));
    if (s == nullptr) continue;  // freed since
    const std::uint32_t changes = std::exchange(s->changes, 0);
    s->reported = false;
    // Before accept() the program does not know the endpoint. The caller of accept() reads
    // readiness().
    if (!s->has_handle || on_change_ == nullptr || changes == 0) continue;
    on_change_(change_context_, static_cast<Endpoint>(e), changes);
  }
  delivering_ = false;
}

}  // namespace urnic::tcp
