// The send path: TCP says what may go, the stream's sender cuts whole FPDUs for it, and copy, CRC
// and checksum happen in one pass straight into the port's buffer (D5).
#include <cstring>

#include "base/inet_checksum.h"
#include "engine/engine.h"

namespace urnic::engine {
namespace {

// Segments one connection may send before the next one has its turn.
constexpr unsigned kTurn = 64;
// Frames to own addresses that may wait for the next turn: those of connections, which wait until
// there is room again, and some more for replies without one, which are lost.
constexpr std::size_t kMostLooped = 4096;
constexpr std::size_t kMostLoopedReplies = kMostLooped + 1024;

}  // namespace

void Engine::enqueue_tx(Connection& c) {
  sending_.push(c);
}

// True when anything was sent or done with: who could send nothing for want of room waits for it
// and does not try again at once.
bool Engine::transmit_round(Instant now) {
  tx_.clear_full();
  const std::uint64_t sent = tx_.frames_sent();
  const std::size_t looped = loop_.size();
  send_control_frames(now);
  const std::size_t n = sending_.size();
  bool any = false;
  for (std::size_t i = 0; i < n && !tx_.full(); ++i) {
    Connection* c = sending_.pop(connections_);
    if (c == nullptr) {
      any = true;
      continue;
    }
    const bool more = transmit(*c, now, kTurn);
    if (more) {
      enqueue_tx(*c);
    } else {
      any = true;
    }
    arm_timer(*c);
  }
  finish_tx(now);
  return any || tx_.frames_sent() != sent || loop_.size() != looped;
}

void Engine::finish_tx(Instant now) {
  send_control_frames(now);  // looking for a next hop may just have asked for an ARP or ND request
  if (tx_.full()) ++counters_.tx_full;
  tx_.flush();
}

void Engine::doorbell(verbs::QueuePair& qp, Instant now) {
  const Turn turn(*this);
  Connection* c = find(qp.connection);
  if (c == nullptr) return;
  if (!sending_.empty()) {  // others wait for the port: in turn
    enqueue_tx(*c);
    transmit_round(now);
    return;
  }
  tx_.clear_full();
  const bool more = transmit(*c, now, kTurn);
  if (more) enqueue_tx(*c);
  arm_timer(*c);
  finish_tx(now);
}

bool Engine::transmit(Connection& c, Instant now, unsigned budget) {
  if (c.link != nullptr) return transmit_kernel(c, now);
  if (!c.routed && !route(c, now)) return false;
  bool more = false;
  for (;;) {
    if (budget == 0) {
      more = true;
      break;
    }
    if (const unsigned n = send_run(c, budget, now); n != 0) {
      budget -= n;
      continue;
    }
    --budget;
    StreamOffset end;
    if (c.stream != nullptr) {
      c.stream->sender.execute_due();
      if (c.stream->sender.failed() && c.takes_fpdus()) fail_sender(c, now);
      end = c.stream->sender.available();
    }
    const tcp::SendPlan plan = tcp::plan_send(c.tcb, {end, false}, now);
    if (plan.kind == tcp::Send::None) break;
    if (!send_segment(c, plan, now)) {
      more = tx_.full() || loop_full(c);
      break;
    }
    if (c.is_over()) return false;
  }
  if (c.stream != nullptr) {  // E-23: what is kept completes when handed to TCP
    c.stream->sender.acked(c.tcb.snd.una, [&](const verbs::Completion& done) {
      if (c.qp != nullptr) post_completion(*c.qp, done);
    });
  }
  if (c.stage == Stage::Closing || c.stage == Stage::Terminated) try_finish_close(c, now);
  if (!c.is_over() && c.tcb.state == tcp::State::Closed) on_closed(c, now);
  return more;
}

// One segment by `plan`. False when nothing was sent (port full, or the source has nothing whole).
bool Engine::send_segment(Connection& c, const tcp::SendPlan& plan, Instant now) {
  std::uint8_t* frame;
  port::Frame* slot = nullptr;
  if (c.loopback) {
    if (loop_full(c)) return false;
    loop_.emplace_back(c.header.size() + plan.header + mtu_);
    frame = loop_.back().data();
  } else {
    slot = tx_.next();
    if (slot == nullptr) return false;
    frame = slot->data[0];
  }
  std::uint8_t* const tcp_at = frame + c.header.size();
  std::uint32_t length = 0, sum = 0;
  bool push = false, ok = true;
  const bool carries = plan.kind == tcp::Send::Data || plan.kind == tcp::Send::Retransmit ||
                       plan.kind == tcp::Send::Probe;
  if (carries && plan.limit != 0) {
    ddp::Sender& sender = c.stream->sender;
    const auto cut = sender.cut(plan.begin, plan.limit, tcp::emss(c.tcb), plan.must_cut);
    if (cut.len == 0) {
      if (c.loopback) loop_.pop_back();
      if (sender.failed()) fail_sender(c, now);
      return false;
    }
    sum = sender.fill(plan.begin, cut.len, tcp_at + plan.header, &ok);
    length = cut.len;
    push = cut.push;
  }
  if (!ok) {
    if (c.loopback) loop_.pop_back();
    fail_sender(c, now);
    return false;
  }
  std::uint8_t ecn = 0;
  tcp::write_header(c.tcb, plan, length, push, c.key.local_port, c.key.remote_port,
                    c.header.pseudo_sum(0), sum, now, tcp_at, &ecn);
  const std::uint32_t total = static_cast<std::uint32_t>(c.header.size()) + plan.header + length;
  c.header.emit(frame, plan.header + length, c.ip_id++, ecn);
  tcp::sent(c.tcb, plan, length, push, now);
  ++c.counters.segments_out;
  if (plan.kind == tcp::Send::Retransmit) ++c.counters.retransmits;
  if (c.loopback) {
    loop_.back().resize(total);
  } else {
    slot->len[0] = total;
    slot->len[1] = 0;
    tx_.keep();
  }
  return true;
}

// A work request or read response could not be sent for a local reason: the stream ends with the
// Terminate the sender names.
void Engine::fail_sender(Connection& c, Instant now) {
  const ddp::Violation v =
      c.stream->sender.failed() ? c.stream->sender.failure() : ddp::Violation::LocalCatastrophic;
  raise_terminate(c, v, c.stream->sender.failure_header(), now);
}

void Engine::emit_ack(Connection& c, Instant now) {
  if (!c.routed && !route(c, now)) return;
  send_segment(c, tcp::plan_ack(c.tcb), now);
}

bool Engine::loop_full(const Connection& c) const {
  return c.loopback && loop_.size() >= kMostLooped;
}

// A segment of no connection, to where `s` came from. False when it found no room.
bool Engine::send_stateless(const Staged& s, const tcp::Segment& reply) {
  const bool loopback = interface_.is_own(s.net.src);
  port::Frame* slot = loopback ? nullptr : tx_.next();
  if (loopback ? loop_.size() >= kMostLoopedReplies : slot == nullptr) return false;
  const net::HeaderTemplate header = make_header(s.net.src_mac, s.net.dst, s.net.src);
  std::uint8_t bytes[net::kHeadSpan];
  std::uint8_t* const frame = loopback ? bytes : slot->data[0];
  std::uint8_t* const tcp_at = frame + header.size();
  const std::size_t n = tcp::emit_header(reply, tcp_at);
  const std::uint64_t sum =
      std::uint64_t{header.pseudo_sum(static_cast<std::uint32_t>(n))} + inet_sum({tcp_at, n});
  store_be16(tcp_at + 16, inet_checksum(sum));
  header.emit(frame, static_cast<std::uint32_t>(n), 0, 0);
  if (loopback) {  // to ourselves (E-30)
    loop_.emplace_back(bytes, bytes + header.size() + n);
    return true;
  }
  slot->len[0] = static_cast<std::uint32_t>(header.size() + n);
  slot->len[1] = 0;
  tx_.keep();
  return true;
}

// Next hop to MAC. False while ARP or ND has not answered; transmission resumes by event.
bool Engine::route(Connection& c, Instant now) {
  using Kind = net::Resolution::Kind;
  const net::Resolution r = interface_.resolve(c.key.remote, now);
  c.next_hop = r.next_hop;
  switch (r.kind) {
    case Kind::Mac:
      c.header = make_header(r.mac, c.key.local, c.key.remote);
      c.routed = true;
      return true;
    case Kind::Loopback:
      c.header = make_header(interface_.mac(), c.key.local, c.key.remote);
      c.routed = c.loopback = true;
      return true;
    case Kind::Pending:
      return false;
    case Kind::Unreachable:
      // Established: TCP's timers decide. Whoever asked for the connection is there, or has just
      // come back, and asks again.
      if (c.stage != Stage::Opening || c.tcb.passive) return false;
      fail_connection(c, Errc::unreachable, "no route to " + c.key.remote.to_string(), now);
      return false;
  }
  return false;
}

net::HeaderTemplate Engine::make_header(const MacAddress& to, const IpAddress& from,
                                        const IpAddress& dst) const {
  net::HeaderTemplateConfig h;
  h.src_mac = interface_.mac();
  h.dst_mac = to;
  h.vlan = interface_.vlan();
  h.src = from;
  h.dst = dst;
  return net::HeaderTemplate(h);
}

// ARP, ND, ICMP frames the interface wants to send.
void Engine::send_control_frames(Instant now) {
  (void)now;
  while (interface_.output_size() != 0) {
    port::Frame* slot = tx_.next();
    if (slot == nullptr) return;
    const std::size_t n = interface_.next_output({slot->data[0], tx_.frame_size()});
    if (n == 0) return;
    slot->len[0] = static_cast<std::uint32_t>(n);
    slot->len[1] = 0;
    tx_.keep();
  }
}

// Frames to own addresses come straight back (E-30).
void Engine::loop_frames(Instant now) {
  for (std::size_t n = loop_.size(); n > 0; --n) {
    const std::vector<std::uint8_t> bytes = std::move(loop_.front());
    loop_.pop_front();
    port::Frame frame{};
    frame.data[0] = const_cast<std::uint8_t*>(bytes.data());
    frame.len[0] = static_cast<std::uint32_t>(bytes.size());
    frame.csum = URNIC_CSUM_GOOD;
    receive_one(frame, now);
  }
}

}  // namespace urnic::engine
