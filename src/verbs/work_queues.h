// The two work queues of a queue pair.
#pragma once

#include <cstdint>

#include "base/buffer_pool.h"
#include "verbs/receive_queue.h"
#include "verbs/send_queue.h"

namespace urnic::verbs {

// Sizes that the consumer chose.
struct WorkQueueSizes {
  std::uint32_t max_send_wr = 128, max_recv_wr = 128;
  std::uint32_t max_send_sge = 4, max_recv_sge = 4;
  std::uint32_t max_inline = 256;
  SharedReceiveQueue* shared_rq = nullptr;  // used instead of own receives; outlives the queues
  bool xrc_receives = false;                // true: uses the XRC queue that each message names
};

// Parameters that the transport needs.
struct WorkQueueLayout {
  std::uint32_t send_part = 0;      // bytes that it keeps with each send WQE
  std::uint32_t first_receive = 0;  // index of the first receive
  BufferPool* pool = nullptr;       // with a shared receive queue: lends the list of bound WQEs
};

struct WorkQueues {
  WorkQueues(const WorkQueueSizes& c, const WorkQueueLayout& l)
      : sq(c.max_send_wr, c.max_send_sge, c.max_inline, l.send_part),
        rq(c.xrc_receives ? ReceiveQueue(l.pool, l.first_receive)
           : c.shared_rq != nullptr
               ? ReceiveQueue(c.shared_rq, l.pool, l.first_receive)
               : ReceiveQueue(c.max_recv_wr, c.max_recv_sge, l.first_receive)) {}

  SendQueue sq;
  ReceiveQueue rq;
};

}  // namespace urnic::verbs
