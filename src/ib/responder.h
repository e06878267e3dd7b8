// The responder half of an RC queue pair: requests are carried out, answered in their order, and
// what comes twice is answered and not done twice.
//
//   take()            a request has come: judged, then carried out and committed, refused, or kept
//   take_held()       one that was kept behind a gap has its turn
//   due()             something is to be answered now
//   next_response()   packet by packet, until it says no
//   failed()          the last NAK has left: the queue pair goes to Error
//
// Answers are owed, not sent, when requests are taken: whoever takes a burst of them and asks for
// responses afterwards sends one ACK for all (IB-41), and never one before the READ responses that
// come first (IB-38). Without AckReq nothing is due.
//
// A function of (state, input): it sends nothing and reads no clock. Owned by the engine of its
// queue pair, every call under its ownership; verbs::ReceiveQueue::post() goes on beside it.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "ib/packet.h"
#include "ib/responder_state.h"
#include "ib/sack.h"
#include "verbs/work.h"

namespace urnic::ib {

// What became of a request.
struct Received {
  Verdict verdict = Verdict::Accept;
  bool completed = false;  // a receive, with an error if the verdict is a refusal
  bool more = false;       // one that was kept has its turn: take_held() is next
};

// emit_packet() puts it together.
struct ResponsePacket {
  PacketHeader header;
  // Of registered memory, and holds until that is deregistered or written; a SACK's lies in `own`:
  // such a packet is not copied.
  ByteView payload;
  SackBytes own;
};

struct NextMiddle;
struct PlainWrite;  // plain_write.h

class Responder {
 public:
  // In Rtr, with the attributes of the move there, which outlive it like queue and table; their
  // access rights and RNR timer may change later.
  // `pool` lends what is kept behind gaps; without one nothing is.
  Responder(const QpAttributes& attributes, verbs::ReceiveQueue* rq, verbs::MemoryTable* memory,
            HeldPool* pool = nullptr)
      : s_(attributes, rq, memory, pool) {}
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // `request` has passed check(), in a state that takes requests, and is not a response. With
  // `completed` the completion of the oldest receive, which has left its queue, is in
  // `*completion`; its `op` is WriteImm if a WRITE with Immediate Data used it, else Send. A fatal
  // verdict (is_fatal) ends the queue pair when its NAK has left; nothing is taken any more.
  Received take(const ParsedPacket& request, verbs::Completion* completion);
  // The same of one that admit_plain_write() has admitted (plain_write.h): nothing completes, and
  // nothing is owed but an ACK. False, and nothing has changed, when its memory has gone: take()
  // refuses it.
  [[nodiscard]] bool take_plain(const PlainWrite&, const std::uint8_t* payload);
  // The same of one that is as `next` has it, which then knows the one behind it.
  [[nodiscard]] bool take_middle(NextMiddle* next, const std::uint8_t* payload, bool ack_request);
  // A gap has closed (Received::more): the first request that was kept behind it, as if it came
  // now. Called until there is no more.
  Received take_held(verbs::Completion* completion);

  // A request waits for a receive, and no RNR NAK has gone out (S-9): the owner calls one of these,
  // as soon as a receive has been posted or when LossRules::rnr_park_time is up.
  bool parked() const { return s_.parked; }
  // True: it has its turn, take_held() is next.
  bool receive_posted();
  // The RNR NAK is owed now.
  void stop_waiting();

  // Whether next_response() has a packet that must leave.
  bool due() const {
    return !s_.ended && (s_.resources.any_due() || s_.nak.owed() || s_.ack_due || s_.sack_due);
  }
  // The next packet to leave, which counts as sent. False when there is none.
  bool next_response(ResponsePacket* out);
  // The payload of a response that was returned cannot be read, its memory has gone: that one does
  // not leave, but this NAK, and the queue pair ends.
  void lose_response(ResponsePacket* response);
  // Queues an ACK that nobody requested, with fresh credits and MSN. It repeats the last PSN that
  // was acknowledged, at first the one before the initial PSN (IB-87).
  void queue_unsolicited_ack() { s_.ack_due = !is_fatal(s_.failure); }

  // The queue pair is in Error: nothing is taken any more, and what is kept is given back.
  void forget_held() {
    s_.held.clear();
    s_.parked = false;
  }

  // A request was refused for good, and its peer has been told.
  bool failed() const { return s_.ended; }
  // Why, from the refusal on; else Accept.
  Verdict failure() const { return s_.failure; }

  const ResponderCounters& counters() const { return s_.counters; }
  // For tests and statistics.
  const ResponderState& state() const { return s_; }

 private:
  ResponderState s_;
};

}  // namespace urnic::ib
