// Connections as every transport's control path handles them (control_path.h): the local end, the
// consumer's parameters, a peer's request, and the events. Plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/gate.h"
#include "base/ip_address.h"
#include "base/time.h"
#include "urnic/connection_events.h"
#include "urnic/connection_options.h"
#include "urnic/qp_attributes.h"
#include "urnic/status.h"
#include "verbs/qp_state.h"

namespace urnic::verbs {

class ControlPath;
struct QueuePair;

// Local addresses and port.
struct LocalEnd {
  // The any-address of version 6 stands for all of version 4 too, unless `v6_only`.
  SocketAddress at{IpAddress::any_v6(), 0};
  bool v6_only = false;
  bool shared = false;  // may overlap other shared ones, until one of them listens

  bool covers(const IpAddress& ip) const {
    if (at.ip == IpAddress::any_v6()) return ip.is_v6() || !v6_only;
    if (at.ip == IpAddress::any_v4()) return ip.is_v4();
    return at.ip == ip;
  }
  // True if some address and port belongs to both.
  bool overlaps(const LocalEnd& o) const {
    return at.port == o.at.port && (covers(o.at.ip) || o.covers(at.ip));
  }
};

// An address and port that is reserved for a consumer, or at which it listens. Each transport adds
// its own data.
struct Listener {
  ControlPath* control = nullptr;  // the control path that made it
  LocalEnd local;
  Service service = Service::Rc;  // of the queue pairs that accept: Rc, XrcReceive or Ud
  void* owner = nullptr;          // the consumer's; requests carry the listener
  std::shared_ptr<Gate> gate;     // null: every peer is admitted
  std::uint16_t port() const { return local.at.port; }
};

// The consumer's parameters of one connection; the device chooses those that are not set.
struct ConnectParams {
  std::optional<std::uint16_t> ird, ord;
  ByteView private_data;  // borrowed for the call
  Duration timeout;       // zero: the device's default
  // Connecting only.
  const Listener* source = nullptr;    // bound; null: any port of `source_ip`, if that is set
  std::optional<IpAddress> source_ip;  // else the address with a route to the peer
  Duration refusal_retry;              // how long a refusal is retried
  // Each transport reads only its own.
  IwarpConnectionOptions iwarp;
  RoceConnectionOptions roce;
};

// A peer's request for a connection, or for the service of a UD queue pair.
struct ConnectionRequest {
  ControlPath* control = nullptr;  // the control path that received it, and takes the answer
  std::uint64_t id = 0;            // identifies the request in its one answer
  Service service = Service::Rc;   // of the queue pair that will accept it: Rc, XrcReceive or Ud
  SocketAddress local, peer;
  std::vector<std::uint8_t> private_data;
  std::uint16_t ird = 0, ord = 0;  // how many the peer wants outstanding, and how many it serves
  RocePeer roce_peer;              // RoCE: the other fields of the message
  QpAttributes attributes;         // RoCE, Rc: the attributes to move a queue pair of the program
};

// An event of a connection, and of its queue pair.
struct CmEvent {
  enum class Kind : std::uint8_t {
    ConnectRequest,
    Established,
    ConnectFailed,
    Disconnected,
    Failed,
    LastReceive,  // a queue pair on a shared receive queue uses no more of it
    EarlyData,    // a message arrived before Established could be reported, which follows
    // After Failed, the cause: the peer requested memory that it has no access rights to, sent an
    // invalid request, or this end had an internal error.
    AccessError,
    RequestError,
    Fatal,
    Drained,       // RoCE: in Sqd, if requested (IB-112)
    TimeWaitOver,  // RoCE: after an end; the queue pair may be connected again
    Answered,      // RoCE: the peer accepts; the program moves its queue pair now
  };
  Kind kind = Kind::Failed;
  QueuePair* qp = nullptr;         // null for ConnectRequest
  Listener* listener = nullptr;    // ConnectRequest
  ConnectionRequest request = {};  // ConnectRequest
  Errc code = Errc::io;            // ConnectFailed, Failed
  std::string message;
  std::string private_data;  // bytes
  RocePeer roce_peer;        // Answered, Established, ConnectFailed: fields of the peer's message
};

// The UD queue pair that serves an address and port; or, if there is none, `code` and `why`.
struct DatagramAnswer {
  bool found = false;
  Errc code = Errc::io;
  const char* why = "";
  IpAddress local, remote;
  std::uint32_t qp_number = 0, qkey = 0;
  ByteView private_data;  // the peer's; borrowed for the call
};

}  // namespace urnic::verbs
