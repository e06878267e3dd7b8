// Super-segments: one TCP segment of up to 64 KiB that stands for many of MSS size. The kernel
// hands and takes them through a TAP device; the engine never sees one (E-33).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "port/port_abi.h"
#include "port/tcp_frame.h"
#include "port/vnet_header.h"

namespace urnic::port {

// Ethernet with two tags, IPv6 and a full TCP header; IPv4 with options is as long.
inline constexpr std::size_t kMaxHeaders = 14 + 8 + 60 + 60;

// Cuts a received super-segment. Headers are written anew for every frame; payload is not copied.
class Splitter {
 public:
  // `bytes` must stay valid until the last frame is given back. False when it is no super-segment
  // we can cut.
  bool start(MutBytes bytes, std::uint16_t segment_size);
  bool done() const { return offset_ >= payload_length_; }
  // The next frame: headers built in `headers` (room for kMaxHeaders) are its span 0, the payload
  // in place its span 1. The checksum field holds the sum of its own pseudo-header.
  void next(std::uint8_t* headers, urnic_frame* f);

 private:
  MutBytes bytes_;
  TcpFrame shape_;
  std::uint32_t segment_size_ = 0, payload_length_ = 0, offset_ = 0;
  std::uint32_t first_sequence_ = 0;
  std::uint16_t first_id_ = 0;
};

// Collects consecutive frames for as long as they are one run of a TCP stream: same flow, next in
// sequence, same size and header but for what the kernel will rewrite when it cuts them again.
class Joiner {
 public:
  // Forgets everything; the next frame starts a run.
  void restart() { count_ = 0; }
  // True when `f` now belongs to the run; else the run has to go out first. A frame that cannot
  // start a run (not TCP, a SYN, no payload, a wrong checksum) is a run of its own.
  bool add(const urnic_frame& f);
  unsigned count() const { return count_; }
  // Headers of the run as one segment, for the kernel: `headers` has room for kMaxHeaders; returns
  // their length. Only when count() > 1.
  std::size_t finish(std::uint8_t* headers, VnetHeader* v) const;
  // Bytes of headers in front of every frame of the run.
  std::uint32_t header_length() const { return shape_.payload; }

 private:
  bool follows(ByteView head, const TcpFrame& shape) const;

  std::array<std::uint8_t, kMaxHeaders> head_{};
  TcpFrame shape_;
  unsigned count_ = 0;
  bool open_ = false;  // more may follow
  std::uint32_t segment_size_ = 0, payload_ = 0;
  std::uint32_t next_sequence_ = 0;
  std::uint16_t next_id_ = 0;
  std::uint8_t last_flags_ = 0;
};

}  // namespace urnic::port
