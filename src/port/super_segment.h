// Super-segments: one TCP segment of up to 64 KiB that represents many segments of MSS size. The
// kernel exchanges them through a TAP device; the engine never sees one (E-33).
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

// Ethernet with two tags, IPv6 and a full TCP header; IPv4 with options has the same length.
inline constexpr std::size_t kMaxHeaders = 14 + 8 + 60 + 60;

// Splits a received super-segment. Builds new headers for every frame; does not copy the payload.
class Splitter {
 public:
  // `bytes` must stay valid until the last frame is returned. False if it is not a super-segment
  // that can be split.
  bool start(MutBytes bytes, std::uint16_t segment_size);
  bool done() const { return offset_ >= payload_length_; }
  // Produces the next frame: span 0 is headers built in `headers` (room for kMaxHeaders), span 1 is
  // the payload in place. The checksum field holds the sum of the frame's pseudo-header.
  void next(std::uint8_t* headers, urnic_frame* f);

 private:
  MutBytes bytes_;
  TcpFrame shape_;
  std::uint32_t segment_size_ = 0, payload_length_ = 0, offset_ = 0;
  std::uint32_t first_sequence_ = 0;
  std::uint16_t first_id_ = 0;
};

// Collects consecutive frames that can form one segment: the same flow, consecutive sequence
// numbers, the same size, and the same headers except for fields that the kernel rewrites when it
// splits them.
class Joiner {
 public:
  // Discards the run; the next frame starts a new one.
  void restart() { count_ = 0; }
  // True if `f` now belongs to the run; otherwise the run must be sent first. A frame that cannot
  // be joined (not TCP, a SYN, no payload, a wrong checksum) is a run of its own.
  bool add(const urnic_frame& f);
  unsigned count() const { return count_; }
  // Builds the headers of the run as one segment for the kernel. `headers` has room for
  // kMaxHeaders. Returns their length. Call it only if count() > 1.
  std::size_t finish(std::uint8_t* headers, VnetHeader* v) const;
  // The length of the headers of every frame of the run, in bytes.
  std::uint32_t header_length() const { return shape_.payload; }

 private:
  bool follows(ByteView head, const TcpFrame& shape) const;

  std::array<std::uint8_t, kMaxHeaders> head_{};
  TcpFrame shape_;
  unsigned count_ = 0;
  bool open_ = false;  // more frames may follow
  std::uint32_t segment_size_ = 0, payload_ = 0;
  std::uint32_t next_sequence_ = 0;
  std::uint16_t next_id_ = 0;
  std::uint8_t last_flags_ = 0;
};

}  // namespace urnic::port
