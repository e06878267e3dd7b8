// The requester half of an EE context. It takes one message at a time from the send queues that
// name it, and retransmits as needed. It gives up a message that cannot succeed, either with a
// RESYNC, so that both ends agree before another queue pair's next message, or permanently.
//
//   idle(), begin()   the next message, chosen by the owner
//   next_packet()     the next packet of the message, or a RESYNC
//   take()            a response has arrived
//   on_time()         the time due() has passed
//   take_end()        call after each of these: the end of the message, reported once
//
// A function of (state, input, now): it sends nothing and reads no clock. It has the same owner as
// the EE context and its queue pairs; every call must be made under that ownership.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "ib/packet.h"
#include "ib/requester.h"
#include "ib/timers.h"
#include "sim/rd/ee_context.h"
#include "sim/rd/rd_message.h"

namespace urnic::sim {

// How a message ended. Its send queue has been updated already.
struct RdEnd {
  enum class How : std::uint8_t {
    None,
    Done,
    QueuePairStops,  // failed; the queue pair enters Sqe
    BothStop,        // failed; queue pair and EE context enter Error
    EeContextStops,  // no response to RESYNC; a suspended message fails
    PutBack,         // it will be sent again
  };
  How how = How::None;
  RdSender* sender = nullptr;
};

// How a response was classified.
enum class RdHeard : std::uint8_t {
  Malformed,  // not a response, or an invalid one
  Stranger,   // does not belong to the current message: another queue pair's, or an old one
  Progress,
  Nothing,  // no news: a NAK for packets already being resent, or a wait that continues
  Nak,      // sequence NAK, explicit or implied, or RNR NAK: handled
  Refused,  // a fatal NAK, or an unexpected response: the message was given up
  Resynced,
};

struct RdRequesterCounters {
  std::uint64_t messages = 0;                          // completed
  std::uint64_t packets = 0, repeated = 0;             // sent in all; retransmissions
  std::uint64_t resyncs = 0;                           // messages given up by RESYNC
  std::uint64_t resyncs_again = 0;                     // RESYNCs retransmitted
  std::uint64_t timeouts = 0, naks = 0, rnr_naks = 0;  // handled
  std::uint64_t put_back = 0;                          // messages deferred: no receive was posted
  std::uint64_t strangers = 0, malformed = 0;          // responses discarded
};

class RdRequester {
 public:
  // The EE context is in Rts with the attributes set by then; `ee` must outlive this object.
  explicit RdRequester(const EeAttributes& ee);
  RdRequester(const RdRequester&) = delete;
  RdRequester& operator=(const RdRequester&) = delete;

  // Neither a message nor a RESYNC is in progress.
  bool idle() const { return phase_ == Phase::Idle && end_.how == RdEnd::How::None; }
  // Requires idle(). `sender` has found a message for this EE context. `rdd`: the domain of its
  // queue pair. If the domain differs, the message ends as if there had been no answer (o9-34). May
  // end the message at once.
  void begin(RdSender* sender, std::uint32_t rdd);

  // The next packet, which counts as sent. May end the message.
  bool next_packet(Instant now, ib::RequestPacket* out);
  // Handles a response addressed to this EE context. May end the message.
  RdHeard take(const ib::ParsedPacket& response, Instant now);

  Instant due() const { return earlier(timer_.due(), wait_); }
  void on_time(Instant now);

  RdEnd take_end();
  // The queue pair of `sender` has entered Error or Reset by itself: abandons its current work
  // without a report.
  void abort(const RdSender* sender);
  // The EE context enters Error: the current message fails.
  void stop();

  const RdRequesterCounters& counters() const { return counters_; }
  // The first PSN of the next message, or of the current one.
  ib::Psn psn() const { return psn_; }
  // For tests and statistics.
  const RdMessage& message() const { return m_; }
  // The next PSN after the highest one ever used, including that of a RESYNC.
  ib::Psn furthest() const {
    if (phase_ == Phase::Idle) return psn_;
    return m_.first + m_.fresh + (phase_ == Phase::Resync ? 1 : 0);
  }
  bool resyncing() const { return phase_ == Phase::Resync; }

 private:
  enum class Phase : std::uint8_t { Idle, Message, RnrWait, Resync };

  bool resync_packet(Instant now, ib::RequestPacket* out);
  void acknowledge(std::uint32_t up_to, ib::Msn msn, Instant now);
  void finish(ib::Msn msn);
  void repeat();
  RdHeard nak();
  RdHeard rnr_nak(std::uint8_t timer, Instant now);
  RdHeard refused(verbs::Status status);
  RdHeard acknowledged(const ib::PacketHeader& h, std::uint32_t k, Instant now);
  RdHeard data(const ib::ParsedPacket& p, std::uint32_t k, Instant now);
  bool store(const ib::ParsedPacket& p, std::uint32_t k) const;
  bool place_fits(ib::Place place, std::uint32_t k) const;
  void give_up(verbs::Status status, GiveUp how);
  void resync();
  void end_resync();
  void suspend(Instant until);
  void end_suspension(ib::Msn msn);

  const EeAttributes* ee_;
  Phase phase_ = Phase::Idle;
  bool owed_ = false;       // a RESYNC is to be sent
  bool repeating_ = false;  // a NAK started this repetition, and no progress was made since
  ib::Psn psn_;
  RdMessage m_;               // in Resync only its numbers are valid
  RdSender* held_ = nullptr;  // the sender of that message
  // OnRnr::Suspend: the answer to the RESYNC decides about the message.
  bool suspended_ = false;
  Instant suspended_until_ = Instant::never();
  ib::Msn msn_;  // messages that the peer completed before the current one
  ib::TransportTimer timer_;
  ib::RetryCounters retries_;
  Instant wait_ = Instant::never();  // RnrWait
  RdEnd end_;
  RdRequesterCounters counters_;
};

}  // namespace urnic::sim
