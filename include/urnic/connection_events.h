// An Event tells how a connection begins and ends; urnic/verbs.h includes this. Values.
#pragma once

#include <cstdint>

namespace urnic {

enum class EventKind : std::uint8_t {
  connect_request,  // on a Listener: `request` is filled
  established,      // on a QueuePair: RTS; private_data of the peer's answer (active side)
  connect_failed,   // `error`; Errc::rejected carries the peer's private data
  // Orderly; iWARP: FIN both ways or from the peer, also behind the `failed` of a Terminate; RoCE:
  // DREQ of either end.
  disconnected,
  // The connection is lost: `error`. iWARP: RST, time-out, Terminate. RoCE: a request of this end
  // failed, as its completion says, or one of the peer's was refused.
  failed,
  receive_limit,  // on a SharedReceiveQueue: fewer receives are left than set_limit() said
  last_receive,   // on a QueuePair that ended: it uses no more of its SharedReceiveQueue
  // On a QueuePair with QpOptions::asynchronous_events, as the next four: a receive has completed
  // before `established` could be said, which follows. RoCE: a request has come in rtr, on a queue
  // pair that modify() connects; on others `established` says it.
  communication_established,
  // On a QueuePair, after `failed`, with its cause: the peer requested memory that it has no access
  // rights to; or sent an invalid request; or this end had an internal error (iWARP: also a wrong
  // CRC). Errors that the peer reports for requests of this end are in their completions instead.
  access_error,
  request_error,
  fatal,
  time_wait_over,      // the same, of RoCE: its connection has ended, and it may have another
  link_up,             // of the Device (deliver_events): frames can flow
  link_down,           // of the Device: they cannot; error.message says why, if it is known
  address_conflict,    // of the Device: another station has an address of ours (RFC 5227)
  cq_overrun,          // of a CompletionQueue, where the Device's events go: it was too small
  send_queue_drained,  // on a QueuePair of RoCE in sqd, as asked for: QpAttributes::tell_drained
  resolved,            // of a Resolution: `peer` and private_data are filled
  // Of a Resolution: `error`: refused (nobody serves datagrams there), rejected (private_data: 136
  // bytes of the peer's), timed_out, protocol, no_memory.
  resolve_failed,
  // On a CmConnection, active side: the peer accepts; private_data of its answer.
  answered,
  // Device::addresses() has changed, or may have: told by a device over the kernel's TCP or UDP.
  addresses_changed,
};

// A message of RoCE's connection management says this besides its private data: a request (REQ),
// the answer to one (REP) or a refusal (REJ). A field that the message does not carry is 0. iWARP
// has no such messages: every field is 0.
struct RocePeer {
  std::uint32_t qp_number = 0;   // REQ, REP: the peer's queue pair, 24 bits
  std::uint8_t retry_count = 0;  // REQ: as ConnectRequest::retry_count()
  std::uint8_t rnr_retry = 0;    // REQ, REP: how often this end repeats what finds no receive there
  bool srq = false;              // REQ, REP: the peer's receives come from a shared receive queue
  bool flow_control = false;     // REQ, REP: the peer says how many receives it has (IB-80)
  // `answered`: Reads and atomics at a time that this end serves, and has outstanding; else 0.
  std::uint8_t ird = 0, ord = 0;
  // REJ: why, as numbered there: 8 nobody listens, 10 taken for an old connection, 28 the program
  // said no, and so on. 0: no REJ has come.
  std::uint16_t reject_reason = 0;
};

}  // namespace urnic
