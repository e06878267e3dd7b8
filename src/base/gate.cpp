#include "base/gate.h"

#include <algorithm>

namespace urnic {

const char* name(GateVerdict v) {
  switch (v) {
    case GateVerdict::Admitted:
      return "admitted";
    case GateVerdict::Denied:
      return "its address is denied";
    case GateVerdict::Full:
      return "listener_connections";
    case GateVerdict::PeerFull:
      return "peer_connections";
    case GateVerdict::TooFast:
      return "accept_rate";
  }
  return "";
}

Gate::Gate(GateRules rules) : rules_(std::move(rules)) {
  if (rules_.rate != 0) rate_.emplace(rules_.rate, rules_.rate);
}

GateVerdict Gate::judge(const IpAddress& peer, Instant now) const {
  if (!rules_.access.admits(peer)) return GateVerdict::Denied;
  if (rules_.most != 0 && inside_ >= rules_.most) return GateVerdict::Full;
  if (rules_.most_of_peer != 0) {
    const auto of_peer = by_peer_.find(peer.unmapped());
    if (of_peer != by_peer_.end() && of_peer->second >= rules_.most_of_peer) {
      return GateVerdict::PeerFull;
    }
  }
  if (rate_ && !rate_->has(now)) return GateVerdict::TooFast;
  return GateVerdict::Admitted;
}

GateVerdict Gate::enter(const IpAddress& peer, Instant now) {
  const GateVerdict verdict = judge(peer, now);
  if (verdict != GateVerdict::Admitted) return verdict;
  if (rules_.most_of_peer != 0) ++by_peer_[peer.unmapped()];
  if (rate_) rate_->take(now);
  ++inside_;
  return verdict;
}

void Gate::leave(const IpAddress& peer) {
  --inside_;
  const auto of_peer = by_peer_.find(peer.unmapped());
  if (of_peer != by_peer_.end() && --of_peer->second == 0) by_peer_.erase(of_peer);
}

GateRules quarters_of(std::uint32_t places) {
  GateRules r;
  r.most = places;
  r.most_of_peer = std::max(places / 4, 1u);
  return r;
}

GateRules quarters_of_four_times(std::uint32_t places) {
  return quarters_of(4 * std::min(places, ~0u / 4));
}

std::shared_ptr<Gate> make_gate(const GateRules& rules) {
  return rules.any() ? std::make_shared<Gate>(rules) : nullptr;
}

}  // namespace urnic
