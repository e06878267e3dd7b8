// Decisions that all hosts of TCP connections share (D15). There are two such hosts: the
// byte-stream stack (stack.h) and the RNIC engine (src/engine). These functions depend only on
// their arguments and return what is to be sent or opened; the host carries it out.
//
//   segment of no connection     take_unmatched()     RST, SYN-ACK as a cookie, or a new connection
//   segment of a connection      check(), answer()    TCP's own reply to it, counted
//   ICMP error                   take_icmp_error()
//   new connection               connection_config(), initial_sequence() (isn.h), PortChoice
//   connection in TIME-WAIT      TimeWaitTable (time_wait.h)
#pragma once

#include <cstdint>

#include "base/time.h"
#include "net/icmp.h"
#include "tcp/flow.h"
#include "tcp/host_keys.h"
#include "tcp/segment.h"
#include "tcp/tcb.h"

namespace urnic::tcp {

struct HostCounters {
  std::uint64_t no_connection = 0;    // segments of no connection, answered by a RST
  std::uint64_t dropped_backlog = 0;  // SYNs and ACKs beyond the limits of a listener
  std::uint64_t cookies_sent = 0,
                cookies_accepted = 0;  // connections opened without state (RFC 4987)
  std::uint64_t challenge_acks = 0, challenge_acks_withheld = 0;  // RFC 5961 7
};

// The connections of a listener between SYN and accept().
struct Backlog {
  std::uint32_t waiting = 0;  // established, not accepted yet
  // bound: backlog of a listener; limit: the backlog of `listen` from one address, with iWARP four
  // times as many in all; beyond: SYNs and ACKs are dropped and repeated; the oldest peer that has
  // sent nothing gives way; test: SilentPeers.OneAddressCannotOccupyTheListener,
  // StackTest.BacklogLimitsFinishedConnections, Setup.BacklogLimitsPendingConnections,
  // SilentPeers.TheOldestOfAFullBacklogMakesRoom, SilentSockets.TheOldestOfAFullBacklogMakesRoom
  std::uint32_t most_waiting =
      1;  // beyond it SYNs and ACKs are dropped: the program accepts too slowly
  std::uint32_t half_open = 0;  // the peer has not answered our SYN-ACK
  // bound: half-open connections of a listener; limit: the free places of the backlog (own stack:
  // SynBacklog, 256); beyond: SYNs are answered by cookies, which need no memory (RFC 4987), or
  // dropped if cookies are off; test: StackTest.HalfOpenConnectionsAreLimited,
  // SynCookies.AFloodCostsNoMemory_RFC4987_3_6, Listener.WithRoomNoCookieIsSent_RFC4987_3_6
  std::uint32_t most_half_open = 1;  // if there are more, SYNs get cookies, which keep no state
  bool cookies = true;               // ... or are dropped
  Instant last_cookie = Instant::never();

  bool full() const { return waiting >= most_waiting; }
  // True if a reply to one of our cookies may still arrive.
  bool cookies_out(Instant now) const;
};

// Returns `base` adapted to a connection between these endpoints over a path of `mtu` bytes:
// segment size, clock, secrets.
Config connection_config(const Config& base, const HostKeys&, const FlowKey&, std::uint32_t mtu);

struct Unmatched {
  enum class Kind : std::uint8_t {
    Drop,
    Reply,           // send `reply`: a RST, or a SYN-ACK that is a cookie
    Open,            // a SYN: new connection, open_passive()
    OpenFromCookie,  // new connection, open_from_cookie() with `syn`; the current segment is its
                     // first
  };
  Kind kind = Kind::Drop;
  Segment reply, syn;
};
// RFC 9293 3.10.7.1 and 3.10.7.2. `listener` may be null. `config`: connection_config() of the
// listener for these endpoints. `window`: the receive window that a new connection certainly gets.
Unmatched take_unmatched(Backlog* listener, const HostKeys&, const Config& config, const FlowKey&,
                         const Segment&, std::uint32_t window, HostCounters&, Instant now);

// TCP's own reply to a segment of a connection, derived from check().
struct Answer {
  enum class Kind : std::uint8_t {
    Process,  // no reply yet: call take_ack() and process the payload
    Nothing,  // dropped
    Send,     // emit `plan`
    Rst,      // send `reset`, then after_reset_sent()
    Ended,    // a valid RST: take_reset()
  };
  Kind kind = Kind::Nothing;
  SendPlan plan;
  Segment reset;
};
Answer answer(Tcb&, const Check&, const Segment&, HostCounters&, Instant now);

// RFC 1191, 8201, 5461, 5927. True if the connection must be looked at: it may have something to
// send, or be closed.
bool take_icmp_error(Tcb&, const net::IcmpError&, Instant now);

}  // namespace urnic::tcp
