// Modify QP: which values a move may carry, and where they go. The moves themselves are
// verbs/qp_state.h's.
#pragma once

#include <cstdint>

#include "ib/context.h"
#include "verbs/qp_state.h"

namespace urnic::roce {

// A move and the values of the attributes in `mask` (verbs::QpAttribute); others are not looked at.
// Numbers are as a program gives them: their widths are checked.
struct QpChange {
  verbs::QpState to = verbs::QpState::Reset;
  std::uint32_t mask = verbs::kQpAttrState;

  std::uint8_t access = 0;       // verbs::kRemoteWrite, kRemoteRead, kRemoteAtomic
  std::uint32_t pkey_index = 0;  // there is one
  std::uint32_t port = 1;        // there is one
  std::uint32_t qkey = 0;        // UD
  std::uint32_t dest_qp = 0;
  ib::AddressVector av;
  ib::PathMtu path_mtu = ib::PathMtu::k1024;
  std::uint32_t rq_psn = 0, sq_psn = 0;
  std::uint32_t responder_depth = 0, initiator_depth = 0;
  std::uint32_t min_rnr_timer = 0, ack_timeout = 0;  // codes
  std::uint32_t retry_count = 7, rnr_retry = 7;
  bool tell_drained = false;  // kQpAttrSqdNotify

  // S-7, to Rtr and to Rts: whether the peer takes our packets of selective repeat.
  enum class Consent : std::uint8_t {
    Ask,  // nobody has said: by a hello
    Given,
    Refused,
  };
  Consent consent = Consent::Ask;
  bool parts = false;  // Given: and what QpAttributes::peer_parts says
};

enum class Modified : std::uint8_t {
  Ok,
  NoSuchMove,
  MissingAttribute,
  ForeignAttribute,
  Unsupported,
  BadValue,   // too wide, or an address or path MTU that cannot be
  NotDrained  // in Sqd with something outstanding: not these attributes
};
Modified modified_of(verbs::QpVerdict);

// What the device can do.
struct ModifyLimits {
  std::uint32_t ip_mtu = 1500;
  std::uint32_t most_depth = 16;  // READs and atomics at a time, each way
};
// Of one version, to a single peer.
bool address_fits(const ib::AddressVector&);
// Whether the values in the mask can be; with an address, `path_mtu` is looked at in any case.
// Whose addresses they are is not asked.
bool values_fit(const QpChange&, const ModifyLimits&);
// They are.
void apply(const QpChange&, ib::QpAttributes*);

}  // namespace urnic::roce
