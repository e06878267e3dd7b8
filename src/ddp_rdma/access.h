// The tagged-access checks of RFC 5041 7.x and RFC 5040 7.x for [to, to+len), len > 0. They turn
// the result of the memory table or of the sinks into the error of a Terminate.
#pragma once

#include <cstdint>

#include "ddp_rdma/shared_state.h"
#include "ddp_rdma/violation.h"

namespace urnic::ddp {

Violation check_write(const SharedState&, std::uint32_t stag, std::uint64_t to, std::uint64_t len,
                      verbs::PdId pd, StreamId stream);
Violation check_read_response(const SharedState&, std::uint32_t stag, std::uint64_t to,
                              std::uint64_t len, StreamId stream);
Violation check_read_source(const SharedState&, std::uint32_t stag, std::uint64_t to,
                            std::uint64_t len, verbs::PdId pd, StreamId stream);

// Checks the target of an atomic: eight bytes of our memory.
Violation check_atomic_target(const SharedState&, std::uint32_t stag, std::uint64_t to,
                              verbs::PdId pd, StreamId stream);
// Finds the sink of the atomic that was sent with this id; nullptr if there is none.
ReadSink* atomic_sink(SharedState&, std::uint32_t id, StreamId stream);

}  // namespace urnic::ddp
