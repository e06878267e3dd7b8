// Reports bytes to TCP and messages to the consumer: commit or refuse, deliver, acknowledge (9.2,
//
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

  // Commits the range to TCP, with the messages that end in it, and delivers what may be delivered
  // now.
  void commit_range(Connection& c, StreamOffset begin, StreamOffset end, bool fin, bool psh,
                    const ddp::MessageCounts& counts, Instant now, Found* found) {
    // In order without gaps: its ACK is pending, and the messages that end in it are delivered.
    if (!fin && tcp::commit_predicted(c.tcb, begin, end)) [[likely]] {
      if (counts.any()) deliver(c, counts, found);
      return;
    }
    commit_any(c, begin, end, fin, psh, counts, now, found);
  }
  // Completes the messages of `counts`, in their fixed order.
  void deliver(Connection& c, const ddp::MessageCounts& counts, Found* found);
  // "Dropped without acknowledgement": not committed, and possibly an immediate duplicate
  // ACK.
  void ulp_drop(Connection& c, const tcp::Check& check, Instant now);
  void act_on_ack(Connection& c, tcp::AckNeed need, Instant now);
  // After the end of the RDMA stream, but not of its TCP: acknowledges and discards the data.
  void discard_payload(Connection& c, const InHand& in, Instant now, Found* found);
  // Places and delivers one FPDU of the in-order stream. Returns false if the stream ends with it,
  // or if it must wait for a receive (ReceiveWait): then it is not consumed.
  bool take_fpdu(Connection& c, ByteView ulpdu, Found* found);
  // All data before the peer's FIN was processed that can be: reports the FIN, once.
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

  // ---- Sends without a receive (receive_wait.cpp)
  // The Send `c.starved_msn` has no receive: requests a report when one is posted.
  void want_receive(Connection& c);
  // From now on a Send waits, for a limited time.
  void begin_wait(Connection& c, Instant now);
  // The peer's FIN is known to come after a waiting Send: the wait becomes shorter.
  void shorten_receive_wait(Connection& c, Instant now);
  // A receive was posted: a waiting Send continues, in its turn. If `qp` dropped a Send, three
  // duplicate ACKs make a sender without SACK retransmit now instead of after its RTO (E-17).
  void receive_posted(verbs::QueuePair& qp, Instant now);

  // The number of bytes to which the window may be opened.
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
  ddp::Admission admission_;  // memory for the current FPDU
};

}  // namespace urnic::iwarp
