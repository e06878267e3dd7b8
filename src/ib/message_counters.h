// Counters of whole messages, for any service: requests are counted when their first packet is
// sent, received messages when they are complete, so that middle packets cost nothing.
#pragma once

#include <cstdint>

#include "verbs/send_queue.h"

namespace urnic::ib {

// A requester counts these. READs and atomics count alike.
struct SentMessages {
  std::uint64_t writes = 0, sends = 0, reads = 0;
  std::uint64_t write_bytes = 0, send_bytes = 0;
  std::uint64_t read_bytes = 0;  // brought by responses

  void begins(const verbs::SendWqe& w) {
    if (verbs::awaits_response(w.op)) {
      ++reads;
    } else if (w.op == verbs::WrOp::Write || w.op == verbs::WrOp::WriteImm) {
      ++writes;
      write_bytes += w.length;
    } else {
      ++sends;
      send_bytes += w.length;
    }
  }
  SentMessages& operator+=(const SentMessages& o) {
    writes += o.writes;
    sends += o.sends;
    reads += o.reads;
    write_bytes += o.write_bytes;
    send_bytes += o.send_bytes;
    read_bytes += o.read_bytes;
    return *this;
  }
};

// A responder counts these.
struct TakenMessages {
  std::uint64_t sends = 0, send_bytes = 0, write_bytes = 0;
  std::uint64_t reads = 0;                      // READs and atomics
  std::uint64_t answers = 0, answer_bytes = 0;  // READs answered in full for the first time
  std::uint64_t receives = 0;                   // completed with success

  TakenMessages& operator+=(const TakenMessages& o) {
    sends += o.sends;
    send_bytes += o.send_bytes;
    write_bytes += o.write_bytes;
    reads += o.reads;
    answers += o.answers;
    answer_bytes += o.answer_bytes;
    receives += o.receives;
    return *this;
  }
};

}  // namespace urnic::ib
