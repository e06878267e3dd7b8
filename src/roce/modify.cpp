#include "roce/modify.h"

#include "roce/frame.h"

namespace urnic::roce {

using namespace verbs;

Modified modified_of(QpVerdict v) {
  switch (v) {
    case QpVerdict::Ok:
      return Modified::Ok;
    case QpVerdict::NoSuchMove:
      return Modified::NoSuchMove;
    case QpVerdict::MissingAttribute:
      return Modified::MissingAttribute;
    case QpVerdict::ForeignAttribute:
      return Modified::ForeignAttribute;
    case QpVerdict::Unsupported:
      return Modified::Unsupported;
  }
  return Modified::Unsupported;
}

bool address_fits(const ib::AddressVector& av) {
  return av.local.is_v6() == av.remote.is_v6() && !av.remote.is_any() &&
         !av.remote.is_multicast() && !av.remote.is_broadcast() && av.hop_limit != 0;
}

namespace {

bool mtu_fits(const QpChange& c, const ModifyLimits& limits) {
  switch (c.path_mtu) {
    case ib::PathMtu::k256:
    case ib::PathMtu::k512:
    case ib::PathMtu::k1024:
    case ib::PathMtu::k2048:
    case ib::PathMtu::k4096:
      break;
    default:
      return false;
  }
  const std::size_t ip = net::ip_header_size(c.av.remote);
  return ip + kMostAround + ib::bytes(c.path_mtu) <= limits.ip_mtu;
}

}  // namespace

bool values_fit(const QpChange& c, const ModifyLimits& limits) {
  const auto has = [&](std::uint32_t bit) { return (c.mask & bit) != 0; };
  constexpr std::uint8_t kRights = kRemoteWrite | kRemoteRead | kRemoteAtomic;
  if (has(kQpAttrAccess) && (c.access & ~kRights) != 0) return false;
  if (has(kQpAttrPkeyIndex) && c.pkey_index != 0) return false;
  if (has(kQpAttrPort) && c.port != 1) return false;
  if (has(kQpAttrDestQpn) && c.dest_qp > ib::kMask24) return false;
  if (has(kQpAttrAv) && !address_fits(c.av)) return false;
  if ((has(kQpAttrPathMtu) || has(kQpAttrAv)) && !mtu_fits(c, limits)) return false;
  if (has(kQpAttrRqPsn) && c.rq_psn > ib::kMask24) return false;
  if (has(kQpAttrSqPsn) && c.sq_psn > ib::kMask24) return false;
  if (has(kQpAttrMaxDestRdAtomic) && c.responder_depth > limits.most_depth) return false;
  if (has(kQpAttrMaxRdAtomic) && c.initiator_depth > limits.most_depth) return false;
  if (has(kQpAttrMinRnrTimer) && c.min_rnr_timer > 31) return false;
  if (has(kQpAttrTimeout) && c.ack_timeout > 31) return false;
  if (has(kQpAttrRetryCount) && c.retry_count > 7) return false;
  return !has(kQpAttrRnrRetry) || c.rnr_retry <= 7;
}

void apply(const QpChange& c, ib::QpAttributes* a) {
  const auto has = [&](std::uint32_t bit) { return (c.mask & bit) != 0; };
  const auto small = [](std::uint32_t v) { return static_cast<std::uint8_t>(v); };
  if (has(kQpAttrAccess)) a->access = c.access;
  if (has(kQpAttrPkeyIndex)) a->pkey = ib::kDefaultPkey;
  if (has(kQpAttrQkey)) a->qkey = c.qkey;
  if (has(kQpAttrDestQpn)) a->dest_qp = c.dest_qp;
  if (has(kQpAttrAv)) a->av = c.av;
  if (has(kQpAttrPathMtu)) a->path_mtu = c.path_mtu;
  if (has(kQpAttrRqPsn)) a->rq_psn = ib::Psn(c.rq_psn);
  if (has(kQpAttrSqPsn)) a->sq_psn = ib::Psn(c.sq_psn);
  if (has(kQpAttrMaxDestRdAtomic)) a->responder_depth = small(c.responder_depth);
  if (has(kQpAttrMaxRdAtomic)) a->initiator_depth = small(c.initiator_depth);
  if (has(kQpAttrMinRnrTimer)) a->min_rnr_timer = small(c.min_rnr_timer);
  if (has(kQpAttrTimeout)) a->ack_timeout = small(c.ack_timeout);
  if (has(kQpAttrRetryCount)) a->retry_count = small(c.retry_count);
  if (has(kQpAttrRnrRetry)) a->rnr_retry = small(c.rnr_retry);
}

}  // namespace urnic::roce
