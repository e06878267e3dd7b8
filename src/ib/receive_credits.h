// End-to-end credits as a responder tells them: how many receives are posted, in five bits, rounded
// down (IB-80..IB-82). What the requester makes of them is its own.
//
// Pure; any thread.
#pragma once

#include <cstdint>

#include "ib/packet.h"
#include "verbs/receive_queue.h"

namespace urnic::ib {

// Code for `count` receives, 0..30: that of the largest number that is no more.
std::uint8_t credit_code(std::uint32_t count);

// What an ACK says of the queue: kNoCredits of a shared one, or when it is not to tell. A receive
// in use by a message counts until that is complete, as the MSN does not count it before.
inline std::uint8_t credits_told(const verbs::ReceiveQueue& rq, bool tells) {
  return tells && rq.shared() == nullptr ? credit_code(rq.posted()) : kNoCredits;
}

}  // namespace urnic::ib
