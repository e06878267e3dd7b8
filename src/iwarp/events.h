// What the engine tells the layer above about connections and completion queues. All hooks are
// called while the engine is owned, and may only note things down (queue an event, write an
// eventfd); they never call back into the engine.
#pragma once

#include <cstdint>
#include <string>

#include "base/ip_address.h"
#include "tcp/flow.h"
#include "urnic/connection_events.h"
#include "urnic/status.h"
#include "verbs/completion_queue.h"
#include "verbs/queue_pair.h"

namespace urnic::iwarp {

struct Listener;
using tcp::FlowKey;

struct CmEvent {
  enum class Kind : std::uint8_t {
    ConnectRequest,
    Established,
    ConnectFailed,
    Disconnected,
    Failed,
    LastReceive,  // a queue pair on a shared receive queue will use no more of it
    EarlyData,    // a message has come before Established could be said, which follows
    // Behind Failed: the peer did what its requests have no right to, or what no request may be, or
    // something went wrong here.
    AccessError,
    RequestError,
    Fatal,
    TimeWaitOver,  // RoCE: behind an end; the queue pair may be connected again
    Answered,      // RoCE: the peer takes the connection; the program moves its queue pair now
  };
  Kind kind = Kind::Failed;
  verbs::QueuePair* qp = nullptr;  // not for ConnectRequest
  Listener* listener = nullptr;    // ConnectRequest
  std::uint64_t connection = 0;    // ConnectRequest: the handle to accept or reject
  Errc code = Errc::io;            // ConnectFailed, Failed
  std::string message;
  std::string private_data;  // octets
  RocePeer roce_peer;        // Answered, Established, ConnectFailed: what the peer's message says
};

// What the receive side decides against or for a connection, for a log.
enum class Note : std::uint8_t { Refused, Downgraded, Upgraded, TurnedAway };

class Hooks {
 public:
  virtual ~Hooks() = default;
  virtual void on_cm_event(CmEvent event) = 0;
  // `cq` was armed and has something now.
  virtual void on_completion(verbs::CompletionQueue* cq) = 0;
  // Not for segments that are plainly taken: FAST receive never comes here.
  virtual void on_note(Note, const FlowKey&, const char* /*why*/) {}
  // `cq` had no room: what completes on it from now on is lost, and its queue pairs fail (E-47).
  virtual void on_cq_overrun(verbs::CompletionQueue*) {}
  // Another station has an address of ours (RFC 5227).
  virtual void on_address_conflict(const IpAddress&, const MacAddress&) {}
  // The link came or went; why it went, when the port knows (E-43).
  virtual void on_link(bool, const std::string&) {}
  // Fewer receives are left in `queue` than its limit; the limit is disarmed.
  virtual void on_shared_limit(verbs::SharedReceiveQueue*) {}
};

}  // namespace urnic::iwarp
