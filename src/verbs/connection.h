// Connections as every transport's control path has them (control_path.h): where one begins, what
// its consumer chooses for it, a peer's request for one, and what becomes of it. Values.
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

// Which of our addresses, and which port of them.
struct LocalEnd {
  // The any-address of version 6 stands for all of version 4 too, unless `v6_only`.
  SocketAddress at{IpAddress::any_v6(), 0};
  bool v6_only = false;
  bool shared = false;  // others that are shared may overlap, until one of them listens

  bool covers(const IpAddress& ip) const {
    if (at.ip == IpAddress::any_v6()) return ip.is_v6() || !v6_only;
    if (at.ip == IpAddress::any_v4()) return ip.is_v4();
    return at.ip == ip;
  }
  // There is an address and port that is of both.
  bool overlaps(const LocalEnd& o) const {
    return at.port == o.at.port && (covers(o.at.ip) || o.covers(at.ip));
  }
};

// An address and port that is kept for a consumer, or at which it listens. Each transport adds what
// it needs of its own.
struct Listener {
  ControlPath* control = nullptr;  // that has made it
  LocalEnd local;
  Service service = Service::Rc;  // of the queue pairs that accept: Rc, XrcReceive or Ud
  void* owner = nullptr;          // the consumer's; requests come with the listener
  std::shared_ptr<Gate> gate;     // null: every peer is admitted
  std::uint16_t port() const { return local.at.port; }
};

// What the consumer chooses for one connection; what it leaves alone the device chooses.
struct ConnectParams {
  std::optional<std::uint16_t> ird, ord;
  ByteView private_data;  // borrowed for the call
  Duration timeout;       // zero: the device's
  // Connecting only.
  const Listener* source = nullptr;    // bound; null: any port of `source_ip`, if there is one
  std::optional<IpAddress> source_ip;  // else the address that leads to the peer
  Duration refusal_retry;              // for so long a refusal is not final
  // A transport looks at its own alone.
  IwarpConnectionOptions iwarp;
  RoceConnectionOptions roce;
};

// A peer's request for a connection, or for the service of a UD queue pair.
struct ConnectionRequest {
  ControlPath* control = nullptr;  // that has received it, and takes the answer
  std::uint64_t id = 0;            // by which it is answered, once
  Service service = Service::Rc;   // of the queue pair that is to accept it: Rc, XrcReceive or Ud
  SocketAddress local, peer;
  std::vector<std::uint8_t> private_data;
  std::uint16_t ird = 0, ord = 0;  // what the peer wants to have outstanding, and what it serves
  RocePeer roce_peer;              // RoCE: what the message says besides
  QpAttributes attributes;         // RoCE, Rc: by which the consumer would move its queue pair
};

// What becomes of a connection, and of the queue pair that has it.
struct CmEvent {
  enum class Kind : std::uint8_t {
    ConnectRequest,
    Established,
    ConnectFailed,
    Disconnected,
    Failed,
    LastReceive,  // a queue pair on a shared receive queue will use no more of it
    EarlyData,    // a message has come before Established could be reported, which follows
    // After Failed, its cause: the peer requested memory that it has no access rights to, sent an
    // invalid request, or this end had an internal error.
    AccessError,
    RequestError,
    Fatal,
    Drained,       // RoCE: in Sqd, as asked for (IB-112)
    TimeWaitOver,  // RoCE: after an end; the queue pair may be connected again
    Answered,      // RoCE: the peer accepts; the program moves its queue pair now
  };
  Kind kind = Kind::Failed;
  QueuePair* qp = nullptr;         // not of ConnectRequest
  Listener* listener = nullptr;    // ConnectRequest
  ConnectionRequest request = {};  // ConnectRequest
  Errc code = Errc::io;            // ConnectFailed, Failed
  std::string message;
  std::string private_data;  // bytes
  RocePeer roce_peer;        // Answered, Established, ConnectFailed: what the peer's message says
};

// Which UD queue pair serves an address and port; or `code` and `why` there is none.
struct DatagramAnswer {
  bool found = false;
  Errc code = Errc::io;
  const char* why = "";
  IpAddress local, remote;
  std::uint32_t qp_number = 0, qkey = 0;
  ByteView private_data;  // the peer's; borrowed for the call
};

}  // namespace urnic::verbs
