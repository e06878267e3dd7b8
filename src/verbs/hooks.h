// What the transports of an engine report to its owner. All hooks are called while the engine is
// owned, from within its functions: they may only note things down (queue an event, write an
// eventfd), and call nothing of the engine.
#pragma once

#include <cstdint>
#include <string>

#include "base/ip_address.h"
#include "verbs/connection.h"

namespace urnic::verbs {

class CompletionQueue;
class SharedReceiveQueue;

// What the receive side decides against or for a connection, for a log.
enum class Note : std::uint8_t { Refused, Downgraded, Upgraded, TurnedAway };

class Hooks {
 public:
  virtual ~Hooks() = default;
  // May throw std::bad_alloc: what ends a connection is reported again later then.
  virtual void on_cm_event(CmEvent event) = 0;
  // `cq` was armed and has something now.
  virtual void on_completion(CompletionQueue* cq) = 0;
  // `cq` had no room: what completes on it from now on is lost, and its queue pairs fail (E-47).
  virtual void on_cq_overrun(CompletionQueue*) {}
  // Fewer receives are left in `queue` than its limit; the limit is disarmed.
  virtual void on_shared_limit(SharedReceiveQueue*) {}
  // The answer to a question for a datagram service, and whose question it was. May throw
  // std::bad_alloc: it is reported again in a moment.
  virtual void on_datagram_answer(void* /*owner*/, const DatagramAnswer&) {}
  // Of a connection whose queue pair its program moves itself, and whose it is. May throw as
  // on_cm_event().
  virtual void on_cm_connection(void* /*owner*/, const CmEvent&) {}
  // Not for segments that are plainly taken: FAST receive never comes here.
  virtual void on_note(Note, const SocketAddress& /*local*/, const SocketAddress& /*peer*/,
                       const char* /*why*/) {}
  // Another station has an address of ours (RFC 5227).
  virtual void on_address_conflict(const IpAddress&, const MacAddress&) {}
  // The link came or went; why it went, when the port knows (E-43).
  virtual void on_link(bool, const std::string&) {}
};

}  // namespace urnic::verbs
