// Terminate messages (RFC 5040, 4.8): built from a row of the violation table and the offending
// ULPDU, parsed leniently (ULPDU length 22/38/42/70 tells what is there; siw packs the control word
// the wrong way round, iwarp-wire 6.1).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "ddp_rdma/violation.h"

namespace urnic::ddp {

inline constexpr std::uint32_t kMaxTerminate = 18 + 4 + 2 + 18 + 28;

// Writes the whole Terminate ULPDU (DDP header included) to `dst` (kMaxTerminate bytes); returns
// its length. `offending` is the ULPDU at fault (its headers are copied), empty when there is none.
std::uint32_t build_terminate(Violation, ByteView offending, std::uint8_t* dst);

struct TerminateInfo {
  std::uint8_t layer = 0, etype = 0, code = 0;
  bool has_ddp = false, has_rdmap = false;
  std::uint16_t segment_length = 0;
  bool swapped = false;  // read as little-endian siw packs it, because only that reading fits
};
// What the peer can complain about: our start-up frame alone, or FPDUs we have sent. siw's 0/2/5
// and 0/2/6 look like the RFC's 2/0/5 and 2/0/6, and the other way round; this tells them apart.
enum class TerminateWhen : std::uint8_t { AtSetup, Later };
// `body`: what follows the 18-byte DDP header. Never fails: a short body yields zeros.
TerminateInfo parse_terminate(ByteView body, TerminateWhen when = TerminateWhen::Later);

}  // namespace urnic::ddp
