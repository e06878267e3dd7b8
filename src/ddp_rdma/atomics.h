// Atomic operations of the peer on our memory (RFC 7306, 5).
#pragma once

#include <cstdint>

#include "ddp_rdma/atomic_request.h"
#include "ddp_rdma/shared_state.h"
#include "ddp_rdma/violation.h"

namespace urnic::ddp {

// What the eight bytes are afterwards.
std::uint64_t result_of(const AtomicRequest&, std::uint64_t original);

// Checks the target and does it; `*original` is what was there. Atomic also against the processors
// of this machine, and so against every other device of ours.
Violation carry_out(const SharedState&, const AtomicRequest&, verbs::PdId pd, StreamId stream,
                    std::uint64_t* original);

}  // namespace urnic::ddp
