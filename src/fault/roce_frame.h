// A packet of RoCEv2 inside an Ethernet frame, for middleboxes: where its parts are, and how to
// change it so that only the ICRC can tell.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/rng.h"
#include "fault/tcp_frame.h"
#include "net/classify.h"

namespace urnic::fault {

// Offsets into a frame; the frame is given again to every function that reads or writes.
struct RoceView {
  net::Classified net;
  std::uint32_t bth = 0;      // offset of the BTH in the frame
  std::uint32_t bytes = 0;    // BTH to ICRC
  std::uint32_t payload = 0;  // bytes of payload, without pad; of a reserved opcode all behind it
  std::uint32_t dest_qp = 0;
  std::uint32_t psn = 0;
  std::uint8_t opcode = 0;

  // Of connection management (queue pair 1).
  bool management() const { return dest_qp == 1; }
  // Behind the BTH, before the ICRC: headers by opcode, payload, pad. All of it is under the ICRC.
  std::uint32_t body() const;
};

// `head`: the beginning of the frame, with all its headers, which `c` was made of. nullopt: no UDP
// to port 4791, or too short for what its opcode says.
std::optional<RoceView> view_roce(const net::Classified& c, ByteView head);

// Changes 1 to 4 neighbouring bytes of the body, which is not empty; a UDP checksum that was right
// stays right. Returns the offset of the first in the frame.
std::uint32_t corrupt_roce(Frame& f, const RoceView& v, Rng* rng);

}  // namespace urnic::fault
