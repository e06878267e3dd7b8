#include "iwarp/refusal_text.h"

namespace urnic::iwarp {

std::string refusal_text(mpa::Refusal refusal, mpa::Policy own, const mpa::PolicyToken& peer) {
  const std::string ours(mpa::policy_name(own));
  if (refusal == mpa::Refusal::PolicyDiffers) {
    return "the peer uses framing = " + std::string(mpa::policy_name(peer.policy)) +
           ", this end framing = " + ours + ": set both ends alike";
  }
  return "the peer does not offer framing = " + ours + ": set it at both ends (both must be urnic)";
}

}  // namespace urnic::iwarp
