// The expected results of a batch of calls, once the wire is quiet: how each connection of the
// model continues. Checks that the stacks agree.
#pragma once

#include <algorithm>
#include <string>

#include "tests/tcp/stack_model.h"

namespace urnic::tcp::test {

class Expected {
 public:
  World world;
  std::vector<std::unique_ptr<Conn>> conns;
  std::vector<Listener> listeners;
  std::vector<Fresh> fresh;
  std::vector<std::pair<int, Endpoint>> stale;  // handles released
  std::uint64_t connects[2] = {0, 0}, accepts[2] = {0, 0}, resets[2] = {0, 0};
  unsigned batch = 1;
  Instant batch_begin;
  bool unsure = false;  // not every opened connection was counted

  explicit Expected(std::uint64_t seed) : world(seed) {}

  Stack& stack(int side) { return *world.side[side].stack; }

  void begin_batch() {
    ++batch;
    batch_begin = world.now;
    first_stale_ = stale.size();
    for (Side& s : world.side) s.told.clear();
    for (Listener& l : listeners) l.came = 0;
    for (const auto& c : conns) {
      c->dirty = c->frozen = false;
      for (Half& h : c->end) {
        h.opened = h.failed = h.fin_now = h.arrived = h.accepted_late = h.reset_sent = false;
      }
    }
  }

  // The cable carries: applies everything that can happen at once.
  void resolve() {
    for (std::size_t n = 0; n < conns.size(); ++n) {
      Conn& c = *conns[n];
      const Half& a = c.end[c.active];
      if (a.life == Life::Opening) open(c);
      for (int i = 0; i < 2; ++i) {
        if (std::exchange(c.end[i].reset_sent, false)) take_reset(c, 1 - i);
      }
      for (int from = 0; from < 2; ++from) carry(c, from);
      for (int i = 0; i < 2; ++i) finish_streams(c, i);
    }
    for (const auto& c : conns) {
      for (int i = 0; i < 2; ++i) look_ahead(*c, i);
    }
    forget_ended();
  }

  // The cable is cut: each end is alone with its timers.
  Span resolve_alone() {
    Span last;
    for (const auto& c : conns) {
      for (int i = 0; i < 2; ++i) {
        Half& h = c->end[i];
        h.reset_sent = h.ends_badly = false;
        h.gone = {};
        h.ends = h.lingers;
        if (h.life == Life::Opening) {
          const Instant at = batch_begin + syn_patience(h.values);
          h.ends = {at, at};
          h.ends_badly = true;
        } else if (h.life == Life::Open) {
          if (h.fin_done && h.orphan() && !h.lingers.set()) {
            h.lingers = Span{batch_begin, batch_begin}.after(time_of(h.values, Option::FinWait2));
            h.ends = h.lingers;
          }
          Span stalled = h.stall;
          const bool busy = h.written > c->end[1 - i].got || h.wants_fin();
          if (!busy) stalled = {};
          // Data held back by "more" may have waited before.
          if (busy && !stalled.set()) stalled = {batch_begin, batch_begin + Duration::ms(201)};
          const Span p = patience(h, stalled, came(*c, i), batch_begin);
          if (p.from < h.ends.from) h.ends_badly = true;
          h.ends.or_sooner(p);
        }
        if (h.alive() && h.ends.set() && (!last.set() || h.ends.to > last.to)) last = h.ends;
      }
    }
    return last;
  }

  // Ends the connections whose time has run out.
  void expire() {
    for (const auto& c : conns) {
      for (int i = 0; i < 2; ++i) {
        Half& h = c->end[i];
        if (!h.alive() || !h.ends.set() || h.ends.to > world.now) continue;
        if (world.up && h.life == Life::Open && c->end[1 - i].held &&
            c->end[1 - i].life == Life::Open) {
          take_bytes(*c, i);  // until then a probe has delivered a byte from time to time
        }
        h.life = Life::Over;
        if (h.ends_badly && h.held) {
          // An ICMP error after the last received datagram gives the reason.
          const bool soft = h.soft_at > came(*c, i);
          h.error = h.gone.set() ? Status::Reset : soft ? Status::Unreachable : Status::TimedOut;
          h.failed = true;
          check_time(*c, i);
        }
        if (h.ends_badly && h.gone.set()) ++resets[i];
        h.queued = false;
        h.ends = h.lingers = h.gone = h.stall = {};
      }
    }
    forget_ended();
  }

  // Returns when everything will be over that could end during the next calls.
  Instant soon(Duration margin) const {
    Instant until = Instant::from_ns(0);
    for (const auto& c : conns) {
      for (const Half& h : c->end) {
        if (h.alive() && h.ends.set() && h.ends.from <= world.now + margin) {
          until = std::max(until, h.ends.to + Duration::ms(1));
        }
      }
    }
    return until;
  }

  Listener* listener_at(int side, const SocketAddress& at) {
    for (Listener& l : listeners) {
      if (l.side == side && l.at.port == at.port && l.at.ip.is_v6() == at.ip.is_v6() &&
          (l.at.ip.is_any() || at.ip.is_any() || l.at.ip == at.ip)) {
        return &l;
      }
    }
    return nullptr;
  }
  unsigned queued_at(Endpoint listener, int side) const {
    unsigned n = 0;
    for (const auto& c : conns) {
      if (c->end[side].queued && c->listener == listener && c->active != side) ++n;
    }
    return n;
  }
  // The peer's rest of an earlier connection between the same endpoints goes away.
  void displace(const Conn& by) {
    const int p = 1 - by.active;
    for (const auto& o : conns) {
      if (o.get() == &by || o->at[0] != by.at[0] || o->at[1] != by.at[1]) continue;
      if (o->end[p].life == Life::Open) take_reset(*o, p);
      if (o->end[p].life == Life::TimeWait) end(o->end[p]);
    }
  }
  void begin_keepalive(Half& h) const {
    h.keep_from = batch_begin;
    h.keep_to = world.now;
  }
  void fail(Half& h, Status why) {
    h.life = Life::Over;
    h.queued = false;
    h.ends = h.lingers = h.gone = h.stall = {};
    if (!h.held) return;
    h.error = why;
    h.failed = true;
  }
  Instant came(const Conn& c, int i) { return world.side[i].seen[{c.at[i], c.at[1 - i]}].came; }
  bool is_first_stale(int side, Endpoint e) const {
    for (std::size_t n = first_stale_; n < stale.size(); ++n) {
      if (stale[n] == std::pair(side, e)) return true;
    }
    return false;
  }

 private:
  // A SYN arrives: an old connection between the same endpoints ends, and a listener accepts the
  // new one, or none does.
  void open(Conn& c) {
    const int p = 1 - c.active;
    Half& a = c.end[c.active];
    Half& b = c.end[p];
    displace(c);
    Listener* l = listener_at(p, c.at[p]);
    if (l == nullptr) {
      ++resets[c.active];
      fail(a, Status::Refused);
      return;
    }
    a.life = b.life = Life::Open;
    a.opened = true;
    begin_keepalive(a);
    begin_keepalive(b);
    b.queued = true;
    b.values = l->values;
    c.listener = l->e;
    ++l->came;
    ++accepts[p];
  }
  void take_reset(Conn& c, int i) {
    Half& h = c.end[i];
    if (h.life != Life::Open) return;
    ++resets[i];
    if (h.held && !h.read_closed) {
      // Some of the data in flight when the other end gave up may have arrived.
      const std::uint64_t before = h.got;
      h.got = h.read + stack(i).readiness(h.e).readable;
      agree(h.got >= before && h.got <= c.end[1 - i].written,
            "bytes of a connection that is reset");
      h.arrived |= h.got != before;
    }
    fail(h, Status::Reset);
  }
  static void end(Half& h) {
    h.life = Life::Over;
    h.ends = h.lingers = h.gone = h.stall = {};
  }

  // Carries bytes and the FIN from one end to the other.
  void carry(Conn& c, int from) {
    Half& s = c.end[from];
    Half& r = c.end[1 - from];
    if (s.life != Life::Open) return;
    if (r.life == Life::Over) {
      if (c.waiting(from) != 0 || s.wants_fin()) take_reset(c, from);
      // A window update or keepalive probe is answered by a reset.
      const bool asks = s.may_be_reset || of(s.values, Option::Keepalive) != 0;
      if (asks && s.held && stack(from).readiness(s.e).error) take_reset(c, from);
      s.may_be_reset = false;
      return;
    }
    if (r.life != Life::Open) return;
    if (r.orphan() && c.waiting(from) != 0) {
      take_reset(c, from);
      end(r);
      return;
    }
    take_bytes(c, from);
    if (s.wants_fin() && c.waiting(from) == 0) {
      s.fin_done = r.fin_came = true;
      s.fin_batch = batch;
      r.fin_now = true;
    }
  }
  void take_bytes(Conn& c, int from) {
    Half& s = c.end[from];
    Half& r = c.end[1 - from];
    const std::uint64_t before = r.got;
    Duration probed = Duration::zero();
    if (r.read_closed || r.queued || c.waiting(from) == 0) {
      r.got = s.written;
      if (r.read_closed) r.read = r.got;
    } else {
      const auto v = stack(1 - from).snapshot(r.e, world.now);
      agree(v.has_value(), "a connection that is open is seen");
      r.got = v->delivered;
      agree(r.got >= before && r.got <= s.written, "bytes delivered");
      if (r.got < s.written) {
        const auto room = static_cast<std::int64_t>(v->receive_buffer) -
                          static_cast<std::int64_t>(r.got - r.read);
        const std::int64_t least =
            std::min<std::int64_t>(v->receive_buffer / 2, v->advertised_mss) +
            (std::int64_t{4} << v->receive_shift);
        // Probes fill, byte by byte, the room that a scaled window cannot express.
        probed = time_of(s.values, Option::RtoMax) * std::max<std::int64_t>(0, room);
        agree(room <= least, "bytes wait although there is room: " + std::to_string(room));
      }
    }
    const bool progress = r.got != before;
    r.arrived |= progress;
    if (c.waiting(from) == 0) {
      s.stall = {};
    } else if (progress || !s.stall.set()) {
      s.stall = {batch_begin, world.now + std::min(probed, Duration::s(10))};
    }
  }
  void finish_streams(Conn& c, int i) {
    Half& h = c.end[i];
    const Half& o = c.end[1 - i];
    if (h.life != Life::Open || !h.fin_done) return;
    if (!h.fin_came) {
      if (h.orphan() && !h.lingers.set()) {
        h.lingers = Span{batch_begin, world.now}.after(time_of(h.values, Option::FinWait2));
      }
      return;
    }
    h.lingers = h.stall = {};
    // The end whose FIN left first goes to TIME-WAIT; if the FINs crossed, both ends do.
    const bool crossed = h.fin_batch == o.fin_batch && h.shut_batch == o.shut_batch;
    if (crossed || h.fin_batch < o.fin_batch ||
        (h.fin_batch == o.fin_batch && h.shut_batch < o.shut_batch)) {
      h.life = Life::TimeWait;
      h.lingers = Span{batch_begin, world.now}.after(time_of(h.values, Option::TimeWait));
    } else {
      end(h);
    }
  }

  void look_ahead(Conn& c, int i) {
    Half& h = c.end[i];
    const Half& o = c.end[1 - i];
    h.ends = h.lingers;
    h.ends_badly = false;
    if (h.life != Life::Open) return;
    const Duration keepalive = time_of(h.values, Option::Keepalive);
    if (o.life != Life::Over || keepalive == Duration::zero()) {
      h.gone = {};
    } else if (!h.gone.set() || c.dirty) {
      h.gone = {came(c, i) + keepalive, world.now + keepalive + Duration::s(1)};
    }
    if (h.gone.set()) {
      if (h.gone.from < h.ends.from) h.ends_badly = true;
      h.ends.or_sooner(h.gone);
    }
    if (!h.stall.set()) return;
    Duration user = time_of(h.values, Option::UserTimeout);
    if (user == Duration::zero() && h.orphan()) user = time_of(h.values, Option::OrphanTimeout);
    if (user == Duration::zero()) return;
    // A timeout set in this batch may be over already.
    const Span over = h.stall.after(user);
    h.ends.or_sooner({std::max(over.from, batch_begin), std::max(over.to, batch_begin)});
    h.ends_badly = true;
  }

  // The program got the report of the end of its connection at the right time.
  void check_time(const Conn& c, int i) {
    const Half& h = c.end[i];
    for (const Told& t : world.side[i].told) {
      if (t.e != h.e || (t.what & kError) == 0) continue;
      const Duration slack = Duration::ms(20);
      agree(t.at + slack >= h.ends.from && t.at <= h.ends.to + slack,
            "connection " + std::to_string(c.id) + ", side " + std::to_string(i) +
                ": given up at " + std::to_string(t.at.ns() / 1000) + " us, and not between " +
                std::to_string(h.ends.from.ns() / 1000) + " and " +
                std::to_string(h.ends.to.ns() / 1000) + " user timeout " +
                std::to_string(of(h.values, Option::UserTimeout)) + " keep-alive " +
                std::to_string(of(h.values, Option::Keepalive)) + " retries " +
                std::to_string(of(h.values, Option::DataRetries)) + " stalled " +
                std::to_string(h.stall.from.ns() / 1000) + " to " +
                std::to_string(h.stall.to.ns() / 1000) + " came " +
                std::to_string(came(c, i).ns() / 1000) + " batch " +
                std::to_string(batch_begin.ns() / 1000));
      return;
    }
    agree(false, "connection " + std::to_string(c.id) + ", side " + std::to_string(i) +
                     ": nobody was told of its end by time");
  }

  void forget_ended() {
    std::erase_if(conns, [](const std::unique_ptr<Conn>& c) {
      return !c->end[0].alive() && !c->end[1].alive() && !c->end[0].held && !c->end[1].held;
    });
  }

  std::size_t first_stale_ = 0;
};

}  // namespace urnic::tcp::test
