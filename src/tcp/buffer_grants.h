// What the buffers of endpoints may hold: with Option::AutoTune they grow with what a connection
// moves (buffer_grants.cpp says how), each as far as its own bound and all together as far as one
// limit.
#pragma once

#include <cstdint>

#include "tcp/stack_socket.h"

namespace urnic::tcp {

class BufferGrants {
 public:
  explicit BufferGrants(std::uint64_t limit) : limit_(limit) {}
  std::uint64_t granted() const { return granted_; }

  // A connection opens; it is gone.
  void open(Socket&);
  void close(Socket&);
  // The reader took `bytes`.
  void on_read(Socket&, std::uint64_t bytes, Instant now);
  // Something was acknowledged; the writer may have been held up by the buffer.
  void on_acknowledged(Socket&);

 private:
  // From `have` to `want` bytes, or what is left to give.
  std::uint32_t grant(std::uint32_t have, std::uint64_t want);

  // bound: memory of all buffers of a self-tuning TCP stack; limit: StackConfig::memory_limit;
  // beyond: buffers and windows no longer grow; test: AutoTune.TheGlobalBoundHolds,
  // AutoTune.AReaderThatStopsMeetsTheBoundWithAShutWindow_RFC9293_3_8_6
  std::uint64_t limit_;
  std::uint64_t granted_ = 0;
};

}  // namespace urnic::tcp
