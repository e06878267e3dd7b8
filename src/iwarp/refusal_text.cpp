#include "iwarp/refusal_text.h"

namespace urnic::iwarp {

std::string refusal_text(mpa::Refusal refusal, mpa::Policy own, const mpa::PolicyToken& peer) {
  const std::string ours(mpa::policy_name(own));
  if (refusal == mpa::Refusal::PolicyDiffers) {
    return "the peer runs framing = " + std::string(mpa::policy_name(peer.policy)) +
           ", this end framing = " + ours + ": both must be set alike";
  }
  return "the peer does not know or not offer framing = " + ours +
         ", which both ends must be set to (urnic only)";
}

}  // namespace urnic::iwarp
