// The configuration of one queue pair of the transport, set by Modify QP or the connection manager;
// the state of its two halves is in requester.h and responder.h.
//
// Owned by the owner of the queue pair; written while the halves do not run (both under the
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
// The largest path MTU for an IP MTU, as peers compute it: path MTU + 80 <= `ip_mtu`.
constexpr PathMtu path_mtu_of(std::uint32_t ip_mtu) {
  if (ip_mtu >= 4096 + 80) return PathMtu::k4096;
  if (ip_mtu >= 2048 + 80) return PathMtu::k2048;
  if (ip_mtu >= 1024 + 80) return PathMtu::k1024;
  return ip_mtu >= 512 + 80 ? PathMtu::k512 : PathMtu::k256;
}

// The path to the peer: the contents of the address vector over UDP.
struct AddressVector {
  IpAddress local, remote;             // of one family
  std::uint16_t source_port = 0xc000;  // UDP, 0xc000..0xffff
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
};

class XrcQueues;

// XRC: the end of the connection that a queue pair is.
struct XrcEnd {
  bool receives = false;  // the receiving end (TGT) has no requests, the sending end no receives
  std::uint32_t domain = 0;
  XrcQueues* queues = nullptr;  // all XRC queues, those of the domain included
};

// Defaults are those of a new queue pair. Widths are as on the wire: PSNs and QPNs 24 bits, timer
// codes 5 bits, retry counts 3 bits; the caller must have checked them.
struct QpAttributes {
  ServiceType service = ServiceType::Rc;
  std::uint32_t number = 0;  // own QPN
  verbs::PdId pd = 0;
  XrcEnd xrc;

  // Reset to Init.
  std::uint8_t access = 0;            // verbs::kRemoteWrite, kRemoteRead, kRemoteAtomic
  std::uint16_t pkey = kDefaultPkey;  // of the primary index
  std::uint32_t qkey = 0;             // UD

  // Init to Rtr.
  std::uint32_t dest_qp = 0;
  AddressVector av;
  PathMtu path_mtu = PathMtu::k1024;
  Psn rq_psn;                        // of the first request received
  std::uint8_t responder_depth = 0;  // READs and atomics served at a time
  std::uint8_t min_rnr_timer = 0;    // code; 0 is 655.36 ms

  // Rtr to Rts.
  Psn sq_psn;                        // of the first request packet sent
  std::uint8_t initiator_depth = 0;  // READs and atomics outstanding at a time
  std::uint8_t ack_timeout = 0;      // code: 4.096 us * 2^n; 0: no timer
  std::uint8_t retry_count = 7;      // seven, not unlimited (IB-74)
  std::uint8_t rnr_retry = 7;        // 7: unlimited
  bool probe = false;                // the requester's probe (probe.h); off as specified (S-5)

  LossRules loss;  // for responder and requester; set before Rtr

  // S-7, RC: this end accepts urnic's own packets (sack.h); the peer accepts them as well, as
  // reported when it was connected, or at any time by its hello.
  bool selective = false, peer_selective = false;
  // The peer has reported that it keeps parts of READs that are requested together (S-2).
  bool peer_parts = false;

  // True if ACKs advertise the receive queue's credits (RC without a shared receive queue,
  // IB-80..82); otherwise every ACK has kNoCredits.
  bool tells_credits = true;

  // Acknowledged and repeated: RC and XRC.
  bool reliable() const { return service == ServiceType::Rc || service == ServiceType::Xrc; }
  std::uint32_t pmtu() const { return bytes(path_mtu); }
  verbs::Requester peer() const { return {pd, number}; }
};

}  // namespace urnic::ib
