// The calls of a walk over two byte-stream stacks, each compared with the result that the model
// expects.
#pragma once

#include <string>
#include <utility>

#include "tests/tcp/stack_option_calls.h"

namespace urnic::tcp::test {

inline IpAddress own(int side, unsigned which) {
  const char* const kOwn[2][3] = {{"10.1.0.1", "10.1.0.9", "fd01::1"},
                                  {"10.2.0.2", "10.2.0.7", "fd02::2"}};
  return *IpAddress::parse(kOwn[side][which]);
}

class StackCalls : public StackOptionCalls {
 protected:
  using StackOptionCalls::StackOptionCalls;

  // ---- listeners
  void listen(Dice& dice) {
    const int side = static_cast<int>(dice.below(2));
    const unsigned which = dice.below(5);
    const IpAddress ip = which < 3    ? own(side, which)
                         : which == 3 ? IpAddress::any_v4()
                                      : IpAddress::any_v6();
    const SocketAddress at{ip,
                           static_cast<std::uint16_t>(dice.one_in(5) ? 0 : dice.between(80, 82))};
    // A connection requested before the listener existed has no counted place with it.
    for (const auto& c : x.conns) {
      if (c->active != side && c->end[1 - side].life == Life::Opening) return;
    }
    Fresh f = open(dice, side);
    answers(x.stack(side).bind(f.e, {IpAddress::v4(10, 3, 3, 3), 80}), Status::NoAddress, "bind");
    answers(x.stack(side).bind(f.e, at), Status::Ok, "bind");
    answers(x.stack(side).listen(f.e, 0), Status::Invalid, "listen with a backlog of 0");
    const bool taken = at.port != 0 && x.listener_at(side, at) != nullptr;
    const unsigned backlog = dice.between(1, 5);
    tell("listen at " + at.to_string() + (taken ? ", which is taken" : ""));
    answers(x.stack(side).listen(f.e, backlog), taken ? Status::AddressInUse : Status::Ok,
            "listen");
    if (taken) {
      x.fresh.push_back(f);
      return;
    }
    Listener l{side, f.e, *x.stack(side).local_address(f.e), backlog, f.values};
    const StackConfig& config = x.world.side[side].config;
    agree(l.at.ip == at.ip &&
              (at.port != 0 ? l.at.port == at.port
                            : l.at.port >= config.port_first && l.at.port <= config.port_last),
          "where it listens");
    x.listeners.push_back(l);
  }
  void close_listener(std::size_t n) {
    const Listener l = x.listeners[n];
    tell("close the listener at " + l.at.to_string());
    answers(x.stack(l.side).close(l.e, x.world.now), Status::Ok, "close of a listener");
    x.stale.emplace_back(l.side, l.e);
    x.listeners.erase(x.listeners.begin() + static_cast<std::ptrdiff_t>(n));
    for (const auto& c : x.conns) {
      Half& h = c->end[l.side];
      if (!h.queued || c->listener != l.e || c->active == l.side) continue;
      h.life = Life::Over;
      h.queued = false;
      h.reset_sent = x.world.up;
      c->dirty = true;
    }
  }
  void close_fresh(std::size_t n) {
    const Fresh f = x.fresh[n];
    answers(x.stack(f.side).close(f.e, x.world.now), Status::Ok, "close");
    x.stale.emplace_back(f.side, f.e);
    x.fresh.erase(x.fresh.begin() + static_cast<std::ptrdiff_t>(n));
  }
  void use_stale(Dice& dice) {
    const auto* s = dice.any(x.stale);
    if (s == nullptr) return;
    Stack& stack = x.stack(s->first);
    const Endpoint e = s->second;
    const Instant now = x.world.now;
    std::uint8_t byte = 0;
    answers(stack.read(e, {&byte, 1}, now).status, Status::Invalid, "read of a closed endpoint");
    answers(stack.write(e, {&byte, 1}, now).status, Status::Invalid, "write of a closed endpoint");
    answers(stack.close(e, now), Status::Invalid, "close of a closed endpoint");
    answers(stack.abort(e, now), Status::Invalid, "abort of a closed endpoint");
    answers(stack.take_error(e), Status::Invalid, "error of a closed endpoint");
    agree(!stack.snapshot(e, now) && !stack.option(e, Option::Tos), "a closed endpoint is known");
    agree(stack.accept(e, nullptr, now) == Endpoint::None, "a closed endpoint accepts");
  }

  // ---- connections
  // Returns how many more connections of a listener get a place at once.
  unsigned places(const Listener& l) const {
    unsigned taken = x.queued_at(l.e, l.side);
    const unsigned asked = l.asked == x.batch ? l.asked_for : 0;
    const unsigned left = l.backlog > taken + asked ? l.backlog - taken - asked : 0;
    const auto half = static_cast<unsigned>(of(l.values, Option::SynBacklog));
    return std::min(left, half > asked ? half - asked : 0);
  }
  void connect(Dice& dice) {
    const int side = static_cast<int>(dice.below(2));
    SocketAddress to{own(1 - side, dice.below(3)),
                     static_cast<std::uint16_t>(dice.between(80, 83))};
    if (!dice.one_in(5)) {
      std::vector<Listener*> some;
      for (Listener& l : x.listeners) {
        if (l.side != side) some.push_back(&l);
      }
      if (Listener** l = dice.any(some)) {
        to = (*l)->at;
        if (to.ip.is_any()) to.ip = own(1 - side, to.ip.is_v6() ? 2 : dice.below(2));
      }
    }
    SocketAddress from{to.ip.is_v6() ? IpAddress::any_v6() : IpAddress::any_v4(), 0};
    if (dice.one_in(2)) {
      from.ip = own(side, to.ip.is_v6() ? 2 : dice.below(2));
      from.port = static_cast<std::uint16_t>(dice.between(5001, 5003));
    }
    // Sometimes between the endpoints of an earlier, current or TIME-WAIT connection.
    if (const auto* e = dice.any(past[side]); e != nullptr && dice.one_in(3)) {
      from = e->first;
      to = e->second;
    }
    Listener* l = x.listener_at(1 - side, to);
    if (l != nullptr && places(*l) == 0) return;
    if (l != nullptr) {
      if (l->asked != x.batch) l->asked_for = 0;
      l->asked = x.batch;
      ++l->asked_for;
    }
    connect_to(dice, side, from, to);
  }
  Conn* connect_to(Dice& dice, int side, const SocketAddress& from, const SocketAddress& to) {
    Stack& s = x.stack(side);
    Fresh f = open(dice, side);
    if (from.port != 0) answers(s.bind(f.e, from), Status::Ok, "bind");
    bool taken = false;
    for (const auto& c : x.conns) {
      taken |= c->at[side] == from && c->at[1 - side] == to && c->end[side].alive();
    }
    if (from.port == 0) taken = !has_port(side, to);
    // The model cannot follow a second connection between the same endpoints in the same batch.
    for (const auto& c : x.conns) {
      if (c->at[side] == from && c->at[1 - side] == to && !taken && c->dirty) {
        x.fresh.push_back(f);
        return nullptr;
      }
    }
    const SocketAddress other{to.ip.is_v6() ? own(1 - side, 0) : own(1 - side, 2), 80};
    if (dice.one_in(8)) {
      answers(s.connect(f.e, {to.ip, 0}, x.world.now), Status::Invalid, "connect to port 0");
      if (from.port != 0) {
        answers(s.connect(f.e, other, x.world.now), Status::NoAddress, "connect across families");
      }
    }
    tell("connect " + std::to_string(side) + " from " + from.to_string() + " to " + to.to_string() +
         (taken ? ", which is taken" : ""));
    answers(s.connect(f.e, to, x.world.now), taken ? Status::AddressInUse : Status::InProgress,
            "connect");
    if (taken) {
      x.fresh.push_back(f);
      return nullptr;
    }
    answers(s.connect(f.e, to, x.world.now), Status::InProgress, "connect once more");
    return &note_connect(side, f, from, to);
  }
  bool has_port(int side, const SocketAddress& to) {
    const StackConfig& config = x.world.side[side].config;
    for (unsigned port = config.port_first; port <= config.port_last; ++port) {
      bool free = true;
      for (const Listener& l : x.listeners) free &= l.side != side || l.at.port != port;
      for (const auto& c : x.conns) {
        free &= !c->end[side].alive() || c->at[side].port != port || c->at[1 - side] != to;
      }
      if (free) return true;
    }
    return false;
  }
  Conn& note_connect(int side, const Fresh& f, const SocketAddress& from, const SocketAddress& to) {
    auto c = std::make_unique<Conn>();
    c->id = ++ids;
    c->active = side;
    c->batch = x.batch;
    c->dirty = true;
    c->at[side] = *x.stack(side).local_address(f.e);
    c->at[1 - side] = to;
    if (from.port != 0) agree(c->at[side] == from, "the address it was bound to");
    for (const auto& o : x.conns) {
      agree(!o->end[side].alive() || o->at[side] != c->at[side] || o->at[1 - side] != to,
            "an address that is taken was chosen");
      // An old connection between these endpoints goes away when the SYN arrives. It must not be
      // used until then.
      if (o->at[side] == c->at[side] && o->at[1 - side] == to) o->frozen = o->dirty = true;
    }
    Half& h = c->end[side];
    h.e = f.e;
    h.held = true;
    h.values = f.values;
    x.begin_keepalive(h);
    c->end[1 - side].life = Life::Over;
    for (int i = 0; i < 2; ++i) x.world.side[i].seen[{c->at[i], c->at[1 - i]}] = {};
    ++x.connects[side];
    past[side].emplace_back(c->at[side], to);
    if (past[side].size() > 6) past[side].erase(past[side].begin());
    tell("  it is c" + std::to_string(c->id));
    x.conns.push_back(std::move(c));
    return *x.conns.back();
  }
  void accept(Dice& dice) {
    if (Listener* l = dice.any(x.listeners)) accept_at(*l);
  }
  // Returns true if there was one. `late`: events of this batch happened before accept().
  bool accept_at(const Listener& l, bool late = false) {
    SocketAddress peer;
    const Endpoint e = x.stack(l.side).accept(l.e, &peer, x.world.now);
    const auto local = x.stack(l.side).local_address(e);
    Conn* found = nullptr;
    unsigned first = ~0u;
    for (const auto& c : x.conns) {
      if (!c->end[l.side].queued || c->listener != l.e || c->active == l.side) continue;
      first = std::min(first, c->batch);
      if (c->at[c->active] == peer && c->at[l.side] == local) found = c.get();
    }
    agree((e != Endpoint::None) == (first != ~0u), "accept() finds what waits");
    if (e == Endpoint::None) return false;
    agree(found != nullptr, "accepted from " + peer.to_string());
    agree_on(found->batch, first, "the oldest is accepted first");
    Half& h = found->end[l.side];
    tell("accept" + text(*found, l.side));
    h.e = e;
    h.held = true;
    h.queued = false;
    h.accepted_late = late;
    found->dirty = true;
    agree_on(x.stack(l.side).readiness(e).readable, h.got, "readable when accepted");
    return true;
  }

  // True if this end may be closed now with a known effect on the other end.
  bool may_end(Conn& c, int i) {
    Half& h = c.end[i];
    if (h.life == Life::Opening) return !bad && !follows(c);
    if (h.life != Life::Open) return true;
    if (c.dirty && (!c.idle() || bad) && !gone(c, i)) return false;
    if (h.read_closed && c.dirty) return false;
    if (h.shut_batch == x.batch) return false;
    // The second FIN, sent twice: the ACK of the second finds no connection, and the reset in reply
    // ends TIME-WAIT.
    if (bad && c.end[1 - i].fin_done) return false;
    // A connection that waits to be accepted cannot be observed.
    const Half& o = c.end[1 - i];
    return !(o.queued && (!c.idle() || (!x.world.up && of(o.values, Option::Keepalive) != 0)));
  }
  // True if part of an earlier connection between the same endpoints is left.
  bool follows(const Conn& c) const {
    for (const auto& o : x.conns) {
      if (o.get() != &c && o->at[0] == c.at[0] && o->at[1] == c.at[1]) return true;
    }
    return false;
  }
  void shut_write(Conn& c, int i) {
    Half& h = c.end[i];
    const bool open = h.life == Life::Open || h.life == Life::TimeWait;
    if (open && !h.write_closed && !may_end(c, i)) return;
    tell("shutdown_write" + text(c, i));
    answers(x.stack(i).shutdown_write(h.e, x.world.now), open ? Status::Ok : Status::NotConnected,
            "shutdown_write");
    if (!open || h.write_closed) return;
    h.write_closed = true;
    h.shut_batch = x.batch;
    c.frozen |= !c.idle();
    c.dirty = true;
  }
  void shut_read(Conn& c, int i) {
    Half& h = c.end[i];
    tell("shutdown_read" + text(c, i));
    answers(x.stack(i).shutdown_read(h.e, x.world.now), Status::Ok, "shutdown_read");
    h.read_closed = true;
    h.read = h.got;
    touch(c, i);
  }
  void give_back(Conn& c, int i, bool abort) {
    Half& h = c.end[i];
    tell((abort ? "abort" : "close") + text(c, i));
    answers(abort ? x.stack(i).abort(h.e, x.world.now) : x.stack(i).close(h.e, x.world.now),
            Status::Ok, abort ? "abort" : "close");
    x.stale.emplace_back(i, h.e);
    const bool reset = abort || h.unread() != 0 || of(h.values, Option::Linger) == 0;
    h.held = false;
    c.frozen |= !c.idle();
    c.dirty = true;
    if (h.life == Life::Opening || (h.life == Life::TimeWait && reset)) {
      h.life = Life::Over;
      h.ends = h.lingers = {};
    } else if (h.life == Life::Open && reset) {
      h.life = Life::Over;
      h.ends = h.lingers = h.stall = h.gone = {};
      h.reset_sent = x.world.up;
    } else if (h.life == Life::Open && !h.write_closed) {
      h.write_closed = true;
      h.shut_batch = x.batch;
    }
  }
  void take_error(Conn& c, int i) {
    Half& h = c.end[i];
    answers(x.stack(i).take_error(h.e), std::exchange(h.error, Status::Ok), "take_error");
  }
  // An ICMP error about the SYN, or about data in flight, which then is the reason if that fails.
  void unreachable(Dice& dice, Conn& c, int i) {
    Half& h = c.end[i];
    if (x.world.up || (h.life != Life::Opening && h.life != Life::Open)) return;
    const Snapshot v = *x.stack(i).snapshot(h.e, x.world.now);
    net::IcmpError e;
    e.hard = dice.one_in(2);
    e.local = c.at[i];
    e.remote = c.at[1 - i];
    e.seq = h.life == Life::Opening ? v.iss : v.snd_una;
    tell(std::string(e.hard ? "hard" : "soft") + " ICMP error about" + text(c, i));
    x.stack(i).icmp_error(e, x.world.now);
    if (e.hard && h.life == Life::Opening) {
      x.fail(h, Status::Unreachable);
    } else {
      h.soft_at = x.world.now;
    }
  }

  // ---- bytes
  void write(Dice& dice, Conn& c, int i) {
    Half& h = c.end[i];
    std::size_t n = dice.one_in(3) ? dice.below(40000) : dice.below(2000);
    const bool queued = c.end[1 - i].queued;
    // A connection that waits to be accepted is not observed, so what is written to it must fit.
    if (queued) n = std::min<std::size_t>(n, h.written < 900 ? 900 - h.written : 0);
    const bool more = dice.one_in(6);
    std::vector<std::uint8_t> b(n);
    for (std::size_t k = 0; k < n; ++k) b[k] = byte_of(c, i, h.written + k);
    const std::size_t room = x.stack(i).readiness(h.e).writable;
    const IoResult r = x.stack(i).write(h.e, b, x.world.now, more);
    tell("write" + text(c, i) + " " + std::to_string(n) + ": " + std::to_string(r.bytes));
    if (h.error != Status::Ok) {
      answers(r.status, std::exchange(h.error, Status::Ok), "write");
      return;
    }
    if (h.life == Life::Over || h.write_closed)
      return answers(r.status, Status::BrokenPipe, "write");
    const std::size_t taken = h.life == Life::Opening ? 0 : std::min(n, room);
    const bool blocked = h.life == Life::Opening || (taken == 0 && n != 0);
    answers(r.status, blocked ? Status::WouldBlock : Status::Ok, "write");
    if (!blocked) agree_on(r.bytes, taken, "bytes written");
    h.full |= taken < n;
    h.written += taken;
    touch(c, i);
    if (taken < n && h.life == Life::Open && dice.one_in(3)) grow_send_buffer(dice, c, i);
    if (dice.one_in(3) && h.life == Life::Open) {
      answers(x.stack(i).push(h.e, x.world.now), Status::Ok, "push");
    }
  }
  void read(Dice& dice, Conn& c, int i) {
    Half& h = c.end[i];
    std::vector<std::uint8_t> b(dice.one_in(10) ? 0 : dice.below(30000));
    const std::uint64_t unread = h.unread();
    const bool ended = h.life == Life::Over || h.read_closed || h.fin_came;
    const std::size_t skip = dice.below(500);
    const IoResult seen = x.stack(i).peek(h.e, b, skip);
    check_read(c, i, seen, b, unread > skip ? unread - skip : 0, skip, ended);
    const bool shut = is_shut(c, i);
    const std::uint64_t sent = x.stack(i).counters().datagrams_out;
    const IoResult r = x.stack(i).read(h.e, b, x.world.now);
    if (shut && r.bytes == unread) {
      agree(x.stack(i).counters().datagrams_out > sent, "the window opens and nobody is told");
    }
    tell("read" + text(c, i) + " " + std::to_string(b.size()) + ": " + std::to_string(r.bytes));
    check_read(c, i, r, b, unread, 0, ended);
    if (r.status == Status::Ok) {
      h.read += r.bytes;
      if (r.bytes != 0) touch(c, i);
    } else {
      h.error = Status::Ok;
    }
  }
  // True if the other end waits for this end's window, which is closed.
  bool is_shut(const Conn& c, int i) {
    const Half& h = c.end[i];
    if (h.life != Life::Open || c.waiting(1 - i) == 0 || h.unread() == 0) return false;
    return !c.dirty && x.stack(i).snapshot(h.e, x.world.now)->rcv_wnd == 0;
  }
  void check_read(const Conn& c, int i, const IoResult& r, ByteView b, std::uint64_t there,
                  std::uint64_t skip, bool ended) {
    const Half& h = c.end[i];
    if (there == 0) {
      const Status why = h.error != Status::Ok ? h.error
                         : ended               ? Status::EndOfStream
                         : b.empty()           ? Status::Ok
                                               : Status::WouldBlock;
      answers(r.status, why, "read without bytes");
      return;
    }
    answers(r.status, Status::Ok, "read");
    agree_on(r.bytes, std::min<std::uint64_t>(b.size(), there), "bytes read");
    for (std::size_t k = 0; k < r.bytes; ++k) {
      agree(b[k] == byte_of(c, 1 - i, h.read + skip + k), "bytes arrive in order and whole");
    }
  }

  std::vector<std::pair<SocketAddress, SocketAddress>> past[2];  // endpoints of earlier connections
  bool bad = false;
  std::uint64_t ids = 0;
};

}  // namespace urnic::tcp::test
