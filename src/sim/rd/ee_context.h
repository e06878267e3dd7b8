// End-to-end (EE) contexts of RD, reliable datagrams: what many queue pairs share on the way to one
// other node. PSNs, timer and retry counters are the EE context's, not the queue pair's. Here: what
// was set of one, and the moves and rules of states of both.
//
// Only simulation has RD: no device and no other implementation does.
//
// Values and pure functions; any thread.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "ib/context.h"
#include "verbs/qp_state.h"

namespace urnic::sim {

// What follows when a message is given up: refused for good, or never answered.
enum class GiveUp : std::uint8_t {
  Resync,  // its queue pair goes to Sqe; RESYNC, and the EE context serves the others (resync.h)
  Error,   // queue pair and EE context go to Error
};

// What follows when the peer has no receive.
enum class OnRnr : std::uint8_t {
  Retry,    // wait as the NAK says; the other queue pairs wait as well
  Suspend,  // RESYNC; the whole message comes again after that time, others go first
  Abandon,  // it is given up at once, and never by GiveUp::Error
  Error,    // queue pair and EE context go to Error
};

struct EeRules {
  GiveUp give_up = GiveUp::Resync;
  OnRnr on_rnr = OnRnr::Retry;
  std::uint32_t window = 64;                  // packets of a message unacknowledged at a time
  std::uint32_t ack_every = 32;               // so every manieth asks for an ACK
  Duration least_timeout = Duration::zero();  // shorter ACK timeouts are lengthened to it
};

// As QpAttributes has those of a connected queue pair (context.h).
struct EeAttributes {
  std::uint32_t number = 0;  // own, 24 bits
  std::uint32_t rdd = 0;     // reliable datagram domain; those of its queue pairs are the same
  std::uint16_t pkey = ib::kDefaultPkey;

  // Init to Rtr.
  std::uint32_t dest_ee = 0;  // the peer's number
  ib::AddressVector av;
  ib::PathMtu path_mtu = ib::PathMtu::k1024;
  ib::Psn rq_psn;

  // Rtr to Rts.
  ib::Psn sq_psn;
  std::uint8_t ack_timeout = 0;  // code
  std::uint8_t retry_count = 7;  // seven, not unlimited
  std::uint8_t rnr_retry = 7;    // 7: unlimited

  EeRules rules;

  std::uint32_t pmtu() const { return bytes(path_mtu); }
};

// What the state of the EE context that a request names makes of it (IB-131).
enum class RequestFate : std::uint8_t {
  Begins,
  Waits,  // until the EE context sends again
  Fails,  // completes in error, and the queue pair goes to Sqe
};
RequestFate fate_of_request(verbs::QpState ee_context);

// Moves of a queue pair of RD: InfiniBand's, Sqe among them, with the attributes that RD has.
verbs::QpMask rd_attributes(verbs::QpState from, verbs::QpState to);
verbs::QpMove judge_rd_move(verbs::QpState from, verbs::QpState to, verbs::Mover by,
                            std::uint32_t mask);
// Of an EE context: it has no send queue that could fail, and so no Sqe.
verbs::QpMove judge_ee_move(verbs::QpState from, verbs::QpState to, verbs::Mover by);

}  // namespace urnic::sim
