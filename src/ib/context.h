// What is known of one queue pair of the transport besides the state of its two halves
// (requester.h, responder.h): what Modify QP or the connection manager set.
//
// Owned by whoever owns the queue pair; written while the halves do not run (both under the
// ownership of one engine), read by both.
#pragma once

#include <cstdint>

#include "base/ip_address.h"
#include "ib/loss_rules.h"
#include "ib/opcode_table.h"
#include "ib/packet.h"
#include "ib/psn.h"
#include "verbs/memory.h"

namespace urnic::ib {

// Payload bytes of a full packet. Both ends use the same (IB-13, IB-27).
enum class PathMtu : std::uint16_t {
  k256 = 256,
  k512 = 512,
  k1024 = 1024,
  k2048 = 2048,
  k4096 = 4096,
};
constexpr std::uint32_t bytes(PathMtu m) {
  return static_cast<std::uint32_t>(m);
}
// The largest that fits datagrams of an IP MTU, as peers compute it: path MTU + 80 <= `ip_mtu`.
constexpr PathMtu path_mtu_of(std::uint32_t ip_mtu) {
  if (ip_mtu >= 4096 + 80) return PathMtu::k4096;
  if (ip_mtu >= 2048 + 80) return PathMtu::k2048;
  if (ip_mtu >= 1024 + 80) return PathMtu::k1024;
  return ip_mtu >= 512 + 80 ? PathMtu::k512 : PathMtu::k256;
}

// The way to the peer: what the address vector comes to over UDP.
struct AddressVector {
  IpAddress local, remote;             // of one family
  std::uint16_t source_port = 0xc000;  // UDP, 0xc000..0xffff
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
};

class XrcQueues;

// XRC: which end of its connection a queue pair is.
struct XrcEnd {
  bool receives = false;  // the receiving one (TGT): it has no requests, the other no receives
  std::uint32_t domain = 0;
  XrcQueues* queues = nullptr;  // among which the domain's are
};

// Defaults are those of a queue pair that was just made. Widths are as on the wire: PSNs and QPNs
// 24 bits, timer codes 5 bits, retry counts 3 bits; whoever sets them has checked that.
struct QpAttributes {
  ServiceType service = ServiceType::Rc;
  std::uint32_t number = 0;  // own QPN
  verbs::PdId pd = 0;
  XrcEnd xrc;

  // Reset to Init.
  std::uint8_t access = 0;            // verbs::kRemoteWrite, kRemoteRead, kRemoteAtomic
  std::uint16_t pkey = kDefaultPkey;  // the entry the primary index names
  std::uint32_t qkey = 0;             // UD

  // Init to Rtr.
  std::uint32_t dest_qp = 0;
  AddressVector av;
  PathMtu path_mtu = PathMtu::k1024;
  Psn rq_psn;                        // the first request's
  std::uint8_t responder_depth = 0;  // READs and atomics served at a time
  std::uint8_t min_rnr_timer = 0;    // code; 0 is 655.36 ms

  // Rtr to Rts.
  Psn sq_psn;                        // of the first request packet sent
  std::uint8_t initiator_depth = 0;  // READs and atomics outstanding at a time
  std::uint8_t ack_timeout = 0;      // code: 4.096 us * 2^n; 0: no timer
  std::uint8_t retry_count = 7;      // seven, not unlimited (IB-74)
  std::uint8_t rnr_retry = 7;        // 7: unlimited
  bool probe = false;                // the requester's probe (probe.h); off is the letter (S-5)

  LossRules loss;  // as a responder and as a requester; before Rtr

  // S-7, RC: packets of our own (sack.h) are taken; and the peer takes them as well, as it has said
  // when it was connected or by its hello, at any time.
  bool selective = false, peer_selective = false;
  // The peer has said as well that it keeps parts of READs which are asked for at once (S-2).
  bool peer_parts = false;

  // Whether the receive queue tells its credits (RC without a shared receive queue, IB-80..82);
  // else every ACK says kNoCredits.
  bool tells_credits = true;

  // Answered and repeated: RC and XRC.
  bool reliable() const { return service == ServiceType::Rc || service == ServiceType::Xrc; }
  std::uint32_t pmtu() const { return bytes(path_mtu); }
  verbs::Requester peer() const { return {pd, number}; }
};

}  // namespace urnic::ib
