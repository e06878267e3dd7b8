#include "ddp_rdma/outstanding_reads.h"

namespace urnic::ddp {

std::uint32_t OutstandingReads::begin(const SendRequests& requests, std::uint32_t seq,
                                      std::uint32_t sink) {
  requests.part(seq).msn = sink;
  if (count_++ == rtr_) {
    first_ = seq;
  } else {
    requests.part(last_).next_read = seq;
  }
  last_ = seq;
  return next_msn_++;
}

bool OutstandingReads::finish(std::uint32_t n, SendRequests* requests, ReadSinks* sinks) {
  for (; n != 0; --n) {
    if (count_ == 0) return false;
    if (rtr_ != 0) {
      --rtr_;
      --count_;
      continue;
    }
    const SendPart& p = requests->part(first_);
    if (requests->wqe(first_).length != 0) {
      const ReadSink* sink = sinks->find(p.msn);
      if (sink == nullptr || !sink->ended) return false;
    }
    if (is_atomic(requests->wqe(first_).op)) ++atomic_msn_;
    sinks->release(p.msn);
    requests->finish(first_);
    first_ = p.next_read;
    --count_;
  }
  return true;
}

bool OutstandingReads::next(const SendRequests& requests, Cursor* cursor, std::uint32_t* sink,
                            std::uint32_t* size) {
  if (cursor->left == 0) return false;
  --cursor->left;
  if (cursor->rtr != 0) {
    --cursor->rtr;
    *sink = *size = 0;
    return true;
  }
  const SendPart& p = requests.part(cursor->seq);
  *sink = p.msn;
  *size = requests.wqe(cursor->seq).length;
  cursor->seq = p.next_read;
  return true;
}

}  // namespace urnic::ddp
