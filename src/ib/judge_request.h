// Decides whether a request is acceptable: the checks of a responder in their order; the first that
// fails decides (section 2.3 of the transport, IB-18..IB-31). Changes nothing.
#pragma once

#include <cstdint>

#include "ib/packet.h"
#include "ib/responder_state.h"

namespace urnic::ib {

struct RequestJudgment {
  Verdict verdict = Verdict::Accept;
  // If refused: how the receive in use completes; Success: it does not.
  verbs::Status receive = verbs::Status::Success;
  std::uint8_t rnr_timer = 0;  // NotReady: code of the time to wait
  // Accepted WRITE with payload, or atomic: its destination. Valid until memory is deregistered.
  std::uint8_t* target = nullptr;
};

// `request` has passed check() (check.h) and is not a response.
RequestJudgment judge_request(const ResponderState&, const ParsedPacket& request);

}  // namespace urnic::ib
