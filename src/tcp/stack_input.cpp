// Datagrams into segments, segments to connections and listeners.
#include <algorithm>

#include "base/inet_checksum.h"
#include "tcp/listen.h"
#include "tcp/stack_socket.h"
#include "tcp/syn_cookie.h"

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
    Socket* s = sockets_[slot].get();
    if (s == nullptr || !s->touched) continue;
    s->touched = false;
    end_of_burst(s->tcb, entry.now());
    pump(*s, entry.now());
    settle(*s, entry.now());
  }
  touched_.clear();
}

void Stack::icmp_error(const net::IcmpError& error, Instant at) {
  const Entry entry(*this, at);
  on_icmp_error(error, entry.now());
}

void Stack::take_datagram(ByteView datagram, Instant now) {
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
  if (const std::uint32_t* slot = flows_.find({c.dst, c.src, s.dst_port, s.src_port})) {
    Socket& socket = *sockets_[*slot];
    if (!may_reopen(socket.tcb, s) || find_listener({c.dst, s.dst_port}) == nullptr) {
      take_segment(socket, c, s, now);
      return;
    }
    // A new incarnation may begin where an old one lingers (RFC 9293 3.6.1).
    enter_closed(socket.tcb, CloseReason::None);
    settle(socket, now);
  }
  take_unmatched(c, s, now);
}

void Stack::take_icmp(const net::Classified& c, ByteView message, Instant now) {
  if (config_.verify_checksums && !net::icmp_checksum_ok(message, c.v6 ? c.pseudo_sum : 0)) {
    ++counters_.dropped_checksum;
    return;
  }
  if (const auto error = net::parse_icmp_error(message, c.v6)) on_icmp_error(*error, now);
}

void Stack::on_icmp_error(const net::IcmpError& e, Instant now) {
  const std::uint32_t* slot = flows_.find({e.local.ip, e.remote.ip, e.local.port, e.remote.port});
  if (slot == nullptr) return;
  Socket& s = *sockets_[*slot];
  if (e.kind == net::IcmpError::Kind::PacketTooBig) {
    packet_too_big(s.tcb, e.mtu, Seq(e.seq), now);
  } else {
    unreachable(s.tcb, e.kind == net::IcmpError::Kind::Unreachable && e.hard, Seq(e.seq), now);
  }
  pump(s, now);
  settle(s, now);
}

Stack::Socket* Stack::find_listener(const SocketAddress& local) const {
  Socket* any = nullptr;
  for (std::size_t i = first_listener(local.port); i < listeners_.size(); ++i) {
    Socket* s = sockets_[listeners_[i]].get();
    if (s->local.port != local.port) break;
    if (s->local.ip.is_v6() != local.ip.is_v6()) continue;
    if (s->local.ip == local.ip) return s;
    if (s->local.ip.is_any()) any = s;
  }
  return any;
}

void Stack::take_unmatched(const net::Classified& c, const Segment& s, Instant now) {
  const SocketAddress local{c.dst, s.dst_port}, remote{c.src, s.src_port};
  Socket* listener = find_listener(local);
  if (listener == nullptr) {
    ++counters_.no_connection;
    if (!s.has(kRst)) emit_reset(c, closed_reply(s), now);
    return;
  }
  switch (check_listen(s)) {
    case ListenAction::Discard:
      return;
    case ListenAction::Rst:
      if (!take_cookie(*listener, c, s, now)) emit_reset(c, closed_reply(s), now);
      return;
    case ListenAction::Accept:
      break;
  }
  // The peer's SYN will come again. One from ourselves to ourselves never could be answered.
  const bool full = listener->half_open >= listener->options.syn_backlog;
  if ((full && !listener->options.syn_cookies) || listener->ready.size() >= listener->backlog ||
      local == remote) {
    ++counters_.dropped_backlog;
    return;
  }
  if (full) {
    listener->cookies_out = true;
    listener->last_cookie = now;
    ++counters_.cookies_sent;
    // What the connection to come has for sure.
    const std::uint32_t window = std::min<std::uint32_t>(
        listener->options.tcp.receive_buffer, listener->options.auto_tune ? kLeastBuffer : 0xffff);
    emit_stateless(
        c,
        cookie_syn_ack(keys_.cookies, local, remote, s, connection_config(*listener, local, remote),
                       static_cast<std::uint16_t>(window), now),
        now);
    return;
  }
  Socket& child = new_child(*listener, c, s);
  open_passive(child.tcb, connection_config(child, local, remote), choose_isn(local, remote, now),
               s, now);
  pump(child, now);
  settle(child, now);
}

// A connection of the listener's, half open.
Stack::Socket& Stack::new_child(Socket& listener, const net::Classified& c, const Segment& s) {
  ++listener.half_open;
  Socket& child = new_socket();
  child.options = listener.options;
  child.kind = Socket::Kind::Stream;
  child.round_begin = last_now_;
  grant_first(child);
  child.has_handle = false;
  child.pending = true;
  child.parent_slot = listener.slot;
  child.parent_generation = listener.generation;
  child.local = {c.dst, s.dst_port};
  child.remote = {c.src, s.src_port};
  flows_.insert({c.dst, c.src, s.dst_port, s.src_port}, child.slot);
  return child;
}

// The answer to a cookie opens a connection; false when it is none, or too late, or nobody could
// accept it.
bool Stack::take_cookie(Socket& listener, const net::Classified& c, const Segment& s, Instant now) {
  if (s.has(kSyn) || !listener.cookies_out || now - listener.last_cookie > kCookieLife * 2)
    return false;
  const SocketAddress local{c.dst, s.dst_port}, remote{c.src, s.src_port};
  const Config config = connection_config(listener, local, remote);
  const auto syn = syn_of_cookie(keys_.cookies, local, remote, s, config, now);
  if (!syn) return false;
  if (listener.ready.size() >= listener.backlog) {
    ++counters_.dropped_backlog;  // whatever the peer sends next asks again
    return true;
  }
  ++counters_.cookies_taken;
  Socket& child = new_child(listener, c, s);
  const std::uint32_t slot = child.slot, generation = child.generation;
  open_from_cookie(child.tcb, connection_config(child, local, remote), syn->ack, *syn, now);
  take_segment(child, c, s, now);
  // Nothing would ever wake a connection that this very segment does not open.
  Socket* left = sockets_[slot].get();
  if (left != nullptr && left->generation == generation && left->tcb.state == State::SynReceived) {
    enter_closed(left->tcb, CloseReason::None);
    settle(*left, now);
  }
  return true;
}

void Stack::on_established(Socket& s) {
  s.was_connected = true;
  if (!s.pending) {
    note(s, kConnected | kWritable);
    return;
  }
  ++counters_.opened_passive;
  Socket& parent = *sockets_[s.parent_slot];
  --parent.half_open;
  parent.ready.push_back(s.slot);
  note(parent, kAcceptable);
}

void Stack::take_segment(Socket& s, const net::Classified& c, const Segment& seg, Instant now) {
  const Check verdict = check(s.tcb, seg, now);
  switch (verdict.action) {
    case Action::Discard:
      return;
    case Action::Ack:
      emit(s, plan_ack(s.tcb), now);
      settle(s, now);
      return;
    case Action::SynAck:
    case Action::ChallengeAck:
      if (!may_challenge(s.tcb, now)) {
        ++counters_.challenge_acks_withheld;
        return;
      }
      ++counters_.challenge_acks;
      emit(s, verdict.action == Action::SynAck ? plan_syn_ack(s.tcb) : plan_ack(s.tcb), now);
      settle(s, now);
      return;
    case Action::Rst:
      emit_reset(c, reset_reply(s.tcb, seg, now), now);
      if (after_reset_sent(s.tcb)) pump(s, now);
      return;
    case Action::Reset:
      ++counters_.resets_received;
      take_reset(s.tcb, now);
      settle(s, now);
      return;
    case Action::Process:
      break;
  }
  if (s.pending && !s.was_connected) {
    const Socket& parent = *sockets_[s.parent_slot];
    if (parent.ready.size() >= parent.backlog) {  // the SYN-ACK will be sent again
      ++counters_.dropped_backlog;
      return;
    }
  }
  const AckResult ack = take_ack(s.tcb, seg, verdict, now);
  if (ack.ack_first) emit(s, plan_ack(s.tcb), now);
  if (ack.established) on_established(s);
  if (ack.una_advanced) {
    s.tx.release_to(ack.una.value());
    tune_send(s);
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
  if (!in_burst_) end_of_burst(s.tcb, now);
  pump(s, now);
  settle(s, now);
}

void Stack::take_payload(Socket& s, const Segment& seg, const Check& c, Instant now) {
  // Whatever draws an ACK of its own comes after what was owed.
  const bool own_ack = c.arrival != Arrival::InOrder || s.tcb.rcv.holes.size() != 0;
  if (own_ack && ack_owed(s.tcb)) emit(s, plan_ack(s.tcb), now);
  AckNeed need = AckNeed::None;
  switch (c.arrival) {
    case Arrival::InOrder:
    case Arrival::OutOfOrder:
    case Arrival::Overlap:
      if (s.orphan && c.new_begin < c.new_end) {
        // RFC 9293 3.10.4 (RFC 1122 4.2.2.13): data for an endpoint that nobody can read any more.
        reset_now(s, now);
        return;
      }
      need = store(s, seg, c, now);
      break;
    default:
      if (c.arrival == Arrival::Duplicate && c.fin && c.end == s.tcb.rcv.holes.rcv_nxt()) {
        take_run(s, c.end, c.end, seg, c, now);  // its data is old, its FIN is not
        need = AckNeed::Now;
      } else {
        need = refuse(s.tcb, c, false, false, now);
      }
      break;
  }
  if (need == AckNeed::Now) emit(s, plan_ack(s.tcb), now);
}

// Every run of the segment that is missing, one ACK for all of them.
AckNeed Stack::store(Socket& s, const Segment& seg, const Check& c, Instant now) {
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
    // The list changes with each run that is taken; look again.
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

bool Stack::take_run(Socket& s, StreamOffset from, StreamOffset to, const Segment& seg,
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
