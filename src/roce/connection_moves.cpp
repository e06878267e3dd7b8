#include "roce/connection_moves.h"

#include <new>

#include "ib_cm/consent.h"

namespace urnic::roce {

QpChange to_init(std::uint32_t ird) {
  QpChange c;
  c.to = verbs::QpState::Init;
  c.mask |= verbs::kQpAttrPkeyIndex | verbs::kQpAttrPort | verbs::kQpAttrAccess;
  c.access = verbs::kRemoteWrite;
  if (ird != 0) c.access |= verbs::kRemoteRead | verbs::kRemoteAtomic;
  return c;
}

QpChange to_rtr(const ib_cm::AddressPair& addresses, const ib_cm::QpValues& peer,
                const ib_cm::PathValues& path, std::uint32_t number, std::uint32_t psn,
                const OwnEnd& own) {
  constexpr std::uint32_t kFirstSourcePort = 0xc000, kSourcePorts = 0x4000;
  constexpr std::uint8_t kHopLimit = 64;  // for a peer that names none
  QpChange c;
  c.to = verbs::QpState::Rtr;
  c.mask |= verbs::kQpAttrAv | verbs::kQpAttrPathMtu | verbs::kQpAttrDestQpn | verbs::kQpAttrRqPsn |
            verbs::kQpAttrMaxDestRdAtomic | verbs::kQpAttrMinRnrTimer;
  c.av.local = addresses.local;
  c.av.remote = addresses.remote;
  // Chooses one of several equal-cost paths by the queue pair numbers, the same in both directions.
  c.av.source_port =
      static_cast<std::uint16_t>(kFirstSourcePort + ((number ^ peer.qpn) % kSourcePorts));
  c.av.traffic_class = own.traffic_class.value_or(path.traffic_class);
  c.av.hop_limit = path.hop_limit != 0 ? path.hop_limit : kHopLimit;
  c.path_mtu = path.mtu;
  c.dest_qp = peer.qpn;
  c.rq_psn = psn;
  c.responder_depth = peer.initiator_depth;
  c.min_rnr_timer = own.min_rnr_timer;
  return c;
}

QpChange to_rts(const ib_cm::QpValues& peer, const ib_cm::PathValues& path, std::uint32_t depth,
                const OwnEnd& own) {
  QpChange c;
  c.to = verbs::QpState::Rts;
  c.mask |= verbs::kQpAttrTimeout | verbs::kQpAttrRetryCount | verbs::kQpAttrRnrRetry |
            verbs::kQpAttrSqPsn | verbs::kQpAttrMaxRdAtomic;
  c.sq_psn = peer.psn.value();
  c.ack_timeout = own.ack_timeout.value_or(path.ack_timeout);
  c.retry_count = path.retry_count;
  c.rnr_retry = peer.rnr_retry;
  c.initiator_depth = depth;
  return c;
}

QpChange agreed(QpChange change, std::uint8_t extensions) {
  using Consent = QpChange::Consent;
  const bool given = (extensions & ib_cm::kExtensionSelective) != 0;
  change.consent = given ? Consent::Given : Consent::Refused;
  change.parts = given && (extensions & ib_cm::kExtensionParts) != 0;
  return change;
}

bool move(Side& side, verbs::QueuePair& qp, const QpChange& change, Instant now) {
  QpChange taken = change;
  const verbs::QpMask of_service = verbs::attributes(qp.state.service(), qp.state, change.to);
  taken.mask &= verbs::kQpAttrState | of_service.required | of_service.optional;
  try {
    return side.modify(qp, taken, now) == Modified::Ok;
  } catch (const std::bad_alloc&) {
    return qp.state == change.to;  // the packet to send waits for memory
  }
}

}  // namespace urnic::roce
