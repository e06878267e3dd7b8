// The requester half of an EE context: takes one message at a time from the send queues that name
// it, sees to its repetition, and gives up what cannot be: with RESYNC, so that the next message of
// another queue pair finds both ends agreed, or for good.
//
//   idle(), begin()   the next message, which the owner chooses
//   next_packet()     what leaves now: of the message, or a RESYNC
//   take()            a response has come
//   on_time()         due() has passed
//   take_end()        after each of these: what has come of the message, once
//
// A function of (state, input, now): it sends nothing and reads no clock. Owned by whoever owns the
// EE context and its queue pairs, every call under that ownership.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "ib/packet.h"
#include "ib/requester.h"
#include "ib/timers.h"
#include "sim/rd/ee_context.h"
#include "sim/rd/rd_message.h"

namespace urnic::sim {

// What has come of a message. Its send queue knows by then.
struct RdEnd {
  enum class How : std::uint8_t {
    None,
    Done,
    QueuePairStops,  // failed; the queue pair goes to Sqe
    BothStop,        // failed; queue pair and EE context go to Error
    EeContextStops,  // no RESYNC was answered; a message that was to be put back has failed
    PutBack,         // it will come again
  };
  How how = How::None;
  RdSender* sender = nullptr;
};

// What a response was.
enum class RdHeard : std::uint8_t {
  Malformed,  // no response, or one that cannot be
  Stranger,   // not of the message under way: another queue pair's, or of before
  Progress,
  Nothing,  // nothing new: a NAK of what is repeated already, a wait that goes on
  Nak,      // sequence, spoken or implied, or RNR: acted upon
  Refused,  // a NAK that is not repeated, or not what was asked for: given up
  Resynced,
};

struct RdRequesterCounters {
  std::uint64_t messages = 0;                          // done
  std::uint64_t packets = 0, repeated = 0;             // sent in all; of these sent before
  std::uint64_t resyncs = 0;                           // messages given up by one
  std::uint64_t resyncs_again = 0;                     // of these sent again
  std::uint64_t timeouts = 0, naks = 0, rnr_naks = 0;  // acted upon
  std::uint64_t put_back = 0;                          // messages, for want of a receive
  std::uint64_t strangers = 0, malformed = 0;          // responses discarded
};

class RdRequester {
 public:
  // In Rts, with the attributes of the move there, which outlive it.
  explicit RdRequester(const EeAttributes& ee);
  RdRequester(const RdRequester&) = delete;
  RdRequester& operator=(const RdRequester&) = delete;

  // Neither a message nor a RESYNC is under way.
  bool idle() const { return phase_ == Phase::Idle && end_.how == RdEnd::How::None; }
  // idle(). `sender` has found a message for this EE context. `rdd`: its queue pair's domain; where
  // that is another the message ends as if nobody had answered (o9-34). May end at once.
  void begin(RdSender* sender, std::uint32_t rdd);

  // The next packet that may leave, which counts as sent. May end.
  bool next_packet(Instant now, ib::RequestPacket* out);
  // Addressed to this EE context. May end.
  RdHeard take(const ib::ParsedPacket& response, Instant now);

  Instant due() const { return earlier(timer_.due(), wait_); }
  void on_time(Instant now);

  RdEnd take_end();
  // The queue pair of `sender` goes to Error or Reset by itself: what is under way of it is given
  // up, and told by nobody here.
  void abort(const RdSender* sender);
  // The EE context goes to Error: what is under way fails.
  void stop();

  const RdRequesterCounters& counters() const { return counters_; }
  // Of the next message; of one under way its first.
  ib::Psn psn() const { return psn_; }
  // For tests and statistics.
  const RdMessage& message() const { return m_; }
  // Behind the furthest PSN that was ever used, that of a RESYNC included.
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
  bool owed_ = false;       // RESYNC: is to leave
  bool repeating_ = false;  // a NAK has begun this repetition, and no progress was made since
  ib::Psn psn_;
  RdMessage m_;               // in Resync: of which nothing but numbers is left
  RdSender* held_ = nullptr;  // whose that was
  // OnRnr::Suspend: the answer to the RESYNC says what becomes of the message.
  bool suspended_ = false;
  Instant suspended_until_ = Instant::never();
  ib::Msn msn_;  // messages the peer has carried out before the one under way
  ib::TransportTimer timer_;
  ib::RetryCounters retries_;
  Instant wait_ = Instant::never();  // RnrWait
  RdEnd end_;
  RdRequesterCounters counters_;
};

}  // namespace urnic::sim
