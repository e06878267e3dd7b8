// What TCP is told of bytes and what the consumer is told of its messages: commit or refuse,
// deliver, acknowledge (9.2, R-100).
#pragma once

#include <cstdint>

#include "ddp_rdma/stream.h"
#include "iwarp/flush.h"
#include "iwarp/found.h"
#include "iwarp/side_state.h"
#include "iwarp/transmitter.h"
#include "tcp/predict.h"

namespace urnic::iwarp {

class RxCommit {
 public:
  RxCommit(SideState* s, Completions* completions, Transmitter* transmitter)
      : s_(*s), completions_(*completions), transmitter_(*transmitter) {}

  // TCP takes the range, with the messages that end in it; what may be delivered now is.
  void commit_range(Connection& c, StreamOffset begin, StreamOffset end, bool fin, bool psh,
                    const ddp::MessageCounts& counts, Instant now, Found* found) {
    // In order with nothing missing: its ACK is owed, and what it ends is delivered.
    if (!fin && tcp::commit_predicted(c.tcb, begin, end)) [[likely]] {
      if (counts.any()) deliver(c, counts, found);
      return;
    }
    commit_any(c, begin, end, fin, psh, counts, now, found);
  }
  // The messages of `counts` complete, in their fixed order.
  void deliver(Connection& c, const ddp::MessageCounts& counts, Found* found);
  // "Dropped without acknowledgement": not committed, and perhaps an immediate duplicate
  // ACK.
  void ulp_drop(Connection& c, const tcp::Check& check, Instant now);
  void act_on_ack(Connection& c, tcp::AckNeed need, Instant now);
  // Behind the end of the RDMA stream, but not of its TCP: acknowledged and forgotten.
  void discard_payload(Connection& c, const InHand& in, Instant now, Found* found);
  // One FPDU of the in-order stream: placed and delivered. False when that was the end, or when it
  // has to wait for a receive (ReceiveWait): then it is not consumed.
  bool take_fpdu(Connection& c, ByteView ulpdu, Found* found);
  // All that can be taken before the peer's FIN has been: it has its turn, once.
  static void report_fin(Connection& c, Found* found) {
    if (c.peer_fin != PeerFin::AfterData) return;
    c.peer_fin = PeerFin::Reached;
    found->fin = true;
  }
  static void note_placed(Connection& c, const ddp::Admission& a) {
    ++c.counters.fpdus_in[static_cast<std::size_t>(a.segment.header.op)];
    const std::uint64_t n = a.segment.payload.size();
    c.counters.bytes_copied += n;
    if (a.segment.header.op == ddp::Opcode::Write) [[likely]] {
      c.counters.write_bytes_in += n;
      c.counters.payload_placed += n;
      return;
    }
    note_other_placed(c, a);
  }

  // ---- for want of a receive (receive_wait.cpp)
  // The Send `c.starved_msn` found none: who posts one is asked to tell.
  void want_receive(Connection& c);
  // A Send waits from now on: not for ever.
  void begin_wait(Connection& c, Instant now);
  // Behind a Send that waits, the peer's FIN is known to come: it is not made to wait for long.
  void shorten_receive_wait(Connection& c, Instant now);
  // A receive was posted: what waits for one goes on, in its turn. If `qp` dropped a Send, three
  // duplicate ACKs make a sender without SACK retransmit now instead of after its RTO (E-17).
  void receive_posted(verbs::QueuePair& qp, Instant now);

  // What the window may be opened to.
  std::uint64_t receive_room(const Connection& c) const;
  void update_receive_room(Connection& c, Instant now);

 private:
  void commit_any(Connection& c, StreamOffset begin, StreamOffset end, bool fin, bool psh,
                  const ddp::MessageCounts& counts, Instant now, Found* found);
  static void note_other_placed(Connection& c, const ddp::Admission& a);
  bool wait_for_receive(Connection& c);

  SideState& s_;
  Completions& completions_;
  Transmitter& transmitter_;
  ddp::Admission admission_;  // of the FPDU at hand: room for it
};

}  // namespace urnic::iwarp
