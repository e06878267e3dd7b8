// Atomic operations of the peer on our memory (RFC 7306, 5).
#pragma once

#include <cstdint>

#include "ddp_rdma/atomic_request.h"
#include "ddp_rdma/shared_state.h"
#include "ddp_rdma/violation.h"

namespace urnic::ddp {

// Returns the new value of the eight bytes.
std::uint64_t result_of(const AtomicRequest&, std::uint64_t original);

// Checks the target and carries out the operation; `*original` is the old value. Atomic also with
// respect to the processors of this machine, and therefore to all our other devices.
Violation carry_out(const SharedState&, const AtomicRequest&, verbs::PdId pd, StreamId stream,
                    std::uint64_t* original);

}  // namespace urnic::ddp
