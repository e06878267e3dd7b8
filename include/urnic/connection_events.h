// Events of connections: how they begin and end. Plain values; urnic/verbs.h includes this header.
#pragma once

#include <cstdint>

namespace urnic {

enum class EventKind : std::uint8_t {
  connect_request,  // on a Listener: `request` is filled
  established,      // on a QueuePair: RTS; private_data of the peer's answer (active side)
  connect_failed,   // `error`; Errc::rejected carries the peer's private data
  // The connection ended in order. iWARP: FIN both ways or from the peer, also after the `failed`
  // of a Terminate; RoCE: DREQ of either end.
  disconnected,
  // The connection is lost; see `error`. iWARP: RST, time-out, Terminate. RoCE: a request of this
  // end failed (its completion has the status), or this end refused a request of the peer.
  failed,
  receive_limit,  // on a SharedReceiveQueue: fewer receives are left than set_limit() requested
  last_receive,   // on a QueuePair that ended: it uses no more of its SharedReceiveQueue
  // This event and the next four arrive on a QueuePair with QpOptions::asynchronous_events. A
  // receive has completed before `established` could be reported; `established` follows. RoCE: a
  // request arrived in rtr, on a queue pair that modify() connects; other queue pairs report only
  // `established`.
  communication_established,
  // On a QueuePair, after `failed`; they name the cause: the peer requested memory that it has no
  // access rights to; or it sent an invalid request; or this end had an internal error (iWARP: also
  // a wrong CRC). Errors that the peer reports for requests of this end are in the completions of
  // those requests instead.
  access_error,
  request_error,
  fatal,
  // on a QueuePair of RoCE: its connection has ended and time-wait is over; it may connect again
  time_wait_over,
  link_up,    // of the Device (deliver_events): frames can flow
  link_down,  // of the Device: frames cannot flow; error.message has the reason if it is known
  address_conflict,  // of the Device: another station uses one of our addresses (RFC 5227)
  cq_overrun,  // of a CompletionQueue, sent to the Device's event queue: the queue was too small
  send_queue_drained,  // on a QueuePair of RoCE in sqd, if QpAttributes::tell_drained requested it
  resolved,            // of a Resolution: `peer` and private_data are filled
  // The end of a Resolution; `error` is one of: refused (no program serves datagrams there),
  // rejected (private_data: 136 bytes from the peer), timed_out, protocol, no_memory.
  resolve_failed,
  // On a CmConnection, active side: the peer accepts; private_data is from its answer.
  answered,
  // Device::addresses() has changed, or may have changed. Only devices over the kernel's TCP or UDP
  // report this.
  addresses_changed,
};

// Fields of a message of RoCE's connection management, besides the private data: a request (REQ),
// the answer to one (REP) or a refusal (REJ). A field that the message does not carry is 0. iWARP
// has no such messages: every field is 0.
struct RocePeer {
  std::uint32_t qp_number = 0;   // REQ, REP: the peer's queue pair, 24 bits
  std::uint8_t retry_count = 0;  // REQ: as ConnectRequest::retry_count()
  // REQ, REP: how often this end repeats a request that gets an RNR NAK
  std::uint8_t rnr_retry = 0;
  bool srq = false;           // REQ, REP: the peer's receives come from a shared receive queue
  bool flow_control = false;  // REQ, REP: the peer reports how many receives it has (IB-80)
  // `answered`: how many Reads and atomics this end serves at a time, and may have outstanding;
  // else 0.
  std::uint8_t ird = 0, ord = 0;
  // REJ: the reason, as the InfiniBand specification numbers it: 8 no listener, 10 stale
  // connection, 28 rejected by the program, and so on. 0: no REJ was received.
  std::uint16_t reject_reason = 0;
};

}  // namespace urnic
