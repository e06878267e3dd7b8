// Sizes of the endpoints' buffers. With Option::AutoTune they grow with what a connection transfers
// (see buffer_grants.cpp), each up to its own bound and all together up to one limit.
#pragma once

#include <cstdint>

#include "tcp/stack_socket.h"

namespace urnic::tcp {

class BufferGrants {
 public:
  explicit BufferGrants(std::uint64_t limit) : limit_(limit) {}
  std::uint64_t granted() const { return granted_; }

  // Called when a connection opens, and when it is gone.
  void open(Socket&);
  void close(Socket&);
  // The program read `bytes`.
  void on_read(Socket&, std::uint64_t bytes, Instant now);
  // Data was acknowledged; the buffer may have blocked the writer.
  void on_acknowledged(Socket&);

 private:
  // Grants bytes to grow from `have` to `want`, or as many as are left. Returns the new size.
  std::uint32_t grant(std::uint32_t have, std::uint64_t want);

  // bound: memory of all buffers of a self-tuning TCP stack; limit: StackConfig::memory_limit;
  // beyond: buffers and windows no longer grow; test: AutoTune.TheGlobalBoundHolds,
  // AutoTune.AReaderThatStopsClosesTheWindowAtTheBound_RFC9293_3_8_6
  std::uint64_t limit_;
  std::uint64_t granted_ = 0;
};

}  // namespace urnic::tcp
