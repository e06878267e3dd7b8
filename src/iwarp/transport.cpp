#include "iwarp/transport.h"

#include <algorithm>

#include "reassembly/extract.h"

namespace urnic::iwarp {

ByteView Transport::bytes(const Connection& c, std::span<std::uint8_t> scratch) const {
  if (c.link != nullptr) {
    const ByteView there = c.link->inbox.bytes();
    return there.first(std::min(there.size(), scratch.size()));
  }
  const std::uint64_t there = c.tcb.rcv.holes.rcv_nxt() - c.buffer.read_position();
  const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(there, scratch.size()));
  if (n != 0) c.buffer.copy(0, n, scratch.data());
  return scratch.first(n);
}

void Transport::consume(Connection& c, std::uint32_t n) {
  if (c.link != nullptr) {
    c.link->inbox.consume(n);
  } else {
    c.buffer.consume(c.buffer.read_position() + n);
  }
}

bool Transport::has_undelivered(const Connection& c) const {
  return c.link != nullptr ? !c.link->inbox.empty() : !c.buffer.empty();
}

void Transport::drop_undelivered(Connection& c) {
  c.receive_wait = ReceiveWait::None;
  if (c.link != nullptr) {
    c.link->inbox.clear();
  } else {
    c.buffer.reset(c.tcb.rcv.holes.rcv_nxt());
  }
}

void Transport::discard_undelivered(Connection& c, Instant now) {
  drop_undelivered(c);
  rx_commit_.update_receive_room(c, now);
  read_on(c);
}

void Transport::drain(Connection& c, Instant now, Found* found) {
  if (c.link != nullptr) {
    if (c.awaits_receive()) return;
    drain_inbox(c, found);
    if (c.awaits_receive()) {
      rx_commit_.begin_wait(c, now);
    } else {
      RxCommit::report_fin(c, found);
    }
  } else if (!c.buffer.empty()) {
    slow_.drain(c, kNoBudget, now, found);
  }
}

// Places and delivers whole FPDUs one by one, without copying them first.
void Transport::drain_inbox(Connection& c, Found* found) {
  kernel_tcp::Inbox& inbox = c.link->inbox;
  while (c.takes_fpdus()) {
    ByteView ulpdu;
    std::uint32_t length = 0;
    const auto got = reassembly::next_fpdu(inbox.bytes(), c.context.config.crc, &ulpdu, &length);
    if (got == reassembly::Extracted::NeedMore) return;
    c.counters.bytes_slow += length;
    c.counters.bytes_copied += length;
    if (got == reassembly::Extracted::BadCrc) return found->violate(ddp::Violation::MpaCrc);
    if (!rx_commit_.take_fpdu(c, ulpdu, found)) return;
    inbox.consume(length);
  }
}

void Transport::established(Connection& c, Instant now) {
  drop_undelivered(c);
  rx_commit_.update_receive_room(c, now);
}

void Transport::read_on(Connection& c) {
  if (c.link != nullptr && c.link->readable) kernel_.enqueue_read(c);
}

StreamOffset Transport::sent_end(const Connection& c) const {
  return c.link != nullptr ? c.link->sent + (c.link->rest.size() - c.link->rest_at) : c.tcb.snd.nxt;
}

void Transport::finish_sending(Connection& c, Instant now) {
  if (c.link != nullptr) {
    c.link->finish = true;
  } else {
    tcp::shutdown_send(c.tcb, now);
  }
}

void Transport::set_dscp(Connection& c, std::uint8_t dscp) {
  c.dscp = dscp;
  if (c.link != nullptr) {
    c.link->socket.set_dscp(dscp);
  } else if (c.routed) {
    c.header.set_dscp(dscp);
  }
}

void Transport::set_keepalive(Connection& c, Duration idle, Instant now) {
  if (c.link != nullptr) {
    c.link->socket.set_keepalive(static_cast<int>((idle.count_ms() + 999) / 1000));
  } else {
    tcp::set_keepalive(c.tcb, idle, now);
  }
}

void Transport::abort(Connection& c, Instant now) {
  if (c.link == nullptr) {
    tcp::abort(c.tcb, now);
    return;
  }
  if (!c.link->socket.is_open()) return;
  KernelLink& l = *c.link;
  s_.kernel->poller->remove(l.socket.fd());
  if (l.send_error == 0 && !may_end(l, now) && !l.faults->reset_is_due(now)) {
    s_.kernel->departing.add(std::move(l.socket), std::move(l.faults), l.aligned,
                             now + s_.options.linger_timeout, now);
  } else {
    l.socket.reset();
  }
  if (s_.kernel->tap) {
    s_.kernel->tap->ended(tapped(c.key, *c.link), kernel_tcp::Tap::End::Reset, false);
  }
}

bool Transport::is_closed(const Connection& c) const {
  return c.link != nullptr ? !c.link->socket.is_open() : c.tcb.state == tcp::State::Closed;
}

void add_path(const Connection& c, ConnectionStats* s) {
  if (c.link != nullptr) {
    const kernel_tcp::PathInfo p = c.link->socket.info();
    s->iwarp.tcp.cwnd = p.cwnd;
    s->iwarp.tcp.ssthresh = p.ssthresh;
    s->iwarp.tcp.srtt_us = p.srtt_us;
    s->iwarp.tcp.rto_us = p.rto_us;
    s->iwarp.tcp.mss = p.mss;
    s->iwarp.tcp.retransmits = p.retransmits;
    return;
  }
  s->iwarp.tcp.cwnd = c.tcb.cc.cwnd;
  s->iwarp.tcp.ssthresh = c.tcb.cc.ssthresh;
  s->iwarp.tcp.srtt_us = static_cast<std::uint32_t>(c.tcb.rtt.srtt.count_us());
  s->iwarp.tcp.rto_us = static_cast<std::uint32_t>(c.tcb.rtt.rto.count_us());
  s->iwarp.tcp.mss = c.tcb.snd.mss;
}

}  // namespace urnic::iwarp
