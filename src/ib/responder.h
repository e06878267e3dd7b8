// The responder half of an RC queue pair: executes requests and answers them in their order. A
// duplicate is answered but not executed again.
//
//   take()            a request has arrived: judged, then executed and committed, refused, or kept
//   take_held()       a request kept past a gap has its turn
//   due()             something is to be answered now
//   next_response()   packet by packet, until it returns false
//   failed()          the last NAK has been sent: the queue pair goes to Error
//
// Responses become due but are not sent when requests are accepted. A caller that passes a burst of
// requests and asks for responses afterwards sends one ACK for all (IB-41), and never one before
// the READ responses that come first (IB-38). Without AckReq no ACK becomes due.
//
// A function of (state, input): it sends nothing and reads no clock. Owned by the engine of its
// queue pair, every call under its ownership; verbs::ReceiveQueue::post() may run concurrently.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "ib/packet.h"
#include "ib/responder_state.h"
#include "ib/sack.h"
#include "verbs/work.h"

namespace urnic::ib {

// The result of a request.
struct Received {
  Verdict verdict = Verdict::Accept;
  bool completed = false;  // a receive completed, with an error if the verdict is a refusal
  bool more = false;       // a kept request has its turn: call take_held() next
};

// emit_packet() writes it.
struct ResponsePacket {
  PacketHeader header;
  // Registered memory, valid until it is deregistered or written. The payload of a SACK is in
  // `own`: such a packet must not be copied.
  ByteView payload;
  SackBytes own;
};

struct NextMiddle;
struct PlainWrite;  // plain_write.h

class Responder {
 public:
  // Made in Rtr with the attributes of the move there, which must outlive it like queue and table;
  // their access rights and RNR timer may change later. `pool` lends the memory for packets past
  // gaps; without a pool nothing is kept.
  Responder(const QpAttributes& attributes, verbs::ReceiveQueue* rq, verbs::MemoryTable* memory,
            HeldPool* pool = nullptr)
      : s_(attributes, rq, memory, pool) {}
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // `request` has passed check(), in a state that accepts requests, and is not a response. If
  // `completed`, `*completion` has the completion of the oldest receive, which has left its queue;
  // its `op` is WriteImm if a WRITE with Immediate Data used it, otherwise Send. A fatal verdict
  // (is_fatal) ends the queue pair when its NAK has been sent; nothing is accepted after it.
  Received take(const ParsedPacket& request, verbs::Completion* completion);
  // The same for a packet admitted by admit_plain_write() (plain_write.h): nothing completes, and
  // only an ACK may become due. If its memory is gone, returns false and changes nothing: take()
  // then refuses it.
  [[nodiscard]] bool take_plain(const PlainWrite&, const std::uint8_t* payload);
  // The same for a packet that matches `next`, which is then updated for the packet after it.
  [[nodiscard]] bool take_middle(NextMiddle* next, const std::uint8_t* payload, bool ack_request);
  // A gap has closed (Received::more): takes the first request kept past it, as if it arrived now.
  // To be called until there is no more.
  Received take_held(verbs::Completion* completion);

  // A request waits for a receive, and no RNR NAK has been sent (S-9): the owner calls one of these
  // functions, when a receive has been posted or LossRules::rnr_park_time has passed.
  bool parked() const { return s_.parked; }
  // True: the request has its turn, call take_held() next.
  bool receive_posted();
  // Makes the RNR NAK due.
  void stop_waiting();

  // True if next_response() has a packet to send.
  bool due() const {
    return !s_.ended && (s_.resources.any_due() || s_.nak.owed() || s_.ack_due || s_.sack_due);
  }
  // The next packet to send, which counts as sent. False if there is none.
  bool next_response(ResponsePacket* out);
  // The payload of the response just returned cannot be read because its memory is gone: replaces
  // the response by a NAK, and the queue pair ends.
  void lose_response(ResponsePacket* response);
  // Queues an ACK that was not requested, with current credits and MSN. It repeats the last PSN
  // that was acknowledged, at first the one before the initial PSN (IB-87).
  void queue_unsolicited_ack() { s_.ack_due = !is_fatal(s_.failure); }

  // The queue pair is in Error: nothing is accepted any more, and the memory of kept packets is
  // returned.
  void forget_held() {
    s_.held.clear();
    s_.parked = false;
  }

  // A request was refused for good, and the NAK has been sent.
  bool failed() const { return s_.ended; }
  // The reason, from the refusal on; otherwise Accept.
  Verdict failure() const { return s_.failure; }

  const ResponderCounters& counters() const { return s_.counters; }
  // For tests and statistics.
  const ResponderState& state() const { return s_; }

 private:
  ResponderState s_;
};

}  // namespace urnic::ib
