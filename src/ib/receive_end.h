// Completion of the receive in use, the oldest of its queue, which it removes.
#pragma once

#include <cstdint>

#include "ib/packet.h"
#include "verbs/receive_queue.h"
#include "verbs/work.h"

namespace urnic::ib {

// `last` has ended its message of that many bytes.
void complete_receive(verbs::ReceiveQueue*, const PacketHeader& last, std::uint32_t bytes,
                      verbs::Completion*);
// Completes it with an error.
void fail_receive(verbs::ReceiveQueue*, verbs::Status, verbs::Completion*);

}  // namespace urnic::ib
