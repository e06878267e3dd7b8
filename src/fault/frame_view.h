// A faulty line's view of a frame: a TCP segment, a RoCEv2 packet, or neither.
#pragma once

#include <optional>

#include "fault/roce_frame.h"
#include "fault/tcp_frame.h"

namespace urnic::fault {

struct FrameView {
  // At most one of them is set.
  std::optional<TcpView> tcp;
  std::optional<RoceView> roce;

  const TcpView* segment() const { return tcp ? &*tcp : nullptr; }
  // Payload bytes; 0 if it is neither.
  std::uint32_t payload() const { return tcp ? tcp->payload_len : roce ? roce->payload : 0; }
  // True if there are bytes that `corrupt` can change.
  bool corruptible() const { return tcp ? tcp->payload_len != 0 : roce && roce->body() != 0; }
};

// `head`: the beginning of the frame with all its headers.
inline FrameView look_at(ByteView head, std::uint32_t total_len) {
  const net::Classified c = net::classify(head, total_len);
  FrameView v;
  v.tcp = view_tcp(c, head);
  if (!v.tcp) v.roce = view_roce(c, head);
  return v;
}
inline FrameView look_at(const Frame& f) {
  return look_at(f.bytes, static_cast<std::uint32_t>(f.bytes.size()));
}

}  // namespace urnic::fault
