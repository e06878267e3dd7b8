// What every host of TCP connections decides alike (D15): the byte-stream stack (stack.h) and the
// RNIC engine (src/engine) are two users of it. Functions of what they are given, which return what
// is to be sent or opened; how, is the host's affair.
//
//   a segment of no connection   take_unmatched()   RST, SYN-ACK as a cookie, or a connection to
//   open a segment of a connection    check(), answer()  what TCP itself says to it, counted an
//   ICMP error                take_icmp_error() a new connection             connection_config(),
//   initial_sequence() (isn.h), PortChoice a connection in TIME-WAIT    TimeWaitTable (time_wait.h)
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
  std::uint64_t no_connection = 0;    // segments of no connection, answered by RST
  std::uint64_t dropped_backlog = 0;  // SYNs and ACKs beyond the limits of a listener
  std::uint64_t cookies_sent = 0,
                cookies_accepted = 0;  // connections opened without state (RFC 4987)
  std::uint64_t challenge_acks = 0, challenge_acks_withheld = 0;  // RFC 5961 7
};

// How many connections of a listener there are between SYN and accept().
struct Backlog {
  std::uint32_t waiting = 0;  // finished, nobody has accepted them yet
  // bound: backlog of a listener; limit: the backlog of `listen` from one address, with iWARP four
  // times as many in all; beyond: SYNs and ACKs are dropped and repeated; the oldest peer that has
  // sent nothing gives way; test: SilentPeers.OneAddressDoesNotHoldTheListener,
  // StackTest.BacklogLimitsFinishedConnections, Setup.BacklogLimitsPendingConnections,
  // SilentPeers.TheOldestOfAFullBacklogGivesWay, SilentSockets.TheOldestOfAFullBacklogGivesWay
  std::uint32_t most_waiting =
      1;                        // beyond it SYNs and ACKs are dropped: the accepting side is slow
  std::uint32_t half_open = 0;  // the peer has not answered our SYN-ACK
  // bound: half-open connections of a listener; limit: the free places of the backlog (own stack:
  // SynBacklog, 256); beyond: SYNs are answered by cookies, which need no memory (RFC 4987), or
  // dropped if cookies are off; test: StackTest.HalfOpenConnectionsAreLimited,
  // SynCookies.AFloodCostsNoMemory_RFC4987_3_6, Listener.WithRoomNoCookieIsSent_RFC4987_3_6
  std::uint32_t most_half_open = 1;  // beyond it SYNs are answered by cookies, which keep nothing
  bool cookies = true;               // ... or dropped
  Instant last_cookie = Instant::never();

  bool full() const { return waiting >= most_waiting; }
  // Could an answer to a cookie of ours still come?
  bool cookies_out(Instant now) const;
};

// `base` for a connection between these ends over a path of `mtu` bytes: segment size, clock,
// secrets.
Config connection_config(const Config& base, const HostKeys&, const FlowKey&, std::uint32_t mtu);

struct Unmatched {
  enum class Kind : std::uint8_t {
    Drop,
    Reply,           // send `reply`: a RST, or a SYN-ACK that is a cookie
    Open,            // a SYN: new connection, open_passive()
    OpenFromCookie,  // new connection, open_from_cookie() with `syn`; the segment at hand is its
                     // first
  };
  Kind kind = Kind::Drop;
  Segment reply, syn;
};
// RFC 9293 3.10.7.1 and 3.10.7.2. `listener` may be null. `config`: connection_config() of the
// listener for these ends; `window`: what a connection to come has for sure.
Unmatched take_unmatched(Backlog* listener, const HostKeys&, const Config& config, const FlowKey&,
                         const Segment&, std::uint32_t window, HostCounters&, Instant now);

// What TCP itself answers to a segment of a connection, by check().
struct Answer {
  enum class Kind : std::uint8_t {
    Process,  // nothing yet: take_ack() and the payload
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

// RFC 1191, 8201, 5461, 5927. True when the connection has to be looked at: it may have something
// to send, or be closed.
bool take_icmp_error(Tcb&, const net::IcmpError&, Instant now);

}  // namespace urnic::tcp
