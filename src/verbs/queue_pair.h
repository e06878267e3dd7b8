// A queue pair: one RDMA stream, its two completion queues and its verbs state (D9). Owned by the
// device. Posting to its queues, reading `state` and raising `rung` are for any thread; the rest is
// touched only under the ownership of its engine (E-28).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mpsc_queue.h"
#include "ddp_rdma/stream.h"
#include "verbs/completion_queue.h"
#include "verbs/qp_state.h"

namespace urnic::verbs {

struct QueuePair : MpscNode {
  QueuePair(const ddp::StreamConfig& config, ddp::MemoryTable* memory, CompletionQueue* send,
            CompletionQueue* receive)
      : stream(config, memory), send_cq(send), receive_cq(receive) {}

  std::uint32_t number() const { return stream.config.id; }

  ddp::Stream stream;
  CompletionQueue* send_cq;
  CompletionQueue* receive_cq;
  std::atomic<QpState> state{QpState::Reset};
  // A Send was dropped for want of a receive (E-17): who posts one tells the engine.
  std::atomic<bool> starved{false};
  std::atomic<bool> rung{false};   // its doorbell waits in the driver's queue
  std::uint64_t connection = 0;    // the engine's handle; 0 = none
  bool last_receive_told = false;  // on a shared receive queue: that it uses no more of it
  void* owner = nullptr;           // whoever wants to hear of events, see engine/events.h
};

}  // namespace urnic::verbs
