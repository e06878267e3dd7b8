// Parses datagrams and delivers their segments to connections and listeners.
#include <algorithm>

#include "base/inet_checksum.h"
#include "tcp/listen.h"
#include "tcp/stack.h"

namespace urnic::tcp {

void Stack::input(ByteView datagram, Instant at) {
  const Entry entry(*this, at);
  ++counters_.datagrams_in;
  take_datagram(datagram, entry.now());
}

void Stack::begin_burst() {
  in_burst_ = true;
}

void Stack::end_burst(Instant at) {
  const Entry entry(*this, at);
  in_burst_ = false;
  for (const std::uint32_t slot : touched_) {
    Socket* s = sockets_.at(slot);
    if (s == nullptr || !s->touched) continue;
    s->touched = false;
    end_of_burst(s->tcb);
    pump(*s, entry.now());
    end_or_arm(*s, entry.now());
  }
  touched_.clear();
}

void Stack::icmp_error(const net::IcmpError& error, Instant at) {
  const Entry entry(*this, at);
  on_icmp_error(error, entry.now());
}

void StackCore::take_datagram(ByteView datagram, Instant now) {
  const net::Classified c =
      net::classify_datagram(datagram, static_cast<std::uint32_t>(datagram.size()));
  if (c.kind != net::FrameKind::Tcp && c.kind != net::FrameKind::Icmp &&
      c.kind != net::FrameKind::Icmp6) {
    ++counters_.dropped_ip;
    return;
  }
  if (std::find(config_.addresses.begin(), config_.addresses.end(), c.dst) ==
      config_.addresses.end()) {
    ++counters_.dropped_ip;
    return;
  }
  const ByteView l4 = datagram.subspan(c.l4_offset, c.l4_len);
  if (c.kind != net::FrameKind::Tcp) {
    take_icmp(c, l4, now);
    return;
  }
  if (config_.verify_checksums && inet_checksum(std::uint64_t{c.pseudo_sum} + inet_sum(l4)) != 0) {
    ++counters_.dropped_checksum;
    return;
  }
  std::size_t header = 0;
  auto parsed = parse_segment(l4, &header);
  if (!parsed) {
    ++counters_.dropped_header;
    return;
  }
  Segment& s = *parsed;
  s.payload = l4.subspan(header);
  s.ecn = c.ecn;
  const FlowKey key{c.dst, c.src, s.dst_port, s.src_port};
  if (const std::uint32_t* slot = flows_.find(key)) {
    Socket& socket = *sockets_.at(*slot);
    if (!may_reopen(socket.tcb, s) || sockets_.listener(key.local_end()) == nullptr) {
      take_segment(socket, c, s, now);
      return;
    }
    // A new incarnation may replace a connection in TIME-WAIT (RFC 9293 3.6.1).
    enter_closed(socket.tcb, CloseReason::None);
    end_or_arm(socket, now);
  } else if (take_lingering(c, s, key, now)) {
    return;
  }
  on_unmatched(c, s, key, now);
}

// Handles a segment for a connection in TIME-WAIT that the program has closed. Returns false if
// there is none, or if the segment may reopen it.
bool StackCore::take_lingering(const net::Classified& c, const Segment& s, const FlowKey& key,
                               Instant now) {
  Segment reply;
  const bool listening = sockets_.listener(key.local_end()) != nullptr;
  const auto verdict = time_wait_.take(key, s, listening, &reply, counters_, now);
  if (!verdict || *verdict == TimeWaitTable::Disposition::Reopen) return false;
  if (*verdict == TimeWaitTable::Disposition::Reply) out_.reply(c, reply, now);
  return true;
}

void StackCore::take_icmp(const net::Classified& c, ByteView message, Instant now) {
  if (config_.verify_checksums && !net::icmp_checksum_ok(message, c.v6 ? c.pseudo_sum : 0)) {
    ++counters_.dropped_checksum;
    return;
  }
  if (const auto error = net::parse_icmp_error(message, c.v6)) on_icmp_error(*error, now);
}

void StackCore::on_icmp_error(const net::IcmpError& e, Instant now) {
  const std::uint32_t* slot = flows_.find({e.local.ip, e.remote.ip, e.local.port, e.remote.port});
  if (slot == nullptr) return;
  Socket& s = *sockets_.at(*slot);
  take_icmp_error(s.tcb, e, now);
  pump(s, now);
  end_or_arm(s, now);
}

void StackCore::on_unmatched(const net::Classified& c, const Segment& s, const FlowKey& key,
                             Instant now) {
  Socket* listener = sockets_.listener(key.local_end());
  Config config;
  std::uint32_t window = 0;
  if (listener != nullptr) {
    const EndpointOptions& o = listener->options;
    listener->backlog.most_half_open = o.syn_backlog;
    listener->backlog.cookies = o.syn_cookies;
    config = config_for(*listener, key);
    // The window that the new connection certainly gets.
    window = std::min(o.tcp.receive_buffer, o.auto_tune ? kLeastBuffer : 0xffff);
  }
  const Unmatched u = take_unmatched(listener != nullptr ? &listener->backlog : nullptr, keys_,
                                     config, key, s, window, counters_, now);
  switch (u.kind) {
    case Unmatched::Kind::Drop:
      return;
    case Unmatched::Kind::Reply:
      if (u.reply.has(kRst)) {
        emit_reset(c, u.reply, now);
      } else {
        out_.reply(c, u.reply, now);
      }
      return;
    case Unmatched::Kind::Open: {
      Socket& child = new_child(*listener, key);
      open_passive(child.tcb, config_for(child, key), choose_isn(child.local, child.remote, now), s,
                   now);
      pump(child, now);
      end_or_arm(child, now);
      return;
    }
    case Unmatched::Kind::OpenFromCookie:
      open_from(*listener, c, u.syn, s, key, now);
      return;
  }
}

// Creates a half-open connection of the listener.
Socket& StackCore::new_child(Socket& listener, const FlowKey& key) {
  ++listener.backlog.half_open;
  Socket& child = sockets_.add(&pool_, listener.options);
  child.kind = Socket::Kind::Stream;
  child.round_begin = last_now_;
  grants_.open(child);
  child.has_handle = false;
  child.pending = true;
  child.parent_slot = listener.slot;
  child.parent_generation = listener.generation;
  child.local = key.local_end();
  child.remote = key.remote_end();
  flows_.insert(key, child.slot);
  return child;
}

// `s` answers a cookie that was sent for the SYN `cookie`.
void StackCore::open_from(Socket& listener, const net::Classified& c, const Segment& cookie,
                          const Segment& s, const FlowKey& key, Instant now) {
  Socket& child = new_child(listener, key);
  const std::uint32_t slot = child.slot, generation = child.generation;
  open_from_cookie(child.tcb, config_for(child, key), cookie.ack, cookie, now);
  take_segment(child, c, s, now);
  // If this segment does not open the connection, nothing else ever would.
  Socket* left = sockets_.at(slot, generation);
  if (left != nullptr && left->tcb.state == State::SynReceived) {
    enter_closed(left->tcb, CloseReason::None);
    end_or_arm(*left, now);
  }
}

void StackCore::on_established(Socket& s) {
  s.was_connected = true;
  if (!s.pending) {
    note(s, kConnected | kWritable);
    return;
  }
  ++counters_.opened_passive;
  Socket& parent = *sockets_.at(s.parent_slot);
  --parent.backlog.half_open;
  ++parent.backlog.waiting;
  parent.ready.push_back(s.slot);
  note(parent, kAcceptable);
}

void StackCore::take_segment(Socket& s, const net::Classified& c, const Segment& seg, Instant now) {
  const Check verdict = check(s.tcb, seg, now);
  const Answer own = answer(s.tcb, verdict, seg, counters_, now);
  switch (own.kind) {
    case Answer::Kind::Process:
      break;
    case Answer::Kind::Nothing:
      return;
    case Answer::Kind::Send:
      emit(s, own.plan, now);
      end_or_arm(s, now);
      return;
    case Answer::Kind::Rst:
      emit_reset(c, own.reset, now);
      if (after_reset_sent(s.tcb)) pump(s, now);
      return;
    case Answer::Kind::Ended:
      ++counters_.resets_received;
      take_reset(s.tcb, now);
      end_or_arm(s, now);
      return;
  }
  if (s.pending && !s.was_connected && sockets_.at(s.parent_slot)->backlog.full()) {
    ++counters_.dropped_backlog;  // our SYN-ACK will be resent
    return;
  }
  const AckResult ack = take_ack(s.tcb, seg, verdict, now);
  if (ack.ack_first) emit(s, plan_ack(s.tcb), now);
  if (ack.established) on_established(s);
  if (ack.una_advanced) {
    s.tx.release_to(ack.una.value());
    grants_.on_acknowledged(s);
    if (s.tx.empty() && s.tx.memory() > 65536) s.tx.release_memory();
    if (!s.write_closed && s.has_handle) note(s, kWritable);
  }
  if (verdict.arrival != Arrival::None && s.tcb.state != State::Closed &&
      synchronized(s.tcb.state)) {
    take_payload(s, seg, verdict, now);
  }
  if (!s.touched && in_burst_) {
    s.touched = true;
    touched_.push_back(s.slot);
  }
  if (!in_burst_) end_of_burst(s.tcb);
  pump(s, now);
  end_or_arm(s, now);
}

void StackCore::take_payload(Socket& s, const Segment& seg, const Check& c, Instant now) {
  // A segment that needs an ACK of its own comes after the pending ACK.
  const bool own_ack = c.arrival != Arrival::InOrder || s.tcb.rcv.holes.size() != 0;
  if (own_ack && ack_pending(s.tcb)) emit(s, plan_ack(s.tcb), now);
  AckNeed need = AckNeed::None;
  switch (c.arrival) {
    case Arrival::InOrder:
    case Arrival::OutOfOrder:
    case Arrival::Overlap:
      if (s.orphan && c.new_begin < c.new_end) {
        // RFC 9293 3.10.4 (RFC 1122 4.2.2.13): data for an endpoint that the program has closed.
        reset_now(s, now);
        return;
      }
      need = store(s, seg, c, now);
      break;
    default:
      if (c.arrival == Arrival::Duplicate && c.fin && c.end == s.tcb.rcv.holes.rcv_nxt()) {
        take_run(s, c.end, c.end, seg, c, now);  // its data is old, its FIN is new
        need = AckNeed::Now;
      } else {
        need = refuse(s.tcb, c, false, false, now);
      }
      break;
  }
  if (need == AckNeed::Now) emit(s, plan_ack(s.tcb), now);
}

// Stores every missing run of the segment, with one ACK for all.
AckNeed StackCore::store(Socket& s, const Segment& seg, const Check& c, Instant now) {
  if (c.new_begin == c.new_end) {
    take_run(s, c.end, c.end, seg, c, now);
    return AckNeed::Now;
  }
  const HoleList& holes = s.tcb.rcv.holes;
  const StreamOffset before = holes.rcv_nxt();
  if (c.arrival == Arrival::Overlap) note_duplicate_part(s.tcb, c);
  bool taken = false;
  AckNeed need = AckNeed::None;
  StreamOffset at = c.new_begin;
  while (at < c.new_end) {
    // The list changes with each stored run, so look again.
    StreamOffset from = std::max(at, holes.rcv_nxt()), to = c.new_end;
    for (std::size_t i = 0; i < holes.size() && holes[i].block < to; ++i) {
      if (from < holes[i].block) {
        to = holes[i].block;
        break;
      }
      from = std::max(from, holes[i].block_end);
    }
    if (from >= c.new_end) break;
    if (holes.exceeds_limit(from, to) || !take_run(s, from, to, seg, c, now)) break;
    taken = true;
    at = to;
  }
  if (!taken) return refuse(s.tcb, c, false, false, now);
  if (holes.rcv_nxt() > before) note(s, kReadable);
  if (s.tcb.rcv.ack_due) need = AckNeed::Now;
  if (set_receive_room(s.tcb, s.receive_room(), now)) need = AckNeed::Now;
  return need;
}

bool StackCore::take_run(Socket& s, StreamOffset from, StreamOffset to, const Segment& seg,
                         const Check& c, Instant now) {
  if (from < to && !s.read_closed &&
      !s.rx.write(from.value(), seg.payload.subspan(from - c.begin, to - from))) {
    return false;
  }
  const Receipt r = commit(s.tcb, from, to, c.fin && to == c.end, seg.has(kPsh), now);
  if (s.read_closed) s.rx.advance(r.rcv_nxt.value());
  if (r.fin) note(s, kPeerClosed | kReadable);
  return true;
}

}  // namespace urnic::tcp
