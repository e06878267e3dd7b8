// Detects whether the peer of an idle queue pair still exists: the transport itself would not
// notice, since only requests are answered. If nothing has arrived from the peer for a while, it is
// probed with a WRITE of no bytes at the PSN before the next one. That is a duplicate, which every
// responder acknowledges and none executes (IB-42), so it needs no PSN, no work request and no
// access right. After three probes without a response the peer is considered gone. It is the
// counterpart of TCP's keep-alive (RFC 1122, 4.2.3.6).
//
// While requests are outstanding the transport timer watches the peer. If a half of the queue pair
// has not been made yet, probes and their responses are made and handled here.
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

  // Checks the peer after `idle`, and repeatedly. It is off before.
  void begin(Duration idle, Instant now) {
    end();
    due_ = now + idle;
  }
  void end() { *this = {}; }

  Instant due() const { return due_; }
  // `heard`: a number that changes whenever something of the peer arrives. `busy`: a response of
  // the peer is outstanding, which the transport timer watches. True: the peer did not respond to
  // the probes.
  bool on_time(std::uint64_t heard, bool busy, Duration idle, Instant now);

  bool asks() const { return asks_; }
  bool answers() const { return answers_; }
  // The packets to send. `next`: the first PSN not yet used; `credits`: those of an ACK.
  PacketHeader question(const QpAttributes&, Psn next);
  PacketHeader answer(const QpAttributes&, std::uint8_t credits);

  // True if it is a probe, for a queue pair that has accepted no request yet. It will be answered.
  bool take_question(const ParsedPacket&, const QpAttributes&);
  // True if it is a response to a probe, for a queue pair that has sent no request yet.
  bool take_answer(const ParsedPacket&, const QpAttributes&);

 private:
  Instant due_ = Instant::never();
  std::uint64_t seen_ = 0;
  std::uint8_t asked_ = 0;  // probes since something arrived
  bool heard_ = false;      // something that no half counts
  bool asks_ = false, answers_ = false;
};

}  // namespace urnic::ib
