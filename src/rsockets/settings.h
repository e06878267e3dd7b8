// What can be set of an rsocket before it has a connection, and what is inherited by those it
// accepts.
#pragma once

#include <cstdint>

namespace urnic::rsockets {

struct Settings {
  std::uint32_t send_buffer = 1 << 17, receive_buffer = 1 << 17;  // bytes
  // Places in the queues. The receive queue's are the peer's credits.
  std::uint16_t send_queue = 384, receive_queue = 384;
  std::uint16_t inlined = 64;  // bytes that are sent from where they are
  std::uint32_t mappings = 0;  // of the peer's buffers
  bool reuse_address = false, ipv6_only = false;
  // Kept to be told again: the connection's own way of them is always on.
  bool keep_alive = false, no_delay = false, out_of_band_inline = false;
  int keep_idle_s = 7200, keep_interval_s = 75, keep_count = 9;
  int linger_on = 0, linger_s = 0;  // how long close() waits for what was sent; 0 s: it is dropped
  int receive_timeout_ms = -1, send_timeout_ms = -1;  // -1: none
};

constexpr std::uint32_t kMinBuffer = 4096, kMaxBuffer = 1 << 26;
constexpr std::uint16_t kMinQueue = 16, kMaxQueue = 32768;
constexpr std::uint16_t kMaxInline = 4096;
// Work of control messages that may be outstanding, besides what the queue is for.
constexpr std::uint16_t kControlSlots = 4;

}  // namespace urnic::rsockets
