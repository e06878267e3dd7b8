// How two ends that were connected by hand learn that both are urnic (S-7): a hello when the queue
// pair may send, again after 10 and 100 ms, unless the other end has been heard. Who is asked
// answers once each time. Others drop it, and hear no more than three.
//
// A hello names a first PSN of the connection, which somebody on the way beside it does not know.
//
// Owned by one queue pair.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "ib/context.h"
#include "ib/sack.h"

namespace urnic::ib {

class Greeting {
 public:
  static constexpr std::uint8_t kTimes = 3;

  // In Rts, and nobody has said yet what the other end can do.
  void begin(Instant now) {
    left_ = kTimes;
    due_ = now;
    on_time(now);
  }
  // The other end is known, or gone: nothing more of our own.
  void end() { *this = {}; }

  Instant due() const { return due_; }
  void on_time(Instant now);
  // One is to leave.
  bool wanted() const { return asks_ || answers_; }
  // It leaves.
  PacketHeader next(const QpAttributes&, bool may_send, Hello* out);
  // One has come that is the peer's. Answered if it asks.
  void heard(const Hello&);

  // Whether it is the peer's: names the first PSN of the requests to us, or, when there are any, of
  // ours.
  static bool is_of_peer(const PacketHeader&, const QpAttributes&, bool may_send);

 private:
  std::uint8_t left_ = 0;  // of our own
  bool asks_ = false, answers_ = false;
  Instant due_ = Instant::never();
};

}  // namespace urnic::ib
