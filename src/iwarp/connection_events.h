// Events of a connection other than its segments: only this class acts on the results of the steps.
// It also handles timers, network errors and link changes.
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

  // Acts on the results of a step. The connection may have ended afterwards.
  void settle(Connection& c, const Found& found, Instant now);
  // Acts on the results of a turn at sending. The connection may have ended afterwards.
  void settle_turn(Connection& c, const Sent& sent, Instant now) {
    if (sent.unreachable) [[unlikely]]
      return take_unreachable(c, now);
    if (sent.found.reset) [[unlikely]]
      return take_reset(c, now);
    if (c.stage >= Stage::Closing && c.stage <= Stage::Terminated) ending_.try_finish_close(c, now);
    if (transport_.conclude(c, now) || sent.found.closed) ending_.take_closed(c, now);
  }
  // Processes the bytes after the start-up frame.
  void drain(Connection& c, Instant now);
  // Processes an acceptable RST, or the one of a plan of faults.
  void take_reset(Connection& c, Instant now);

  void on_timer(Connection& c, Instant now);
  void on_icmp_error(const net::IcmpError& e, Instant now);
  // Every connection through `next_hop` (all if null) resolves its path again.
  void reroute(const IpAddress* next_hop, bool failed, Instant now);
  // The link has been down for too long, so no reply is expected. Connections that are still
  // opening have their own timeout.
  void give_up_link(const std::string& why, Instant now);
  // Number of connections whose queue pair was destroyed and that are still ending.
  std::size_t leaving() const;
  // Number of ending connections whose queue pairs still exist.
  std::size_t ending() const;
  // Number of connections of which a plan of faults holds bytes.
  std::size_t under_way() const;
  // Bytes they have sent. As long as this grows, they make progress.
  std::uint64_t leaving_sent() const;
  // Ends them by RST now.
  void drop_leaving(Instant now);
  // The host behind the link may have changed and not know our connections, and idle ones would
  // wait for ever. One keepalive probe each (RFC 9293, 3.8.4) causes an ACK, or a RST from another
  // host.
  void ask_peers(Instant now);
  // Memory ran out while a segment of `c` was processed. The connection is inconsistent now, and
  // ends. A segment of no connection (nullptr) is dropped.
  void out_of_memory(Connection* c, Instant now);

 private:
  void reroute(Connection& c, bool failed, Instant now);
  void take_fin(Connection& c, Instant now);
  void take_unreachable(Connection& c, Instant now);
  void resume_after_faults(Connection& c, Instant now);

  SideState& s_;
  Transport& transport_;
  Opening& opening_;
  Ending& ending_;
};

}  // namespace urnic::iwarp
