// The beginning of a received frame. Headers are copied out before they are believed: the frame may
// lie in memory a peer can still write (E-19).
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
  bool looped = false;            // from this very engine, not from the wire (E-30)
  bool classified = false;        // `net` says what the frame is
  std::uint16_t size = 0;         // of the frame in `bytes`
  std::uint32_t frame_bytes = 0;  // of the whole frame
  net::Classified net;
  alignas(64) std::uint8_t bytes[net::kHeadSpan];

  // Tagged Ethernet, IPv6 and TCP with timestamps fit; a copy of constant length is a few moves.
  static constexpr std::size_t kShort = 96;
  static_assert(kShort >= net::FlowMatch::kSpan && kShort <= net::kHeadSpan);

  // As much as a frame like others of its flow needs.
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
  // All that classify() looks at.
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
