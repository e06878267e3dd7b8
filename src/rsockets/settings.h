// Settings of an rsocket before it has a connection; accepted rsockets inherit those of the
// listener.
#pragma once

#include <cstdint>

namespace urnic::rsockets {

struct Settings {
  std::uint32_t send_buffer = 1 << 17, receive_buffer = 1 << 17;  // bytes
  // Slots of the queues. The slots of the receive queue are the peer's credits.
  std::uint16_t send_queue = 384, receive_queue = 384;
  std::uint16_t inlined = 64;  // up to this many bytes are sent without copying to the ring
  std::uint32_t mappings = 0;  // how many buffers the peer may map
  bool reuse_address = false, ipv6_only = false;
  // Only stored, so that they can be read: the connection always behaves as if they were on.
  bool keep_alive = false, no_delay = false, out_of_band_inline = false;
  int keep_idle_s = 7200, keep_interval_s = 75, keep_count = 9;
  int linger_on = 0, linger_s = 0;  // how long close() waits for sent data; 0 s: it is dropped
  int receive_timeout_ms = -1, send_timeout_ms = -1;  // -1: no time-out
};

constexpr std::uint32_t kMinBuffer = 4096, kMaxBuffer = 1 << 26;
constexpr std::uint16_t kMinQueue = 16, kMaxQueue = 32768;
constexpr std::uint16_t kMaxInline = 4096;
// Control messages that may be outstanding, in addition to the send queue's size.
constexpr std::uint16_t kControlSlots = 4;

}  // namespace urnic::rsockets
