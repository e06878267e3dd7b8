// Modify QP: checks which values a change may carry, and stores them. verbs/qp_state.h has the
// state machine itself.
#pragma once

#include <cstdint>

#include "ib/context.h"
#include "verbs/qp_state.h"

namespace urnic::roce {

// A change of state and the values of the attributes in `mask` (verbs::QpAttribute); others are
// ignored. Numbers are as a program gives them: their widths are checked.
struct QpChange {
  verbs::QpState to = verbs::QpState::Reset;
  std::uint32_t mask = verbs::kQpAttrState;

  std::uint8_t access = 0;       // verbs::kRemoteWrite, kRemoteRead, kRemoteAtomic
  std::uint32_t pkey_index = 0;  // there is only one
  std::uint32_t port = 1;        // there is only one
  std::uint32_t qkey = 0;        // UD
  std::uint32_t dest_qp = 0;
  ib::AddressVector av;
  ib::PathMtu path_mtu = ib::PathMtu::k1024;
  std::uint32_t rq_psn = 0, sq_psn = 0;
  std::uint32_t responder_depth = 0, initiator_depth = 0;
  std::uint32_t min_rnr_timer = 0, ack_timeout = 0;  // codes
  std::uint32_t retry_count = 7, rnr_retry = 7;
  bool tell_drained = false;  // kQpAttrSqdNotify

  // S-7, to Rtr and to Rts: whether the peer accepts our packets of selective repeat.
  enum class Consent : std::uint8_t {
    Ask,  // unknown: ask with a hello
    Given,
    Refused,
  };
  Consent consent = Consent::Ask;
  bool parts = false;  // if Given: the value for QpAttributes::peer_parts
};

enum class Modified : std::uint8_t {
  Ok,
  NoSuchMove,
  MissingAttribute,
  ForeignAttribute,
  Unsupported,
  BadValue,   // too wide, or an invalid address or path MTU
  NotDrained  // in Sqd with requests outstanding: these attributes cannot change
};
Modified modified_of(verbs::QpVerdict);

// Limits of the device.
struct ModifyLimits {
  std::uint32_t ip_mtu = 1500;
  std::uint32_t most_depth = 16;  // READs and atomics at a time, in each direction
};
// True for addresses of one IP version and a unicast peer.
bool address_fits(const ib::AddressVector&);
// True if the values in the mask are valid; with an address, `path_mtu` is always checked. Does not
// check whether the local address is ours.
bool values_fit(const QpChange&, const ModifyLimits&);
// Stores the values; only after values_fit().
void apply(const QpChange&, ib::QpAttributes*);

}  // namespace urnic::roce
