// This transport's data in each WQE of the send queue.
#pragma once

#include <cstdint>

namespace urnic::ddp {

struct SendPart {
  std::uint32_t msn;        // Send: its MSN. Read: STag of its sink
  std::uint32_t next_read;  // Read: index of the next outstanding Read
  std::uint32_t unfilled;   // if kept: records cut and not yet passed to TCP
  bool kept : 1;            // its FPDUs are copied; it is done when passed to TCP (E-22, E-23)
  bool counted : 1;         // its regions count it in `uses` (E-25)
  bool whole : 1;           // the last FPDU has been cut
  bool broken : 1;          // a region it still had to read was deregistered
};
static_assert(sizeof(SendPart) == 16);

}  // namespace urnic::ddp
