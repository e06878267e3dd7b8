// End-to-end credits as advertised by a responder: the number of posted receives, coded in five
// bits and rounded down (IB-80..IB-82). The requester decides how to use them.
//
// Pure; any thread.
#pragma once

#include <cstdint>

#include "ib/packet.h"
#include "verbs/receive_queue.h"

namespace urnic::ib {

// The code for `count` receives, 0..30: the largest number that is not greater.
std::uint8_t credit_code(std::uint32_t count);

// The credits in an ACK: kNoCredits for a shared queue, or if none are to be advertised. A receive
// in use by a message counts until that is complete, as the MSN does not count it before.
inline std::uint8_t credit_code(const verbs::ReceiveQueue& rq, bool tells) {
  return tells && rq.shared() == nullptr ? credit_code(rq.posted()) : kNoCredits;
}

}  // namespace urnic::ib
