// What TCP is told of a segment and what the consumer is told of its messages: commit or refuse,
// deliver, acknowledge (9.2, R-100).

#include <algorithm>

#include "engine/engine.h"
#include "tcp/predict.h"

namespace urnic::engine {

// TCP takes the range; what may be delivered now is (9.2, R-100).
void Engine::commit_range(Connection& c, StreamOffset begin, StreamOffset end, bool fin, bool psh,
                          const ddp::MessageCounts& counts, Instant now) {
  // In order with nothing missing: its ACK is owed, and what it ends is delivered.
  if (!fin && tcp::commit_predicted(c.tcb, begin, end)) [[likely]] {
    if (counts.any()) deliver(c, counts, now);
    return;
  }
  const tcp::Receipt receipt = tcp::commit(c.tcb, begin, end, fin, psh, now);
  if (begin < end) {
    ddp::MessageCounts own;
    const ddp::MessageCounts behind = c.hole_counters.on_commit(receipt.holes, counts, &own);
    if (own.any()) deliver(c, own, now);
    if (!c.is_over() && behind.any() && c.stage != Stage::Terminated) deliver(c, behind, now);
  }
  if (c.is_over()) return;
  act_on_ack(c, receipt.ack, now);
  if (!receipt.fin) return;
  if ((c.stage == Stage::Full || c.stage == Stage::Closing) && !c.buffer.empty()) {
    c.fin_waits = true;  // the octets before it are parsed first
  } else {
    on_fin(c, now);
  }
}

void Engine::deliver(Connection& c, const ddp::MessageCounts& counts, Instant now) {
  if (c.qp == nullptr || !counts.any()) return;
  c.counters.sends_in += counts.sends;
  c.counters.read_requests_in += counts.read_requests;
  ByteView offending;
  const ddp::Violation v = ddp::deliver(
      *c.stream, counts, [&](const auto& done) { post_completion(*c.qp, done); }, &offending);
  if (counts.terminates != 0 && c.stream->terminate_received) {
    on_terminate_received(c, now);
    return;
  }
  if (v != ddp::Violation::None) raise_terminate(c, v, offending, now);
  if (counts.read_requests != 0) enqueue_tx(c);
}

void Engine::ulp_drop(Connection& c, const tcp::Check& check, Instant now) {
  if (tcp::ack_owed(c.tcb)) emit_ack(c, now);
  const tcp::AckNeed need =
      tcp::refuse(c.tcb, check, true, c.context.config.immediate_dup_ack, now);
  if (need == tcp::AckNeed::Now) ++c.counters.immediate_dup_acks;
  act_on_ack(c, need, now);
}

void Engine::act_on_ack(Connection& c, tcp::AckNeed need, Instant now) {
  if (need != tcp::AckNeed::Now) return;  // Owed: at the end of the burst
  ++c.counters.dup_acks_out;
  emit_ack(c, now);
}

// After a Terminate the stream is dead, but its TCP is not: acknowledge and forget.
void Engine::discard_payload(Connection& c, const InHand& in, Instant now) {
  const tcp::Check& check = in.check;
  StreamOffset at = check.new_begin, from, to;
  while (c.tcb.rcv.holes.next_missing(at, check.new_end, &from, &to)) {
    if (from != c.tcb.rcv.holes.rcv_nxt()) {
      act_on_ack(c, tcp::refuse(c.tcb, check, false, false, now), now);
      return;
    }
    commit_range(c, from, to, check.fin && to == check.end, in.seg.has(tcp::kPsh), {}, now);
    if (c.is_over()) return;
    at = to;
  }
}

std::uint64_t Engine::receive_room(const Connection& c) const {
  return c.context.type == fastpath::ConnectionType::Fast
             ? options_.tcp.receive_buffer
             : c.buffer.room(c.tcb.rcv.holes.rcv_nxt());
}

void Engine::update_receive_room(Connection& c, Instant now) {
  if (c.link != nullptr) return;  // the kernel's window
  if (tcp::set_receive_room(c.tcb, receive_room(c), now)) emit_ack(c, now);
}

void Engine::end_of_burst(Instant now) {
  look_at_shared_limits();
  while (!touched_.empty()) {
    Connection* c = touched_.pop(connections_);
    if (c == nullptr) continue;
    // An ACK that this makes due leaves with what is sent now.
    if (c->stage != Stage::Startup) tcp::set_receive_room(c->tcb, receive_room(*c), now);
    tcp::end_of_burst(c->tcb, now);
    enqueue_tx(*c);
    arm_timer(*c);
  }
}

}  // namespace urnic::engine
