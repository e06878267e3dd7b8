// Terminate messages (RFC 5040, 4.8). They are built from a row of the violation table and the
// offending ULPDU, and parsed leniently: the ULPDU length 22/38/42/70 tells the contents, and siw
// packs the control word in the wrong bit order (iwarp-wire 6.1).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "ddp_rdma/violation.h"

namespace urnic::ddp {

inline constexpr std::uint32_t kMaxTerminate = 18 + 4 + 2 + 18 + 28;

// Writes the whole Terminate ULPDU (including the DDP header) to `dst` (kMaxTerminate bytes) and
// returns its length. `offending` is the ULPDU at fault (its headers are copied), empty if there is
// none.
std::uint32_t build_terminate(Violation, ByteView offending, std::uint8_t* dst);

struct TerminateInfo {
  std::uint8_t layer = 0, etype = 0, code = 0;
  bool has_ddp = false, has_rdmap = false;
  std::uint16_t segment_length = 0;
  bool swapped = false;  // as little-endian siw packs it, since only that reading is possible
};
// The subject of the peer's error: our start-up frame, or the FPDUs we have sent. This
// distinguishes siw's 0/2/5 and 0/2/6 from the RFC's 2/0/5 and 2/0/6, and vice versa.
enum class TerminateWhen : std::uint8_t { AtSetup, Later };
// `body`: the part after the 18-byte DDP header. Never fails: missing bytes give zeros.
TerminateInfo parse_terminate(ByteView body, TerminateWhen when = TerminateWhen::Later);

}  // namespace urnic::ddp
