// Reports of an engine's transports to its owner. The engine calls all hooks from within its
// functions, while it is owned: a hook may only record (queue an event, write an eventfd), and must
// not call the engine.
#pragma once

#include <cstdint>
#include <string>

#include "base/ip_address.h"
#include "verbs/connection.h"

namespace urnic::verbs {

class CompletionQueue;
class SharedReceiveQueue;

// Decisions of the receive side about a connection, for a log.
enum class Note : std::uint8_t { Refused, Downgraded, Upgraded, TurnedAway };

class Hooks {
 public:
  virtual ~Hooks() = default;
  // May throw std::bad_alloc; the end of a connection is then reported again later.
  virtual void on_cm_event(CmEvent event) = 0;
  // `cq` was armed and has a completion now.
  virtual void on_completion(CompletionQueue* cq) = 0;
  // `cq` had no room: later completions on it are lost, and its queue pairs fail (E-47).
  virtual void on_cq_overrun(CompletionQueue*) {}
  // `queue` has fewer receives left than its limit; the limit is disarmed.
  virtual void on_shared_limit(SharedReceiveQueue*) {}
  // The answer to a request for a datagram service, and the owner of the request. May throw
  // std::bad_alloc; it is then reported again shortly.
  virtual void on_datagram_answer(void* /*owner*/, const DatagramAnswer&) {}
  // An event of a connection whose queue pair the program moves itself, and its owner. May throw
  // like on_cm_event().
  virtual void on_cm_connection(void* /*owner*/, const CmEvent&) {}
  // Not called for segments of the FAST receive path.
  virtual void on_note(Note, const SocketAddress& /*local*/, const SocketAddress& /*peer*/,
                       const char* /*why*/) {}
  // Another station uses one of our addresses (RFC 5227).
  virtual void on_address_conflict(const IpAddress&, const MacAddress&) {}
  // The link came up or went down; the reason, if the port knows it (E-43).
  virtual void on_link(bool, const std::string&) {}
};

}  // namespace urnic::verbs
