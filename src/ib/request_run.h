// Packets in the middle of a long message, for which the requester decides once: they differ in
// PSN and payload alone, and the last of them may ask for an ACK. What leaves, and what is known of
// it afterwards, is what Requester::next_packet() would have made of them one by one; everything
// else is left to it.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "ib/packet.h"
#include "ib/send_state.h"

namespace urnic::ib {

struct RequestRun {
  PacketHeader header;                    // of the first; PSNs go up by one, AckReq is not set
  const std::uint8_t* payload = nullptr;  // of the first, in one piece with that of the others
  std::uint32_t bytes = 0;                // of payload of each
  std::uint32_t packets = 0;              // of the run
  bool ask = false;                       // the last of them asks for an ACK
};

// At most `most` packets, 1 or more, that may leave now, one behind the other. False: the next one
// is not of that kind. Nothing has left yet.
bool begin_run(SendState&, std::uint32_t most, RequestRun* run);
// The first `packets` of it, 1 or more, leave; nothing has happened since begin_run().
void run_left(SendState&, const RequestRun& run, std::uint32_t packets, Instant now);

}  // namespace urnic::ib
