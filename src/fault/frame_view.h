// What a faulty line sees of a frame: a segment of TCP, a packet of RoCEv2, or neither.
#pragma once

#include <optional>

#include "fault/roce_frame.h"
#include "fault/tcp_frame.h"

namespace urnic::fault {

struct FrameView {
  // One of them at most.
  std::optional<TcpView> tcp;
  std::optional<RoceView> roce;

  const TcpView* segment() const { return tcp ? &*tcp : nullptr; }
  // Bytes of payload; 0 when it is neither.
  std::uint32_t payload() const { return tcp ? tcp->payload_len : roce ? roce->payload : 0; }
  // Whether `corrupt` finds anything to change.
  bool corruptible() const { return tcp ? tcp->payload_len != 0 : roce && roce->body() != 0; }
};

// `head`: the beginning of the frame, with all its headers.
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
