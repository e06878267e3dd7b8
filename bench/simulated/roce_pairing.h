// RC queue pairs of a simulated pair, connected manually, like programs that exchange numbers
// themselves.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "sim/pair.h"

namespace urnic::bench {

namespace pairing_detail {

inline roce::QpChange to_init() {
  roce::QpChange c;
  c.to = verbs::QpState::Init;
  c.mask |= verbs::kQpAttrPkeyIndex | verbs::kQpAttrPort | verbs::kQpAttrAccess;
  c.access = verbs::kRemoteWrite | verbs::kRemoteRead;
  return c;
}
inline roce::QpChange to_rtr(std::uint32_t dest, const char* local, const char* remote,
                             ib::PathMtu mtu) {
  roce::QpChange c;
  c.to = verbs::QpState::Rtr;
  c.mask |= verbs::kQpAttrAv | verbs::kQpAttrPathMtu | verbs::kQpAttrDestQpn | verbs::kQpAttrRqPsn |
            verbs::kQpAttrMaxDestRdAtomic | verbs::kQpAttrMinRnrTimer;
  c.av.local = *IpAddress::parse(local);
  c.av.remote = *IpAddress::parse(remote);
  c.path_mtu = mtu;
  c.dest_qp = dest;
  c.responder_depth = 1;
  c.min_rnr_timer = 1;
  c.consent = roce::QpChange::Consent::Given;  // S-7: both are urnic
  return c;
}
inline roce::QpChange to_rts() {
  roce::QpChange c;
  c.to = verbs::QpState::Rts;
  c.mask |= verbs::kQpAttrTimeout | verbs::kQpAttrRetryCount | verbs::kQpAttrRnrRetry |
            verbs::kQpAttrSqPsn | verbs::kQpAttrMaxRdAtomic;
  c.ack_timeout = 14;
  c.initiator_depth = 1;
  return c;
}

}  // namespace pairing_detail

// Moves both to RTS with PSNs from 0 on. Ends the process on failure.
inline void pair_up(sim::Pair* pair, verbs::QueuePair& left, verbs::QueuePair& right,
                    ib::PathMtu mtu) {
  using namespace pairing_detail;
  const auto move = [&](sim::Node& node, verbs::QueuePair& qp, const roce::QpChange& c) {
    if (node.engine().roce_control().move(qp, c, pair->now()) == roce::Modified::Ok) return;
    std::fprintf(stderr, "bench: a queue pair cannot be moved\n");
    std::exit(1);
  };
  const auto up = [&](sim::Node& node, verbs::QueuePair& qp, const roce::QpChange& rtr) {
    move(node, qp, to_init());
    move(node, qp, rtr);
    move(node, qp, to_rts());
  };
  up(pair->left(), left, to_rtr(right.number(), "10.0.0.1", "10.0.0.2", mtu));
  up(pair->right(), right, to_rtr(left.number(), "10.0.0.2", "10.0.0.1", mtu));
}

}  // namespace urnic::bench
