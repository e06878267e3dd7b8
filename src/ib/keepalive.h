// Whether the peer of a queue pair that has nothing to ask is still there: nothing of the transport
// would say so, as only who asks is answered. What has not been heard of for a while is asked by a
// WRITE of no bytes at the PSN before the next one: a duplicate, which every responder
// acknowledges and none carries out (IB-42), so that it takes no PSN, no work request and no
// right. Three without an answer are the end. It is TCP's keep-alive (RFC 1122, 4.2.3.6).
//
// While requests are outstanding the transport timer looks after the peer. Where a half of the
// queue pair is not there yet question and answer are made here, and it does without.
//
// Owned by one queue pair.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "ib/context.h"
#include "ib/packet.h"

namespace urnic::ib {

class Keepalive {
 public:
  static constexpr std::uint8_t kQuestions = 3;

  // The peer is looked at after `idle`, and so on. It is off before.
  void begin(Duration idle, Instant now) {
    end();
    due_ = now + idle;
  }
  void end() { *this = {}; }

  Instant due() const { return due_; }
  // `heard`: a number that has changed if anything of the peer's came. `busy`: it owes us an
  // answer, which is somebody else's to wait for. True: it has been asked and is silent.
  bool on_time(std::uint64_t heard, bool busy, Duration idle, Instant now);

  bool asks() const { return asks_; }
  bool answers() const { return answers_; }
  // They leave. `next`: the first PSN not yet used; `credits`: what an ACK tells.
  PacketHeader question(const QpAttributes&, Psn next);
  PacketHeader answer(const QpAttributes&, std::uint8_t credits);

  // Whether it is a question, to who has taken no request yet. It is answered.
  bool take_question(const ParsedPacket&, const QpAttributes&);
  // Whether it is an answer, to who has made no request yet.
  bool take_answer(const ParsedPacket&, const QpAttributes&);

 private:
  Instant due_ = Instant::never();
  std::uint64_t seen_ = 0;
  std::uint8_t asked_ = 0;  // since something was heard
  bool heard_ = false;      // of what no half counts
  bool asks_ = false, answers_ = false;
};

}  // namespace urnic::ib
