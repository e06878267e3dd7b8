// Own TCP's way out: TCP says what may go, the stream's sender cuts whole FPDUs for it, and copy,
// CRC and checksum happen in one pass straight into the port's buffer (D5).
#pragma once

#include "iwarp/flush.h"
#include "iwarp/found.h"
#include "iwarp/side_state.h"
#include "net/frame_head.h"

namespace urnic::iwarp {

// What a turn at sending came to.
struct Sent {
  bool more = false;         // there is more that could go: the turn is over, or the port is full
  bool unreachable = false;  // there is no way to a peer that has never answered
  Found found;
};

class Transmitter {
 public:
  Transmitter(SideState* s, Completions* completions) : s_(*s), completions_(*completions) {}

  // At most about `budget` segments.
  Sent transmit(Connection& c, unsigned budget, Instant now);
  void emit_ack(Connection& c, Instant now);
  // A segment without payload, if the way is known or found.
  void send_control(Connection& c, const tcp::SendPlan& plan, Instant now);
  // The RST that TCP owes, if it owes one and nothing has to be waited for.
  void send_reset_now(Connection& c, Instant now);
  // A segment of no connection, to where `head` came from. False when it found no room.
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

// Work requests whose bytes are acknowledged below `una`, and kept ones that are in TCP's hands
// (E-23), complete.
inline void complete_acked(Completions& completions, Connection& c, StreamOffset una) {
  c.stream->sender.acked(una, [&](const verbs::Completion& done) {
    if (c.qp != nullptr) completions.post(*c.qp, done);
  });
}
// What the sender could not do for a local reason: the Terminate it names.
inline void note_failed_sender(const Connection& c, Found* found) {
  ddp::Sender& sender = c.stream->sender;
  found->violate(sender.failed() ? sender.failure() : ddp::Violation::LocalCatastrophic,
                 sender.failure_header());
}

}  // namespace urnic::iwarp
