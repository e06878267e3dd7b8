// Sends consecutive middle packets of a long message with a single decision: they differ only in
// PSN and payload, and only the last of them may request an ACK. The packets, and the state after
// them, are the same as with Requester::next_packet() for each; all other packets are left to that.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "ib/packet.h"
#include "ib/send_state.h"

namespace urnic::ib {

struct RequestRun {
  PacketHeader header;                    // of the first; PSNs increase by one, AckReq is not set
  const std::uint8_t* payload = nullptr;  // of the first, contiguous with that of the others
  std::uint32_t bytes = 0;                // payload bytes of each
  std::uint32_t packets = 0;              // number of packets
  bool ask = false;                       // the last one requests an ACK
};

// At most `most` (1 or more) consecutive packets that may be sent now. False: the next one is not a
// middle packet, or may not be sent. Nothing counts as sent yet.
bool begin_run(SendState&, std::uint32_t most, RequestRun* run);
// The first `packets` (1 or more) of them are sent; nothing may happen between begin_run() and
// this.
void run_left(SendState&, const RequestRun& run, std::uint32_t packets, Instant now);

}  // namespace urnic::ib
