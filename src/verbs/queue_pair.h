// A queue pair: one RDMA stream, its two completion queues and its verbs state (D9). Owned by the
// device; touched only under the ownership of its engine (E-28).
#pragma once

#include <cstdint>

#include "ddp_rdma/stream.h"
#include "verbs/completion_queue.h"
#include "verbs/qp_state.h"

namespace urnic::verbs {

struct QueuePair {
  QueuePair(const ddp::StreamConfig& config, ddp::MemoryTable* memory, CompletionQueue* send,
            CompletionQueue* receive)
      : stream(config, memory), send_cq(send), receive_cq(receive) {}

  std::uint32_t number() const { return stream.config.id; }

  ddp::Stream stream;
  CompletionQueue* send_cq;
  CompletionQueue* receive_cq;
  QpState state = QpState::Reset;
  std::uint32_t connection = 0;  // the engine's handle; 0 = none
  void* owner = nullptr;         // whoever wants to hear of events, see engine/events.h
};

}  // namespace urnic::verbs
