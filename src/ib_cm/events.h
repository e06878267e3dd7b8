// What the owner of connection management hands in, and what it is told: values.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/gate.h"
#include "base/ip_address.h"
#include "ib/context.h"
#include "ib/psn.h"
#include "ib_cm/ip_service.h"
#include "ib_cm/messages.h"

namespace urnic::ib_cm {

// A connection, or a question about a service: its comm id on the wire. 0 is none. Found by its
// index behind a keyed permutation, and not used again before 256 others of its entry.
using Handle = std::uint32_t;
using ListenerId = std::uint32_t;  // 0 is none

// Between which addresses; a datagram's own.
struct AddressPair {
  IpAddress local, remote;

  bool operator==(const AddressPair&) const = default;
};

// Bytes that a message carries for the consumer. Of what was received all that there is room for.
struct PrivateData {
  std::array<std::uint8_t, kMostPrivate> bytes{};
  std::uint8_t size = 0;

  PrivateData() = default;
  explicit PrivateData(ByteView v) : size(static_cast<std::uint8_t>(std::min(v.size(), kMost))) {
    std::copy_n(v.begin(), size, bytes.begin());
  }
  ByteView view() const { return {bytes.data(), size}; }

 private:
  static constexpr std::size_t kMost = kMostPrivate;
};

// What the one end says of its queue pair to the other (IB-135).
struct QpValues {
  std::uint32_t qpn = 0;
  ib::Psn psn;                           // of the first request it takes
  std::uint8_t responder_resources = 0;  // READs and atomics it serves at a time
  std::uint8_t initiator_depth = 0;      // READs and atomics it has outstanding
  std::uint8_t rnr_retry = 7;            // for the other end's send queue
  bool srq = false, credits = false;
};
// What the active end sets for both.
struct PathValues {
  ib::PathMtu mtu = ib::PathMtu::k1024;
  std::uint8_t ack_timeout = 19;  // code, for the passive end's send queue
  std::uint8_t retry_count = 7;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;
};

struct Connect {
  AddressPair way;
  std::uint64_t service = 0;
  std::uint16_t source_port = 0;        // of an IP service
  Transport transport = Transport::Rc;  // Rc, Uc, or Extended: XRC
  QpValues qp;
  PathValues path;
  std::uint8_t response_timeout = 20;  // code: how long either end may take to answer
  std::uint8_t max_cm_retries = 15;
  std::uint8_t extensions = 0;  // offered (consent.h)
};

struct Resolve {
  AddressPair way;
  std::uint64_t service = 0;
  std::uint16_t source_port = 0;
  std::uint8_t response_timeout = 20;
  std::uint8_t max_cm_retries = 15;
};
struct Service {
  SidrStatus status = SidrStatus::Valid;
  std::uint32_t qpn = 0, qkey = 0;  // when valid
};

// Why a call did nothing.
enum class Refusal : std::uint8_t {
  None,
  NoSuchHandle,
  WrongState,
  TooLong,   // private data
  BadValue,  // that no field can hold, or addresses of two families
  Full,      // no more at a time
};

enum class EventKind : std::uint8_t {
  ConnectRequest,  // passive: accept() or reject()
  Accepted,        // active: the queue pair to Rtr and Rts, then confirm(), or reject()
  Established,     // passive: the queue pair to Rts
  Rejected,        // `reason`; there will be no connection
  Unreachable,     // nobody answered; there will be no connection
  Disconnected,    // the queue pair to Error; `reason` when it was not by a DREQ
  ServiceRequest,  // answer()
  Resolved,        // `service`, with its status
  TurnedAway,      // `verdict`; a request that the gate of its listener refused, without a handle
  Released,        // the last of each handle: its queue pair's number may be another's now (IB-129)
};

struct Event {
  EventKind kind = EventKind::Released;
  Handle handle = 0;
  ListenerId listener = 0;  // ConnectRequest, ServiceRequest, TurnedAway
  AddressPair way;
  Reason reason = Reason::None;   // Rejected, Disconnected
  std::uint64_t wanted = 0;       // ConnectRequest, ServiceRequest: which service
  std::uint16_t source_port = 0;  // of an IP service
  Transport transport = Transport::Rc;
  QpValues qp;                  // ConnectRequest, Accepted: the other end's
  PathValues path;              // ConnectRequest; Accepted: ack_timeout, mtu, retry_count
  std::uint8_t extensions = 0;  // ConnectRequest: offered; Accepted: agreed to
  Service service;              // Resolved
  GateVerdict verdict = GateVerdict::Admitted;  // TurnedAway
  PrivateData data;
};

// A MAD that leaves for queue pair 1 of `way.remote`.
struct Outgoing {
  AddressPair way;
  Mad mad{};
};

}  // namespace urnic::ib_cm
