// Compares everything the stacks report with the model: the figures of each endpoint, its change
// reports, each option, and how many there are of everything.
#pragma once

#include <string>

#include "tests/tcp/stack_expect.h"

namespace urnic::tcp::test {

class Checks {
 public:
  explicit Checks(Expected& x) : x_(x) {}

  void everything(bool carried) {
    for (const auto& c : x_.conns) {
      for (int i = 0; i < 2; ++i) {
        if (c->end[i].held) half(*c, i, carried);
      }
    }
    for (const Listener& l : x_.listeners) listener(l);
    for (const Fresh& f : x_.fresh) {
      values(f.side, f.e, f.values);
      agree(!x_.stack(f.side).snapshot(f.e, x_.world.now), "one that is not connected has figures");
    }
    for (int i = 0; i < 2; ++i) {
      told(i);
      counts(i);
      counters(i);
    }
  }

 private:
  static std::string name(const Conn& c, int i) {
    return "connection " + std::to_string(c.id) + ", side " + std::to_string(i) + ": ";
  }

  void half(const Conn& c, int i, bool carried) {
    const Half& h = c.end[i];
    Stack& s = x_.stack(i);
    const std::string who = name(c, i);
    agree(s.local_address(h.e) == c.at[i], who + "local address");
    agree(s.peer_address(h.e) == c.at[1 - i], who + "peer address");
    const Readiness r = s.readiness(h.e);
    agree_on(r.readable, h.unread(), who + "readable");
    agree_on(r.error, h.error != Status::Ok, who + "error");
    const bool over = h.life == Life::Over;
    // With a reset, the end of the stream may have arrived before it.
    agree_on(r.peer_closed, h.fin_came || over, who + "peer closed");
    agree_on(r.connected, h.life == Life::Open || h.life == Life::TimeWait, who + "connected");
    agree(!r.acceptable, who + "acceptable");
    values(i, h.e, h.values);
    const Snapshot v = *s.snapshot(h.e, x_.world.now);
    agree_on(v.unread, h.unread(), who + "unread");
    if (!over) agree_on(v.delivered, h.got, who + "delivered");
    if (carried) state(c, i, v);
    if (h.life == Life::Open) {
      buffers(c, i, v, r);
      figures(c, i, v);
    }
    events(c, i, r);
  }

  void state(const Conn& c, int i, const Snapshot& v) {
    const Half& h = c.end[i];
    const bool fin_left = h.fin_done;
    State want = State::Closed;
    if (h.life == Life::Opening) want = State::SynSent;
    if (h.life == Life::TimeWait) want = State::TimeWait;
    if (h.life == Life::Open) {
      want = fin_left ? State::FinWait2 : h.fin_came ? State::CloseWait : State::Established;
    }
    agree_on(static_cast<int>(v.state), static_cast<int>(want), name(c, i) + "state");
    if (h.life != Life::Open) return;
    const bool all = c.waiting(i) == 0;
    // If the window was larger before, some data may have been sent in vain.
    if (all) agree_on(v.in_flight, 0u, name(c, i) + "in flight");
    agree_on(v.acked, c.end[1 - i].got, name(c, i) + "acknowledged");
    if (all || v.in_flight == 0) agree_on(v.unsent, c.waiting(i), name(c, i) + "unsent");
    agree_on(v.holes, 0u, name(c, i) + "holes");
    if (all) agree_on(int{v.retries}, 0, name(c, i) + "retries");
  }

  void buffers(const Conn& c, int i, const Snapshot& v, const Readiness& r) {
    const Half& h = c.end[i];
    if (of(h.values, Option::AutoTune) == 0) {
      agree_on(v.send_buffer, of(h.values, Option::SendBuffer), name(c, i) + "send buffer");
      agree_on(v.receive_buffer, of(h.values, Option::ReceiveBuffer),
               name(c, i) + "receive buffer");
    }
    agree_on(r.writable, room(c, i, v.send_buffer), name(c, i) + "writable");
  }
  static std::uint64_t room(const Conn& c, int i, std::uint64_t buffer) {
    if (c.end[i].write_closed) return 0;
    return buffer > c.waiting(i) ? buffer - c.waiting(i) : 0;
  }

  void figures(const Conn& c, int i, const Snapshot& v) {
    const Agreed a = agreed(c, i);
    const std::string who = name(c, i);
    agree_on(v.advertised_mss, a.own_mss, who + "own MSS");
    if (!c.crossed || a.timestamps) agree_on(v.timestamps, a.timestamps, who + "timestamps");
    if (!c.crossed) {
      agree_on(v.peer_mss, a.peer_mss, who + "the peer's MSS");
      agree_on(v.send_mss, a.send_mss, who + "MSS to send with");
      agree_on(v.ecn, a.ecn, who + "ECN");
    }
    // With timestamps, a cookie holds these as well.
    if (!c.crossed || a.timestamps) {
      agree_on(v.sack, a.sack, who + "SACK");
      const Values& own = c.end[i].values;
      const Values& other = c.end[1 - i].values;
      agree_on(v.receive_shift, a.scaling ? of(own, Option::WindowShift) : 0, who + "shift");
      agree_on(v.send_shift, a.scaling ? of(other, Option::WindowShift) : 0,
               who + "the peer's shift");
    }
    const OnWire& w = x_.world.side[i].seen[{c.at[i], c.at[1 - i]}];
    agree(w.most <= static_cast<std::size_t>(a.send_mss), who + "a segment beyond the MSS");
    if (w.payload) {
      agree_on(unsigned{w.tos} & 0xfcu,
               static_cast<unsigned>(of(c.end[i].values, Option::Tos)) & 0xfcu, who + "TOS");
    }
  }

  // The changes reported to the program in this batch.
  void events(const Conn& c, int i, const Readiness& r) {
    const Half& h = c.end[i];
    if (h.accepted_late) return;
    const std::string who = name(c, i);
    const std::uint32_t what = all_told(i, h.e);
    if (i == c.active) {
      agree_on((what & kConnected) != 0, h.opened, who + "told: connected");
      // Also if part of an earlier connection delayed it.
      if (h.opened && !c.crossed) agree(connected_soon(i, h.e), who + "connects late");
    } else {
      agree((what & kConnected) == 0, who + "told: connected, of one that was accepted");
    }
    agree_on((what & kError) != 0, h.failed, who + "told: error");
    if (!h.failed) agree_on((what & kPeerClosed) != 0, told_end(h), who + "told: peer closed");
    if (h.arrived && !h.read_closed) {
      agree((what & kReadable) != 0, who + "not told: readable");
    }
    if (h.full && r.writable != 0) agree((what & kWritable) != 0, who + "not told: writable");
    agree((what & kAcceptable) == 0, who + "told: acceptable");
  }
  static bool told_end(const Half& h) { return h.fin_now && h.fin_came; }

  std::uint32_t all_told(int side, Endpoint e) const {
    std::uint32_t what = 0;
    for (const Told& t : x_.world.side[side].told) {
      if (t.e == e) what |= t.what;
    }
    return what;
  }

  bool connected_soon(int side, Endpoint e) const {
    for (const Told& t : x_.world.side[side].told) {
      if (t.e == e && (t.what & kConnected) != 0) {
        return t.at <= x_.batch_begin + Duration::ms(50);
      }
    }
    return false;
  }

  void listener(const Listener& l) {
    Stack& s = x_.stack(l.side);
    const std::string who = "listener at " + l.at.to_string() + ": ";
    agree(s.local_address(l.e) == l.at, who + "local address");
    agree(!s.peer_address(l.e), who + "peer address");
    const auto b = s.backlog(l.e);
    agree(b.has_value(), who + "backlog");
    agree_on(b->half_open, 0u, who + "half open");
    const unsigned queued = x_.queued_at(l.e, l.side);
    agree_on(b->waiting, queued, who + "waiting");
    agree_on(s.readiness(l.e).acceptable, queued != 0, who + "acceptable");
    agree_on((all_told(l.side, l.e) & kAcceptable) != 0, l.came != 0, who + "told: acceptable");
    values(l.side, l.e, l.values);
  }

  void values(int side, Endpoint e, const Values& v) {
    for (std::size_t i = 0; i < kAllOptions; ++i) {
      const auto o = static_cast<Option>(i);
      const auto is = x_.stack(side).option(e, o);
      agree(is.has_value(), "an option that is known");
      agree_on(*is, v[i], "option " + std::string(option_name(o)));
    }
  }

  // The program gets no report about an endpoint that it does not hold.
  void told(int side) {
    for (const Told& t : x_.world.side[side].told) {
      bool known = x_.is_first_stale(side, t.e);
      for (const Listener& l : x_.listeners) known |= l.side == side && l.e == t.e;
      for (const auto& c : x_.conns) known |= c->end[side].held && c->end[side].e == t.e;
      agree(known, "told of an endpoint that nobody holds");
    }
  }

  void counts(int side) {
    std::size_t sockets = 0, connections = 0;
    std::uint64_t granted = 0;
    bool unseen = false;
    for (const Listener& l : x_.listeners) sockets += l.side == side ? 1 : 0;
    for (const Fresh& f : x_.fresh) sockets += f.side == side ? 1 : 0;
    for (const auto& c : x_.conns) {
      const Half& h = c->end[side];
      if (h.alive()) ++connections;
      if (h.held || h.queued || h.life == Life::Open || h.life == Life::Opening) ++sockets;
      if (!(h.held || h.life == Life::Open) || of(h.values, Option::AutoTune) == 0) continue;
      unseen |= !h.held;
      if (!h.held) continue;
      const Snapshot v = *x_.stack(side).snapshot(h.e, x_.world.now);
      granted += std::uint64_t{v.send_buffer} + v.receive_buffer;
    }
    const std::string who = "side " + std::to_string(side) + ": ";
    agree_on(x_.stack(side).sockets(), sockets, who + "sockets");
    agree_on(x_.stack(side).connections(), connections, who + "connections");
    if (!unseen) agree_on(x_.stack(side).granted(), granted, who + "memory granted");
  }

  void counters(int side) {
    const StackCounters n = x_.stack(side).counters();
    const Side& s = x_.world.side[side];
    const std::string who = "side " + std::to_string(side) + ", counter: ";
    agree_on(n.datagrams_in, s.given, who + "datagrams in");
    agree_on(n.datagrams_out, s.fetched, who + "datagrams out");
    agree_on(n.dropped_checksum, s.spoiled, who + "checksums");
    agree_on(n.dropped_ip, s.foreign, who + "for others");
    agree_on(n.dropped_header, 0u, who + "headers");
    agree_on(n.resets_sent, s.resets_out, who + "resets sent");
    agree(n.resets_received <= s.resets_in, who + "resets received that never came");
    agree(n.resets_received >= x_.resets[side], who + "resets received are missing");
    agree_on(n.opened_active, x_.connects[side], who + "opened");
    agree_on(n.opened_passive, x_.accepts[side], who + "accepted");
  }

  Expected& x_;
};

}  // namespace urnic::tcp::test
