// Handles ready sockets: reads bytes and accepts connections. A connection over the kernel's TCP
// shows no segments, so it is always SLOW (E-31).
#pragma once

#include "iwarp/connection_events.h"
#include "kernel_tcp/poller.h"

namespace urnic::iwarp {

class KernelRounds {
 public:
  KernelRounds(SideState* s, Transport* transport, KernelSender* sender, Opening* opening,
               Ending* ending, ConnectionEvents* events)
      : s_(*s),
        transport_(*transport),
        sender_(*sender),
        opening_(*opening),
        ending_(*ending),
        events_(*events) {}

  // Returns true if anything was done. `comes_back`: the caller polls again at once, and need not
  // see sockets that become ready earlier than that.
  bool poll(Instant now, bool comes_back);
  // True if work can be done without a new event.
  bool has_work() const { return !s_.kernel->readable.empty() || can_accept(); }
  void close_listening(Listener& l);

 private:
  unsigned ask(Instant now);
  void take_readiness(const kernel_tcp::Poller::Ready& ready, Instant now);
  bool gives_way(Listener& l, Instant now);
  void take_readiness(Connection& c, const kernel_tcp::Poller::Ready& ready, Instant now);
  void receive(Connection& c, Instant now);
  void take_bytes(Connection& c, Instant now);
  void end_awaiting(Connection& c, Instant now);
  void end_of_bytes(Connection& c, const kernel_tcp::Moved& got, Instant now);
  void accept_waiting(Listener& l, Instant now);
  void turn_away(Listener& l, int error, Instant now);
  bool can_accept() const;

  SideState& s_;
  Transport& transport_;
  KernelSender& sender_;
  Opening& opening_;
  Ending& ending_;
  ConnectionEvents& events_;
};

}  // namespace urnic::iwarp
