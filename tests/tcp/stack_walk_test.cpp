// A walk over two byte-stream stacks. Endpoints are opened, bound, connected, accepted, written,
// read and closed in every way, with options set, over a wire that is sometimes cut or bad, and the
// machines sometimes restart. The model predicts the result of each call, the state and reports of
// each endpoint, and what remains.
#include <gtest/gtest.h>

#include "tests/tcp/stack_calls.h"
#include "tests/tcp/stack_checks.h"

namespace urnic::tcp::test {
namespace {

class StackWalk : public StackCalls {
 public:
  explicit StackWalk(Dice& dice) : StackCalls(dice.number()), checks(x) {
    for (int i = 0; i < 2; ++i) {
      Side& s = x.world.side[i];
      for (unsigned n = 0; n < 3; ++n) s.config.addresses.push_back(own(i, n));
      s.config.seed = dice.number();
      s.config.ttl = static_cast<std::uint8_t>(61 + 16 * i);
      s.config.port_first = static_cast<std::uint16_t>(20000 + 1000 * i);
      s.config.port_last = static_cast<std::uint16_t>(20040 + 1000 * i);
      s.config.memory_limit = 300'000 + 100'000 * static_cast<unsigned>(i);
      s.delay = Duration::us(700 + 1200 * i);
      s.bursts = i == 1;
      start(dice, i);
    }
  }

  void step(Dice& dice) override {
    x.begin_batch();
    tell("--");
    enum { Quiet, Bad, Short, Long } wire = Quiet;
    switch (dice.below(16)) {
      case 0:
      case 1:
        wire = Bad;
        break;
      case 2:
        wire = Short;
        break;
      case 3:
        wire = Long;
        break;
      case 4:
        if (dice.one_in(2)) return restart(dice);
        break;
      case 5:
        return strange(dice);
      case 6:
        return crowd(dice);
      case 7:
        sweep(dice);
        break;
      default:
        break;
    }
    bad = wire == Bad;
    x.world.up = wire != Short && wire != Long;
    const char* const kNames[] = {
        "", "over a bad wire:", "the cable is out for a moment:", "the cable is out for long:"};
    if (wire != Quiet) tell(kNames[wire]);
    for (unsigned n = dice.one_in(2) ? 1 : dice.between(2, 6); n > 0; --n) call(dice);
    if (wire == Bad) be_bad(dice);
    if (wire == Short) x.world.pass(Duration::ms(dice.between(300, 1500)));
    if (wire == Long) wait_for_the_end();
    if (!x.world.up) {
      for (const auto& c : x.conns) c->crossed |= c->end[c->active].life == Life::Opening;
    }
    x.world.up = true;
    settle(wire == Quiet ? Duration::s(2) : Duration::s(7));
  }

  void finish() override {
    x.begin_batch();
    Dice dice(1);
    tell("everything is closed");
    while (!x.fresh.empty()) close_fresh(x.fresh.size() - 1);
    while (!x.listeners.empty()) close_listener(x.listeners.size() - 1);
    for (std::size_t n = 0; n < x.conns.size(); ++n) {
      for (int i = 0; i < 2; ++i) {
        if (x.conns[n]->end[i].held) give_back(*x.conns[n], i, n % 2 == 0);
      }
    }
    x.world.pass(Duration::s(200));
    for (int i = 0; i < 2; ++i) {
      Stack& s = x.stack(i);
      agree_on(s.sockets(), 0u, "sockets at the end");
      agree_on(s.connections(), 0u, "connections at the end");
      agree_on(s.timers(), 0u, "timers at the end");
      agree_on(s.granted(), 0u, "memory at the end");
      agree(s.next_deadline().is_never(), "nothing is waited for at the end");
    }
  }

 private:
  // ---- time
  void settle(Duration time) {
    x.world.pass(time);
    x.resolve();
    for (int tries = 0;; ++tries) {
      agree(tries < 1000, "it never becomes quiet");
      const Instant until = x.soon(Duration::s(10));
      if (until.ns() != 0) {
        accept_abandoned();
        if (until > x.world.now) x.world.pass(until - x.world.now);
        x.expire();
        x.world.pass(Duration::s(1));
        x.resolve();
      } else if (!x.world.quiet() || restless()) {
        x.world.pass(Duration::ms(20));
        x.resolve();
      } else {
        break;
      }
    }
    checks.everything(true);
    for (const auto& c : x.conns) {
      for (Half& h : c->end) {
        const int i = static_cast<int>(&h - c->end);
        h.full = h.full && h.held && x.stack(i).readiness(h.e).writable == 0;
      }
    }
  }
  // Accepts the connections whose other end will give up waiting. Later that could happen without a
  // program to see it.
  void accept_abandoned() {
    for (std::size_t n = 0; n < x.conns.size(); ++n) {
      const Conn& c = *x.conns[n];
      for (int i = 0; i < 2; ++i) {
        if (!c.end[i].queued || !c.end[1 - i].lingers.set()) continue;
        for (const Listener& l : x.listeners) {
          while (c.end[i].queued && l.side == i && l.e == c.listener && accept_at(l, true))
            continue;
        }
      }
    }
  }
  // True if a window probe has delivered a byte that is not acknowledged yet.
  bool restless() {
    for (const auto& c : x.conns) {
      for (int i = 0; i < 2; ++i) {
        const Half& h = c->end[i];
        if (!h.held || h.life != Life::Open || c->waiting(i) == 0) continue;
        if (x.stack(i).snapshot(h.e, x.world.now)->acked != c->end[1 - i].got) return true;
      }
    }
    return false;
  }
  void be_bad(Dice& dice) {
    World& w = x.world;
    w.loss = 0.02 * dice.below(8);
    w.duplicate = 0.02 * dice.below(5);
    w.reorder = 0.05 * dice.below(5);
    w.spoil = 0.02 * dice.below(3);
    w.pass(Duration::ms(dice.between(50, 1200)));
    w.loss = w.duplicate = w.reorder = w.spoil = 0;
    for (const auto& c : x.conns) c->crossed |= c->end[c->active].life == Life::Opening;
  }
  // Waits until every end that can notice the cut has noticed.
  void wait_for_the_end() {
    const Span last = x.resolve_alone();
    x.world.pass(Duration::s(2));
    if (last.set() && last.to > x.world.now) x.world.pass(last.to - x.world.now + Duration::ms(1));
    x.expire();
  }

  // ---- events other than calls of a program
  // One of the machines loses all state; the other gets no report.
  void restart(Dice& dice) {
    const int side = static_cast<int>(dice.below(2));
    for (const Listener& l : x.listeners) {
      while (l.side != side && accept_at(l)) continue;
    }
    tell("machine " + std::to_string(side) + " begins anew");
    for (const auto& c : x.conns) {
      Half& h = c->end[side];
      h.held = h.queued = false;
      h.life = Life::Over;
      h.ends = h.lingers = h.stall = h.gone = {};
      c->dirty = true;
    }
    std::erase_if(x.listeners, [&](const Listener& l) { return l.side == side; });
    std::erase_if(x.fresh, [&](const Fresh& f) { return f.side == side; });
    std::erase_if(x.stale, [&](const auto& s) { return s.first == side; });
    x.begin_batch();
    for (const auto& c : x.conns) c->dirty = true;
    x.world.side[side].config.seed = dice.number();
    start(dice, side);
    settle(Duration::s(3));
  }
  // Sends segments that no stack has sent.
  void strange(Dice& dice) {
    const int side = static_cast<int>(dice.below(2));
    Stack& s = x.stack(side);
    const StackCounters before = s.counters();
    Segment g;
    g.flags = kAck;
    if (dice.one_in(4)) {
      tell("a segment to nobody's address");
      x.world.forge(side, {own(1 - side, 0), 9}, {IpAddress::v4(10, 9, 9, 9), 80}, g);
      ++x.world.side[side].foreign;
    } else if (dice.one_in(3)) {
      tell("a segment to a port of nobody");
      x.world.forge(side, {own(1 - side, 0), 9}, {own(side, 0), 7}, g);
      agree_on(s.counters().no_connection, before.no_connection + 1, "segments of no connection");
      agree_on(s.counters().resets_sent, before.resets_sent + 1, "resets sent");
    } else if (auto* c = dice.any(x.conns); c != nullptr && (*c)->end[side].held) {
      strange_to(dice, **c, side);
    }
    settle(Duration::s(2));
  }
  void strange_to(Dice& dice, Conn& c, int side) {
    Half& h = c.end[side];
    if (!h.alive()) return;
    Stack& s = x.stack(side);
    const StackCounters before = s.counters();
    const Snapshot v = *s.snapshot(h.e, x.world.now);
    const bool exact = dice.one_in(2);
    Segment g;
    g.seq = Seq(v.rcv_nxt + (exact ? 0 : 1));
    g.ack = Seq(v.snd_nxt);
    g.flags = kRst | kAck;
    if (!exact && v.rcv_wnd < 2) return;
    // The other end's keepalive would find out at once, without a program to see it.
    const Half& o = c.end[1 - side];
    if (o.queued && of(o.values, Option::Keepalive) != 0) return;
    tell(std::string(exact ? "a" : "nearly a") + " reset out of nowhere to" + text(c, side));
    x.world.forge(side, c.at[1 - side], c.at[side], g);
    const StackCounters after = s.counters();
    c.dirty = true;
    if (exact) {
      ++x.resets[side];
      agree_on(after.resets_received, before.resets_received + 1, "resets received");
      if (h.life == Life::TimeWait) {
        h.life = Life::Over;
        h.ends = h.lingers = {};
      } else {
        x.fail(h, Status::Reset);
      }
      return;
    }
    agree_on(after.challenge_acks + after.challenge_acks_withheld,
             before.challenge_acks + before.challenge_acks_withheld + 1, "challenge ACKs");
    if (gone(c, side)) h.may_be_reset = true;
  }

  // Opens more connections at once than a listener has places for.
  void crowd(Dice& dice) {
    std::vector<Listener*> some;
    for (Listener& l : x.listeners) {
      if (x.queued_at(l.e, l.side) == 0) some.push_back(&l);
    }
    Listener** which = dice.any(some);
    if (which == nullptr) return settle(Duration::s(2));
    Listener& l = **which;
    if (dice.one_in(2)) {
      for (const Option o : {Option::SynBacklog, Option::SynCookies}) {
        set_this(dice, setting_of(o), l.side, l.e, l.values, true);
      }
    }
    const auto half = static_cast<unsigned>(of(l.values, Option::SynBacklog));
    const bool cookies = of(l.values, Option::SynCookies) != 0;
    const unsigned many = dice.between(2, std::min(l.backlog + half + 3, 4 * l.backlog + 1));
    const StackCounters before = x.stack(l.side).counters();
    SocketAddress to = l.at;
    if (to.ip.is_any()) to.ip = own(l.side, to.ip.is_v6() ? 2 : 0);
    const SocketAddress from{to.ip.is_v6() ? IpAddress::any_v6() : IpAddress::any_v4(), 0};
    tell("a crowd of " + std::to_string(many) + " for " + std::to_string(l.backlog) + " and " +
         std::to_string(half) + " places" + (cookies ? ", with cookies" : ""));
    std::vector<Conn*> all;
    for (unsigned n = 0; n < many; ++n) {
      if (Conn* c = connect_to(dice, 1 - l.side, from, to)) all.push_back(c);
    }
    // If an earlier connection is in the way, the SYN is sent twice.
    bool again = false;
    for (const Conn* c : all) again |= follows(*c);
    x.world.pass(Duration::ms(150));
    for (const Conn* c : all) x.displace(*c);
    if (again) return let_in(l, all);
    const auto n = static_cast<unsigned>(all.size());
    const unsigned states = std::min(n, half);
    const StackCounters after = x.stack(l.side).counters();
    const Backlog b = *x.stack(l.side).backlog(l.e);
    agree_on(after.cookies_sent - before.cookies_sent, cookies ? n - states : 0, "cookies sent");
    agree_on(b.waiting, std::min(l.backlog, cookies ? n : states), "waiting of the crowd");
    agree_on(b.half_open, states > l.backlog ? states - l.backlog : 0, "half open of the crowd");
    let_in(l, all);
  }
  // Connections that found no place try again, and get in as others are accepted.
  void let_in(Listener& l, const std::vector<Conn*>& all) {
    for (Conn* c : all) {
      c->listener = l.e;
      c->crossed = true;
    }
    std::size_t in = 0;
    for (int tries = 0; in < all.size(); ++tries) {
      agree(tries < 200, "of a crowd, not all come in");
      for (Conn* c : all) {
        Half& h = c->end[c->active];
        if (h.life == Life::Over) continue;
        if (h.life == Life::Opening && x.stack(c->active).readiness(h.e).connected) {
          open_now(*c, l);
          say_something(*c);
        }
      }
      SocketAddress peer;
      const Endpoint e = x.stack(l.side).accept(l.e, &peer, x.world.now);
      for (Conn* c : all) {
        if (e == Endpoint::None || c->at[c->active] != peer) continue;
        Half& h = c->end[l.side];
        agree(h.e == Endpoint::None, "one of the crowd is accepted twice");
        agree(c->end[c->active].life == Life::Open, "accepted before it is connected");
        h.e = e;
        h.held = true;
        h.got = x.stack(l.side).readiness(e).readable;
        ++in;
      }
      if (e == Endpoint::None) x.world.pass(Duration::ms(100));
    }
    settle(Duration::s(3));
  }
  void open_now(Conn& c, Listener& l) {
    for (Half& h : c.end) {
      h.life = Life::Open;
      x.begin_keepalive(h);
    }
    c.end[c.active].opened = true;
    c.end[l.side].values = l.values;
    ++l.came;
    ++x.accepts[l.side];
  }
  // If the answer to a cookie found no place, the connection can only try again with data.
  void say_something(Conn& c) {
    Half& h = c.end[c.active];
    std::vector<std::uint8_t> b(10);
    for (std::size_t k = 0; k < b.size(); ++k) b[k] = byte_of(c, c.active, k);
    agree_on(x.stack(c.active).write(h.e, b, x.world.now).bytes, b.size(), "bytes of the crowd");
    h.written = b.size();
  }

  // Ends many, at random places in the lists.
  void sweep(Dice& dice) {
    for (std::size_t n = 0; n < x.conns.size(); ++n) {
      const int i = static_cast<int>(dice.below(2));
      Conn& c = *x.conns[n];
      if (c.end[i].held && !c.frozen && may_end(c, i) && dice.one_in(2)) {
        give_back(c, i, dice.one_in(3));
      }
    }
  }

  // ---- one call
  void call(Dice& dice) {
    switch (dice.below(20)) {
      case 0:
        return listen(dice);
      case 1:
        if (!x.listeners.empty() && dice.one_in(2)) close_listener(dice.below(x.listeners.size()));
        return;
      case 2:
        if (!x.fresh.empty()) close_fresh(dice.below(x.fresh.size()));
        return;
      case 3:
        return use_stale(dice);
      case 4:
      case 5:
        return set_option(dice);
      case 6:
      case 7:
      case 8:
        return connect(dice);
      case 9:
      case 10:
        return accept(dice);
      default:
        return on_connection(dice);
    }
  }

  void on_connection(Dice& dice) {
    std::vector<std::pair<Conn*, int>> all;
    for (const auto& c : x.conns) {
      for (int i = 0; i < 2; ++i) {
        if (c->end[i].held && !c->frozen) all.emplace_back(c.get(), i);
      }
    }
    const auto* which = dice.any(all);
    if (which == nullptr) return;
    Conn& c = *which->first;
    const int i = which->second;
    switch (dice.below(16)) {
      case 0:
        return shut_write(c, i);
      case 1:
        return shut_read(c, i);
      case 2:
        if (may_end(c, i)) give_back(c, i, false);
        return;
      case 3:
        if (may_end(c, i)) give_back(c, i, true);
        return;
      case 4:
        return take_error(c, i);
      case 5:
        return unreachable(dice, c, i);
      case 6:
      case 7:
      case 8:
      case 9:
        return read(dice, c, i);
      default:
        return write(dice, c, i);
    }
  }

  Checks checks;
};

TEST(StackWalk, TwoStacksAgreeWithTheModel) {
  urnic::test::WalkPlan plan;
  plan.episodes = 1500;
  plan.steps = 60;
  plan.make = [](Dice& dice) { return std::make_unique<StackWalk>(dice); };
  urnic::test::walk(plan);
}

}  // namespace
}  // namespace urnic::tcp::test
