// State that the streams of one engine share besides the memory table. Same ownership as the
// streams.
#pragma once

#include <array>

#include "base/buffer_pool.h"
#include "ddp_rdma/header.h"
#include "ddp_rdma/read_queue.h"
#include "ddp_rdma/read_sink.h"
#include "ddp_rdma/send_end.h"
#include "verbs/memory.h"

namespace urnic::ddp {

struct SharedState {
  // `table` must outlive this object.
  explicit SharedState(verbs::MemoryTable* table) : memory(table), sinks(table) {}
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

  verbs::MemoryTable* memory;
  ReadSinks sinks;
  BufferPool pool;                                             // scratch memory of busy streams
  FreshSends fresh_sends;                                      // for the current segment
  std::array<std::uint8_t, ReadQueue::kMaxRequest> offending;  // header to copy into a Terminate
};

}  // namespace urnic::ddp
