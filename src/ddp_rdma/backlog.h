// Estimates how many stream bytes the work that has not begun will take: requests of the send queue
// and pending Read Responses. Updated when it is read.
#pragma once

#include <cstdint>

#include "ddp_rdma/fpdu_sizes.h"
#include "ddp_rdma/read_queue.h"
#include "ddp_rdma/verbs_words.h"

namespace urnic::ddp {

class Backlog {
 public:
  // All three must outlive this object.
  Backlog(const SendQueue* queue, const ReadQueue* responses, const FpduSizes* sizes,
          std::uint32_t first_msn)
      : sq_(*queue), owed_(*responses), sizes_(*sizes), response_seen_(first_msn) {}

  struct Bytes {
    std::uint64_t requests = 0, responses = 0;
  };
  Bytes bytes() const {
    if (seen_ != sq_.tail() || response_seen_ != owed_.next()) count_new();
    return bytes_;
  }

  // This request begins: the code that cuts it counts its bytes exactly from now on.
  void request_begins(std::uint32_t seq) {
    if (seen_ == seq) {
      ++seen_;
    } else {
      bytes_.requests -= wire_of(sq_.wqe(seq));
    }
  }
  void response_begins(std::uint32_t msn) {
    if (response_seen_ == msn) {
      ++response_seen_;
    } else {
      bytes_.responses -= sizes_.estimate_message(owed_.request(msn).size, true);
    }
  }

  // The FPDU sizes have changed: counts everything again that has not begun.
  void recount() {
    seen_ = sq_.started();
    response_seen_ = owed_.next_response();
    bytes_ = {};
  }
  // The work that is queued now will not be sent.
  void forget() {
    seen_ = sq_.tail();
    response_seen_ = owed_.next();
    bytes_ = {};
  }
  void restart(std::uint32_t first_msn) {
    recount();
    response_seen_ = first_msn;
  }

 private:
  std::uint64_t wire_of(const SendWqe& w) const;
  void count_new() const;

  const SendQueue& sq_;
  const ReadQueue& owed_;
  const FpduSizes& sizes_;
  // The counts of requests up to seen_, and of responses up to response_seen_.
  mutable std::uint32_t seen_ = 0, response_seen_;
  mutable Bytes bytes_;
};

}  // namespace urnic::ddp
