#include "iwarp/connection_events.h"

#include "iwarp/guard_allocation.h"

namespace urnic::iwarp {

void ConnectionEvents::settle(Connection& c, const Found& found, Instant now) {
  if (found.opens_send_side) opening_.open_send_side(c);
  if (found.terminate) {
    ending_.take_terminate(c, now);
  } else if (found.violation != ddp::Violation::None) {
    ending_.raise_terminate(c, found.violation, found.offending, now);
  }
  if (c.stage == Stage::Startup) {
    // A frame and the FIN may have arrived in one segment (a rejecting peer closes at once).
    opening_.run_startup(c, now);
    if (c.takes_fpdus()) drain(c, now);
    if (c.is_over() || c.stage == Stage::Lingering) return;
  }
  if (found.fin) take_fin(c, now);
  // Data before the FIN is delivered first.
  if (!c.is_over() && found.closed && !c.in_drain_queue) ending_.take_closed(c, now);
}

void ConnectionEvents::take_unreachable(Connection& c, Instant now) {
  ending_.fail_connection(c, Errc::unreachable, "no route to " + c.key.remote.to_string(), now);
}

void ConnectionEvents::drain(Connection& c, Instant now) {
  Found found;
  transport_.drain(c, now, &found);
  transport_.read_on(c);
  settle(c, found, now);
}

void ConnectionEvents::take_fin(Connection& c, Instant now) {
  // E-35: a peer that knows only revision 1 closes without a Reply.
  if (opening_.refuses_revision2(c)) {
    opening_.retry_as_revision1(c, now);
  } else {
    ending_.take_fin(c, now);
  }
}

void ConnectionEvents::take_reset(Connection& c, Instant now) {
  tcp::take_reset(c.tcb, now);
  if (opening_.refuses_revision2(c)) {  // E-35: some peers reset instead of closing
    opening_.retry_as_revision1(c, now);
    return;
  }
  const bool opening = c.stage == Stage::Opening;
  if (opening && opening_.await_listener(c, now)) return;
  ending_.fail_connection(c, opening ? Errc::refused : Errc::reset,
                          opening ? "connection refused by the peer (no listener on that port)"
                                  : "connection reset by the peer",
                          now);
}

void ConnectionEvents::on_timer(Connection& c, Instant now) {
  if (c.awaits_listener()) {
    if (c.redial->at <= now) opening_.redial(c, now);
  } else if (s_.timers.tcp_is_due(c, now)) {
    if (c.tcb.timers.retransmit <= now) {
      ++c.counters.rto_expirations;
      s_.wire.interface().doubt(c.next_hop, now);  // the neighbour may have moved
    }
    tcp::on_deadline(c.tcb, now);
    s_.sending.push(c);
    if (c.tcb.state == tcp::State::Closed) {
      ending_.take_closed(c, now);
      return;
    }
  }
  if (c.is_over()) return;
  if (c.link != nullptr && c.link->faults != nullptr) [[unlikely]]
    resume_after_faults(c, now);
  if (c.send_gate_opens <= now) opening_.open_send_side(c);
  if (c.stage_deadline > now) return;
  c.stage_deadline = Instant::never();
  switch (c.stage) {
    case Stage::Opening:
      ending_.fail_connection(c, Errc::timed_out, "no response from the peer: connecting timed out",
                              now);
      return;
    case Stage::Full:
      if (c.awaits_receive()) {
        c.receive_wait = ReceiveWait::Over;
        drain(c, now);
        return;
      }
      if (c.peer_fin == PeerFin::Reached) {
        ending_.close_behind_peer(c, now);
        if (!c.is_over() && transport_.conclude(c, now)) ending_.take_closed(c, now);
        return;
      }
      [[fallthrough]];  // the RTR never arrived
    case Stage::Startup:
      ending_.fail_connection(c, Errc::timed_out,
                              "timed out: the peer did not finish the MPA start-up", now);
      return;
    case Stage::Closing:
    case Stage::Leaving:
      ending_.fail_connection(c, Errc::timed_out,
                              "timed out: the peer did not close its side of the connection", now);
      return;
    case Stage::Terminated:
      ending_.fail_connection(c, Errc::reset, c.failure, now);
      return;
    case Stage::Lingering:
      ending_.end_with_reset(c, now);
      return;
  }
}

// What a plan of faults held back may be due.
void ConnectionEvents::resume_after_faults(Connection& c, Instant now) {
  KernelLink& l = *c.link;
  s_.sending.push(c);
  if (l.read_again > now) return;
  l.read_again = Instant::never();
  transport_.read_on(c);
}

void ConnectionEvents::on_icmp_error(const net::IcmpError& e, Instant now) {
  Connection* found = s_.connections.find({e.local.ip, e.remote.ip, e.local.port, e.remote.port});
  if (found == nullptr) return;
  Connection& c = *found;
  if (!tcp::take_icmp_error(c.tcb, e, now)) return;
  if (c.tcb.state == tcp::State::Closed) {
    ending_.take_closed(c, now);
  } else {
    s_.sending.push(c);
  }
}

void ConnectionEvents::reroute(const IpAddress* next_hop, bool failed, Instant now) {
  s_.connections.for_each([&](Connection& c) {
    if (c.loopback) return;
    if (next_hop != nullptr && c.next_hop != *next_hop) return;
    guard_allocation(ending_, c, now, [&] { reroute(c, failed, now); });
  });
}

void ConnectionEvents::reroute(Connection& c, bool failed, Instant now) {
  c.routed = false;
  if (failed && c.stage == Stage::Opening && !c.tcb.passive) {
    ending_.fail_connection(
        c, Errc::unreachable,
        "no response to ARP or neighbor discovery for " + c.next_hop.to_string(), now);
    return;
  }
  // A SYN whose sender does not exist, or a RST that would reach no host.
  if (failed && (c.backlog.is_half_open() || c.stage == Stage::Lingering)) {
    ending_.end_with_reset(c, now);
    return;
  }
  s_.sending.push(c);
}

void ConnectionEvents::out_of_memory(Connection* c, Instant now) {
  if (c != nullptr && !c->is_over()) {
    ending_.out_of_memory(*c, now);
  } else {
    ++s_.counters.dropped;
  }
}

void ConnectionEvents::give_up_link(const std::string& why, Instant now) {
  s_.connections.for_each([&](Connection& c) {
    if (c.loopback || c.stage == Stage::Opening) return;
    if (c.qp != nullptr || c.startup != nullptr || c.left != nullptr) {
      guard_allocation(ending_, c, now,
                       [&] { ending_.fail_connection(c, Errc::unreachable, why, now); });
    }
  });
}

std::size_t ConnectionEvents::leaving() const {
  std::size_t n = 0;
  s_.connections.for_each([&](const Connection& c) { n += c.left != nullptr; });
  return s_.kernel != nullptr ? n + s_.kernel->departing.size() : n;
}

std::size_t ConnectionEvents::ending() const {
  std::size_t n = 0;
  s_.connections.for_each([&](const Connection& c) { n += c.left != nullptr || c.qp != nullptr; });
  return n;
}

std::size_t ConnectionEvents::under_way() const {
  if (s_.kernel == nullptr || s_.kernel->faults == nullptr) return 0;
  std::size_t n = s_.kernel->departing.size();
  s_.connections.for_each(
      [&](const Connection& c) { n += c.link != nullptr && has_bytes_under_way(*c.link); });
  return n;
}

std::uint64_t ConnectionEvents::leaving_sent() const {
  // What a plan of faults passes on is progress too.
  std::uint64_t bytes = s_.kernel != nullptr ? s_.kernel->bytes_out : 0;
  s_.connections.for_each([&](const Connection& c) {
    if (c.left != nullptr) bytes += transport_.sent_end(c).value();
  });
  return bytes;
}

void ConnectionEvents::drop_leaving(Instant now) {
  s_.connections.for_each([&](Connection& c) {
    if (c.left != nullptr) ending_.end_with_reset(c, now);
  });
  if (s_.kernel != nullptr) s_.kernel->departing.end();
}

void ConnectionEvents::ask_peers(Instant now) {
  s_.connections.for_each([&](Connection& c) {
    if (c.loopback || !Transport::shows_segments(c) || c.qp == nullptr) return;
    guard_allocation(ending_, c, now, [&] {
      tcp::probe_peer(c.tcb, now);
      s_.sending.push(c);
      s_.timers.arm(c);
    });
  });
}

}  // namespace urnic::iwarp
