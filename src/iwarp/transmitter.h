// Sends through our own TCP: TCP decides what may be sent, the stream's sender cuts whole FPDUs for
// it, and copy, CRC and checksum are done in one pass directly in the port's buffer (D5).
#pragma once

#include "iwarp/flush.h"
#include "iwarp/found.h"
#include "iwarp/side_state.h"
#include "net/frame_head.h"

namespace urnic::iwarp {

// The result of a turn at sending.
struct Sent {
  bool more = false;         // more could be sent: the turn is over, or the port is full
  bool unreachable = false;  // there is no route to a peer that has never answered
  Found found;
};

class Transmitter {
 public:
  Transmitter(SideState* s, Completions* completions) : s_(*s), completions_(*completions) {}

  // Sends at most about `budget` segments.
  Sent transmit(Connection& c, unsigned budget, Instant now);
  void emit_ack(Connection& c, Instant now);
  // Sends a segment without payload, if the path is known or can be found.
  void send_control(Connection& c, const tcp::SendPlan& plan, Instant now);
  // Sends the pending RST of TCP, if there is one and nothing must be waited for.
  void send_reset_now(Connection& c, Instant now);
  // Sends a segment of no connection to the sender of `head`. Returns false if there was no room.
  bool send_stateless(const net::FrameHead& head, const tcp::Segment& reply);

 private:
  enum class Route : std::uint8_t { Known, Pending, None };
  Route route(Connection& c, Instant now);
  bool route_quietly(Connection& c, Instant now);
  bool send_segment(Connection& c, const tcp::SendPlan& plan, Instant now, Found* found);
  unsigned send_run(Connection& c, unsigned most, Instant now);
  bool loop_full(const Connection& c) const { return c.loopback && s_.wire.loop_full(); }

  SideState& s_;
  Completions& completions_;
};

// Completes the work requests whose bytes are acknowledged below `una`, and copied ones that were
// passed to TCP (E-23).
inline void complete_acked(Completions& completions, Connection& c, StreamOffset una) {
  c.stream->sender.acked(una, [&](const verbs::Completion& done) {
    if (c.qp != nullptr) completions.post(*c.qp, done);
  });
}
// Reports the Terminate for what the sender could not do for a local reason.
inline void note_failed_sender(const Connection& c, Found* found) {
  ddp::Sender& sender = c.stream->sender;
  found->violate(sender.failed() ? sender.failure() : ddp::Violation::LocalCatastrophic,
                 sender.failure_header());
}

}  // namespace urnic::iwarp
