// The beginning of a received frame. Headers are copied before they are used, because the frame may
// lie in memory that a peer can still write to (E-19).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "net/classify.h"
#include "net/flow_match.h"
#include "port/port.h"

namespace urnic::net {

struct FrameHead {
  bool looped = false;            // sent by this engine, not received from the wire (E-30)
  bool classified = false;        // `net` is valid
  std::uint16_t size = 0;         // bytes of the frame in `bytes`
  std::uint32_t frame_bytes = 0;  // length of the whole frame
  net::Classified net;
  alignas(64) std::uint8_t bytes[net::kHeadSpan];

  // Enough for tagged Ethernet, IPv6 and TCP with timestamps; a copy of constant length is fast.
  static constexpr std::size_t kShort = 96;
  static_assert(kShort >= net::FlowMatch::kSpan && kShort <= net::kHeadSpan);

  // Copies the bytes needed for a frame of a known flow.
  void copy(const port::Frame& frame) {
    frame_bytes = port::frame_len(frame);
    if (frame.len[0] >= kShort) [[likely]] {
      std::memcpy(bytes, frame.data[0], kShort);
      size = kShort;
    } else {
      std::memcpy(bytes, frame.data[0], frame.len[0]);
      size = static_cast<std::uint16_t>(frame.len[0]);
    }
    classified = false;
  }
  // Copies everything that classify() may read.
  void copy_whole(const port::Frame& frame) {
    size = static_cast<std::uint16_t>(std::min<std::size_t>(frame.len[0], net::kHeadSpan));
    std::memcpy(bytes, frame.data[0], size);
  }
  void classify() {
    net = net::classify({bytes, size}, frame_bytes);
    classified = true;
  }
};

}  // namespace urnic::net
