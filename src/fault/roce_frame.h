// A RoCEv2 packet in an Ethernet frame, for middleboxes: finds its parts, and changes it so that
// only the ICRC can detect the change.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/rng.h"
#include "fault/tcp_frame.h"
#include "net/classify.h"

namespace urnic::fault {

// Offsets into a frame; functions that read or write the frame take it as an argument.
struct RoceView {
  net::Classified net;
  std::uint32_t bth = 0;      // offset of the BTH in the frame
  std::uint32_t bytes = 0;    // BTH to ICRC
  std::uint32_t payload = 0;  // payload bytes without padding; reserved opcode: all bytes
  std::uint32_t dest_qp = 0;
  std::uint32_t psn = 0;
  std::uint8_t opcode = 0;

  // True for connection management (queue pair 1).
  bool management() const { return dest_qp == 1; }
  // The size between BTH and ICRC: headers by opcode, payload, padding. The ICRC covers all of it.
  std::uint32_t body() const;
};

// `head`: the beginning of the frame with all its headers, from which `c` was made. nullopt if it
// is not UDP to port 4791, or too short for its opcode.
std::optional<RoceView> view_roce(const net::Classified& c, ByteView head);

// Changes 1 to 4 adjacent bytes of the body, which must not be empty. A correct UDP checksum stays
// correct. Returns the offset of the first changed byte in the frame.
std::uint32_t corrupt_roce(Frame& f, const RoceView& v, Rng* rng);

}  // namespace urnic::fault
