// Counters of the messages that end in a segment.
#pragma once

#include <cstdint>

namespace urnic::ddp {

// Messages whose end lies in a segment, by their kind of delivery (9.3). Also the counters of a TCP
// hole: CompletedSendsNum 302, CompletedReadResponseNum 306, PendingReadResponseNum 300.
struct MessageCounts {
  std::uint32_t sends = 0;
  std::uint32_t read_responses = 0;
  std::uint32_t read_requests = 0;
  std::uint32_t terminates = 0;

  MessageCounts& operator+=(const MessageCounts& o) {
    sends += o.sends;
    read_responses += o.read_responses;
    read_requests += o.read_requests;
    terminates += o.terminates;
    return *this;
  }
  bool any() const { return (sends | read_responses | read_requests | terminates) != 0; }
};

}  // namespace urnic::ddp
