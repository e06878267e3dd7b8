// What happens to a connection besides its segments being taken: what the steps have found is acted
// upon here, and here alone; timers, the network and the link have their say.
#pragma once

#include <string>

#include "iwarp/ending.h"
#include "iwarp/found.h"
#include "iwarp/opening.h"
#include "iwarp/transport.h"
#include "net/icmp.h"

namespace urnic::iwarp {

class ConnectionEvents {
 public:
  ConnectionEvents(SideState* s, Transport* transport, Opening* opening, Ending* ending)
      : s_(*s), transport_(*transport), opening_(*opening), ending_(*ending) {}

  // What a step has found becomes true. The connection may be over afterwards.
  void settle(Connection& c, const Found& found, Instant now);
  // What has come behind the start-up frame is taken.
  void drain(Connection& c, Instant now);
  // An acceptable RST.
  void take_reset(Connection& c, Instant now);
  // At most about `budget` segments. True when there is more to send.
  bool send_turn(Connection& c, unsigned budget, Instant now);

  void on_timer(Connection& c, Instant now);
  void on_icmp_error(const net::IcmpError& e, Instant now);
  // Every connection through `next_hop` (all of them when null) looks for its way again.
  void reroute(const IpAddress* next_hop, bool failed, Instant now);
  // The link has been away for too long: nobody will answer. Connections that are still being
  // opened have a time-out of their own.
  void give_up_link(const std::string& why, Instant now);
  // Connections whose queue pair was destroyed and that still end.
  std::size_t leaving() const;
  // And those whose queue pairs are still there.
  std::size_t ending() const;
  // What they have sent, in bytes: as long as that grows they get on.
  std::uint64_t leaving_sent() const;
  // They go by RST now.
  void drop_leaving(Instant now);
  // Who is behind the link now may not know our connections: idle ones would wait for ever. One
  // keep-alive probe each (RFC 9293, 3.8.4) draws an ACK, or the RST of somebody else.
  void ask_peers(Instant now);
  // Memory ran out in the middle of a segment of `c`, which is not what the segment says any more,
  // and ends. A segment of no connection (nullptr) is dropped.
  void out_of_memory(Connection* c, Instant now);

 private:
  void reroute(Connection& c, bool failed, Instant now);
  void take_fin(Connection& c, Instant now);

  SideState& s_;
  Transport& transport_;
  Opening& opening_;
  Ending& ending_;
};

}  // namespace urnic::iwarp
