// Lets two ends that were connected without connection management detect that both are urnic (S-7).
// A queue pair sends a hello when it may send, and again after 10 and 100 ms unless the other end
// has been heard. Each hello that asks is answered once. Other implementations drop hellos, and
// receive at most three.
//
// A hello contains a first PSN of the connection, which an attacker off the path does not know.
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

  // To be called in Rts, if the capabilities of the other end are unknown.
  void begin(Instant now) {
    left_ = kTimes;
    due_ = now;
    on_time(now);
  }
  // The other end is known or gone: sends no more hellos of our own.
  void end() { *this = {}; }

  Instant due() const { return due_; }
  void on_time(Instant now);
  // True if a hello is to be sent.
  bool wanted() const { return asks_ || answers_; }
  // The hello to send.
  PacketHeader next(const QpAttributes&, bool may_send, Hello* out);
  // A hello of the peer has arrived. It is answered if it asks.
  void heard(const Hello&);

  // True if the hello is the peer's: it names the first PSN of the requests to us or, if we may
  // send, of ours.
  static bool is_of_peer(const PacketHeader&, const QpAttributes&, bool may_send);

 private:
  std::uint8_t left_ = 0;  // hellos of our own still to send
  bool asks_ = false, answers_ = false;
  Instant due_ = Instant::never();
};

}  // namespace urnic::ib
