// The input and output values of connection management.
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

// A connection, or a service request: its comm id on the wire. 0 is none. It is the index of its
// entry behind a keyed permutation, and is not reused before its entry has had 256 others.
using Handle = std::uint32_t;
using ListenerId = std::uint32_t;  // 0 is none

// The addresses of a connection, or of a datagram.
struct AddressPair {
  IpAddress local, remote;

  bool operator==(const AddressPair&) const = default;
};

// Bytes that a message carries for the consumer. For a received message, all bytes of the field.
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

// The values of its queue pair that one end sends to the other (IB-135).
struct QpValues {
  std::uint32_t qpn = 0;
  ib::Psn psn;                           // of the first request it receives
  std::uint8_t responder_resources = 0;  // READs and atomics it serves at a time
  std::uint8_t initiator_depth = 0;      // READs and atomics it has outstanding
  std::uint8_t rnr_retry = 7;            // for the other end's send queue
  bool srq = false, credits = false;
};
// Values that the active end chooses for both.
struct PathValues {
  ib::PathMtu mtu = ib::PathMtu::k1024;
  std::uint8_t ack_timeout = 19;  // code, for the passive end's send queue
  std::uint8_t retry_count = 7;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;
};

struct Connect {
  AddressPair addresses;
  std::uint64_t service = 0;
  std::uint16_t source_port = 0;        // for an IP service
  Transport transport = Transport::Rc;  // Rc, Uc, or Extended: XRC
  QpValues qp;
  PathValues path;
  std::uint8_t response_timeout = 20;  // code: how long either end may take to answer
  std::uint8_t max_cm_retries = 15;
  std::uint8_t extensions = 0;  // offered (consent.h)
};

struct Resolve {
  AddressPair addresses;
  std::uint64_t service = 0;
  std::uint16_t source_port = 0;
  std::uint8_t response_timeout = 20;
  std::uint8_t max_cm_retries = 15;
};
struct Service {
  SidrStatus status = SidrStatus::Valid;
  std::uint32_t qpn = 0, qkey = 0;  // if valid
};

// Why a call had no effect.
enum class Refusal : std::uint8_t {
  None,
  NoSuchHandle,
  WrongState,
  TooLong,   // private data
  BadValue,  // too large for its field, or addresses of two families
  Full,      // the limit is reached
};

enum class EventKind : std::uint8_t {
  ConnectRequest,  // passive: accept() or reject()
  Accepted,        // active: move the queue pair to Rtr and Rts, then confirm(); or reject()
  Established,     // passive: move the queue pair to Rts
  Rejected,        // `reason`; there will be no connection
  Unreachable,     // no response; there will be no connection
  Disconnected,    // move the queue pair to Error; `reason` unless it was by a DREQ
  ServiceRequest,  // answer()
  Resolved,        // `service`, with its status
  TurnedAway,      // `verdict`; the listener's gate refused a request; no handle
  Released,  // the last event of each handle: the queue pair's number may be reused now (IB-129)
};

struct Event {
  EventKind kind = EventKind::Released;
  Handle handle = 0;
  ListenerId listener = 0;  // ConnectRequest, ServiceRequest, TurnedAway
  AddressPair addresses;
  Reason reason = Reason::None;   // Rejected, Disconnected
  std::uint64_t wanted = 0;       // ConnectRequest, ServiceRequest: the service
  std::uint16_t source_port = 0;  // for an IP service
  Transport transport = Transport::Rc;
  QpValues qp;                  // ConnectRequest, Accepted: of the other end
  PathValues path;              // ConnectRequest; Accepted: ack_timeout, mtu, retry_count
  std::uint8_t extensions = 0;  // ConnectRequest: offered; Accepted: agreed
  Service service;              // Resolved
  GateVerdict verdict = GateVerdict::Admitted;  // TurnedAway
  PrivateData data;
};

// A MAD to be sent to queue pair 1 of `way.remote`.
struct Outgoing {
  AddressPair addresses;
  Mad mad{};
};

}  // namespace urnic::ib_cm
