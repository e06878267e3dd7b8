// How the receive in use ends, the oldest of its queue: it leaves it with a completion.
#pragma once

#include <cstdint>

#include "ib/packet.h"
#include "verbs/receive_queue.h"
#include "verbs/work.h"

namespace urnic::ib {

// `last` has ended its message of so many bytes.
void complete_receive(verbs::ReceiveQueue*, const PacketHeader& last, std::uint32_t bytes,
                      verbs::Completion*);
// With an error of its own.
void fail_receive(verbs::ReceiveQueue*, verbs::Status, verbs::Completion*);

}  // namespace urnic::ib
