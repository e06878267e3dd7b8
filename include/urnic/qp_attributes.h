// What a queue pair of RoCEv2 is connected by when the program does it itself: the attributes of
// Modify QP (InfiniBand specification, volume 1, 10.3.1 and 11.2.5.3; here IB-105 to IB-122). Both
// programs tell each other the number, the first PSN and the address of their queue pairs, by
// whatever way they have, and move them:
//
//   a.modify(QpState::init, {.access = access_remote_write});
//   a.modify(QpState::rtr, {.dest_qp = b's number, .path = {.remote = b's address},
//                           .path_mtu = 1024, .rq_psn = b's first PSN, .responder_depth = 4,
//                           .min_rnr_timer = 12});
//   a.modify(QpState::rts, {.sq_psn = a's first PSN, .ack_timeout = 14, .retry_count = 7,
//                           .rnr_retry = 7, .initiator_depth = 4});
//
// UC is moved in the same way, and has nothing that is about answers: no responder_depth and
// min_rnr_timer to rtr, and sq_psn alone to rts. UD has no peer: qkey to init instead of access,
// nothing to rtr, sq_psn to rts. Of XRC the sending end has no responder_depth and min_rnr_timer to
// rtr, and the receiving one sq_psn and ack_timeout alone to rts, where it need not go. What a move
// of its service does not take is refused.
//
// Lifetime, threads, errors and units are those of urnic/verbs.h, which includes this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace urnic {

enum class Transport : std::uint8_t {
  iwarp,  // RFC 5040, 5041, 5044 over TCP
  roce,   // the InfiniBand transport over UDP, port 4791 (RoCEv2)
};

// What a queue pair does for its requests (InfiniBand specification, volume 1, 9.7 and 9.8).
enum class Service : std::uint8_t {
  rc,  // reliable, to one peer
  // To one peer, and what is lost on the way is lost: sends and writes, done when they have left.
  // A message of which a packet is missing is not delivered. RoCE alone, as the next.
  uc,
  ud,  // sends of one packet each, to and from anybody who knows the Q_Key; may be lost as well
  // Of RoCE alone: the two ends of an extended reliable connection (urnic/xrc_domain.h).
  xrc_send,
  xrc_receive,
};

enum class ConnectionType : std::uint8_t { fast, slow };  // iWARP: 62; RoCE: S-1

// What of a queue pair of RoCE's RC is its own: what becomes of requests of its peer that come
// behind a lost packet. Others do not look at it.
struct RoceQpOptions {
  // Initiated FAST: they are kept until the gap closes, as the Config's out_of_order says. SLOW:
  // they are dropped, and the peer goes back (S-1). Left alone, the Config's connection_type.
  std::optional<ConnectionType> type;
  // Gaps in one recovery before FAST becomes SLOW (S-8); 0: the first one. Left alone, the
  // Config's.
  std::optional<std::uint32_t> max_recovery_attempts;
};

// The way to the peer.
struct QpPath {
  std::string remote;                  // the peer's IP address, "10.77.0.2"; not a group of them
  std::string local;                   // an own one of the same version; empty: source_for(remote)
  std::uint32_t traffic_class = 0;     // DSCP and ECN as in the IP header, 0 to 255
  std::uint32_t hop_limit = 64;        // 1 to 255
  std::uint32_t source_port = 0xc000;  // of UDP, 49152 to 65535: routers may choose a way by it
};

// One Modify QP: what is left alone is not part of it. In brackets the moves that need an attribute
// and, behind a bar, those that may have it; with any other it is refused. Values that cannot be
// are refused as invalid_argument, and nothing has changed then.
struct QpAttributes {
  // What the peer may do to memory that allows it: access_remote_write, _read, _atomic (IB-19).
  // [reset to init | init, to rtr, to rts, sqd]
  std::optional<std::uint32_t> access;

  // UD, which has no `access`: what requests must bring to be taken, 32 bits (IB-103). One with the
  // top bit set cannot be named by others, only by queue pairs that have it themselves. [reset to
  // init | init, to rtr, to rts, rts, sqd, sqe to rts]
  std::optional<std::uint32_t> qkey;

  // The peer's QueuePair::number(), 24 bits. [to rtr]
  std::optional<std::uint32_t> dest_qp;
  // [to rtr | sqd, drained]
  std::optional<QpPath> path;
  // Bytes of payload in a full packet: 256, 512, 1024, 2048 or 4096, the same at both ends; with
  // IPv4 at most the IP MTU less 64, with IPv6 less 84 (IB-13). [to rtr]
  std::optional<std::uint32_t> path_mtu;
  // PSN of the peer's first request packet, 24 bits: its sq_psn (IB-121). [to rtr]
  std::optional<std::uint32_t> rq_psn;
  // Reads and atomics of the peer that are served at a time, 0 to 16; the peer's initiator_depth is
  // no larger. [to rtr]
  std::optional<std::uint32_t> responder_depth;
  // What the peer is told to wait when it sends and no receive is posted, as a code, 0 to 31: 1 is
  // 10 us, 12 640 us, 14 1.28 ms, 31 491.52 ms, and 0 is 655.36 ms (IB-55). [to rtr | to rts, sqd]
  std::optional<std::uint32_t> min_rnr_timer;

  // PSN of the first request packet sent, 24 bits: the peer's rq_psn. Hard to guess is better:
  // whoever knows it, both numbers and both addresses can forge packets. [to rts]
  std::optional<std::uint32_t> sq_psn;
  // When an answer is missing, as a code, 0 to 31: 4.096 us times 2 to its power, 14 is 67 ms; at
  // most four times that (IB-70). 0: for ever, so that a peer which has gone is not noticed.
  // [to rts | sqd, drained]
  std::optional<std::uint32_t> ack_timeout;
  // How often a request is repeated without any answer before it fails with retry_exceeded, 0 to 7
  // (IB-71, IB-74). [to rts | sqd, drained]
  std::optional<std::uint32_t> retry_count;
  // How often one is repeated for which the peer had no receive, before it fails with
  // rnr_retry_exceeded, 0 to 6; 7: any number of times (IB-73). [to rts | sqd, drained]
  std::optional<std::uint32_t> rnr_retry;
  // Reads and atomics outstanding at a time, 0 to 16; with 0 they fail. [to rts | sqd, drained]
  std::optional<std::uint32_t> initiator_depth;

  // A `send_queue_drained` event when nothing that has begun is unanswered (IB-112). [| to sqd]
  std::optional<bool> tell_drained;

  // There is one port and one partition: 1 and 0, as if they had been given. [reset to init | init,
  // sqd]
  std::optional<std::uint32_t> port, pkey_index;
};

// The options of a queue pair that only iWARP has.
struct IwarpQpOptions {
  // How received Sends complete (specification 9.4): 1 or 2, and for 2 its threshold M, up to
  // 65536. Left alone, the Config's completion_method and completion_threshold.
  std::optional<std::uint32_t> completion_method, completion_threshold;
  // A Send for which no receive is posted. Not acknowledged yet (FAST), it is dropped and comes
  // again. Acknowledged by TCP already (SLOW, the kernel's TCP), it ends the connection
  // if this is 0; else it waits, and all behind it, TCP's window closes and sending goes
  // on, until a receive is posted, for at most so long, ms, and ten seconds once the peer has
  // closed. disconnect() gives up what waits. Left alone, the Config's receive_wait_ms.
  std::optional<std::uint32_t> receive_wait_ms;
};

}  // namespace urnic
