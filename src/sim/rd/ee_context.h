// End-to-end (EE) contexts of RD (reliable datagrams). Many queue pairs share one EE context to
// reach one other node. PSNs, timer and retry counters belong to the EE context, not to the queue
// pair. This file has the attributes of an EE context, and the state transitions of EE contexts and
// RD queue pairs.
//
// RD exists only in the simulation: no device supports it, and no other implementation does.
//
// Values and pure functions; any thread.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "ib/context.h"
#include "verbs/qp_state.h"

namespace urnic::sim {

// The consequence of giving up a message after a fatal NAK or after the last retry.
enum class GiveUp : std::uint8_t {
  Resync,  // the queue pair enters Sqe; RESYNC; the EE context serves others (resync.h)
  Error,   // queue pair and EE context enter Error
};

// The reaction to a peer without a posted receive.
enum class OnRnr : std::uint8_t {
  Retry,    // wait for the time in the NAK; the other queue pairs wait too
  Suspend,  // RESYNC; resend the whole message after that time, others go first
  Abandon,  // give the message up at once, but never by GiveUp::Error
  Error,    // queue pair and EE context enter Error
};

struct EeRules {
  GiveUp give_up = GiveUp::Resync;
  OnRnr on_rnr = OnRnr::Retry;
  std::uint32_t window = 64;                  // most unacknowledged packets of a message
  std::uint32_t ack_every = 32;               // every n-th packet requests an ACK
  Duration least_timeout = Duration::zero();  // a lower limit for ACK timeouts
};

// The counterpart of QpAttributes for a connected queue pair (context.h).
struct EeAttributes {
  std::uint32_t number = 0;  // own, 24 bits
  std::uint32_t rdd = 0;     // reliable datagram domain, the same as that of its queue pairs
  std::uint16_t pkey = ib::kDefaultPkey;

  // Set from Init to Rtr.
  std::uint32_t dest_ee = 0;  // the peer's number
  ib::AddressVector av;
  ib::PathMtu path_mtu = ib::PathMtu::k1024;
  ib::Psn rq_psn;

  // Set from Rtr to Rts.
  ib::Psn sq_psn;
  std::uint8_t ack_timeout = 0;  // code
  std::uint8_t retry_count = 7;  // 7 means seven, not unlimited
  std::uint8_t rnr_retry = 7;    // 7: unlimited

  EeRules rules;

  std::uint32_t pmtu() const { return bytes(path_mtu); }
};

// The fate of a request, depending on the state of the EE context that it names (IB-131).
enum class RequestFate : std::uint8_t {
  Begins,
  Waits,  // until the EE context can send again
  Fails,  // completes in error, and the queue pair enters Sqe
};
RequestFate fate_of_request(verbs::QpState ee_context);

// State transitions of an RD queue pair: InfiniBand's, including Sqe, with the attributes that RD
// has.
verbs::QpMask rd_attributes(verbs::QpState from, verbs::QpState to);
verbs::QpMove judge_rd_move(verbs::QpState from, verbs::QpState to, verbs::Mover by,
                            std::uint32_t mask);
// State transitions of an EE context. It has no send queue that could fail, so it has no Sqe.
verbs::QpMove judge_ee_move(verbs::QpState from, verbs::QpState to, verbs::Mover by);

}  // namespace urnic::sim
