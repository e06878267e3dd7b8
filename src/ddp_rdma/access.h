// The tagged-access checks of RFC 5041 7.x and RFC 5040 7.x for [to, to+len), len > 0: what the
// memory table or the sinks find, in the words of a Terminate.
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

// The target of an atomic: eight bytes of ours.
Violation check_atomic_target(const SharedState&, std::uint32_t stag, std::uint64_t to,
                              verbs::PdId pd, StreamId stream);
// The sink of the atomic that was sent with this id; nullptr when there is none.
ReadSink* atomic_sink(SharedState&, std::uint32_t id, StreamId stream);

}  // namespace urnic::ddp
