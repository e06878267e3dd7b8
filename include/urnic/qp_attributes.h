// The attributes by which a program connects a RoCEv2 queue pair itself: those of Modify QP
// (InfiniBand specification, volume 1, 10.3.1 and 11.2.5.3; here IB-105 to IB-122). Both programs
// exchange the number, the first PSN and the address of their queue pairs over any channel they
// have, and move them:
//
//   a.modify(QpState::init, {.access = access_remote_write});
//   a.modify(QpState::rtr, {.dest_qp = b's number, .path = {.remote = b's address},
//                           .path_mtu = 1024, .rq_psn = b's first PSN, .responder_depth = 4,
//                           .min_rnr_timer = 12});
//   a.modify(QpState::rts, {.sq_psn = a's first PSN, .ack_timeout = 14, .retry_count = 7,
//                           .rnr_retry = 7, .initiator_depth = 4});
//
// UC is moved in the same way, without the attributes about responses: no responder_depth and
// min_rnr_timer to rtr, and sq_psn alone to rts. UD has no peer: qkey to init instead of access,
// nothing to rtr, sq_psn to rts. XRC: the sending end has no responder_depth and min_rnr_timer to
// rtr; the receiving end has only sq_psn and ack_timeout to rts, and does not have to go there. An
// attribute that the move of a service does not take is refused.
//
// Lifetime, threads, errors and units: see urnic/verbs.h, which includes this header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace urnic {

enum class Transport : std::uint8_t {
  iwarp,  // RFC 5040, 5041, 5044 over TCP
  roce,   // the InfiniBand transport over UDP, port 4791 (RoCEv2)
};

// The service of a queue pair (InfiniBand specification, volume 1, 9.7 and 9.8).
enum class Service : std::uint8_t {
  rc,  // reliable, to one peer
  // Unreliable, to one peer: sends and writes, complete when they have left. A message with a
  // missing packet is not delivered. This and the following services exist only on RoCE.
  uc,
  ud,  // sends of one packet each, to and from any peer that knows the Q_Key; unreliable
  // The two ends of an extended reliable connection (urnic/xrc_domain.h).
  xrc_send,
  xrc_receive,
};

enum class ConnectionType : std::uint8_t { fast, slow };  // iWARP: 62; RoCE: S-1

// Options that only RC queue pairs of RoCE have: how they treat requests that arrive after a lost
// packet. Other queue pairs ignore them.
struct RoceQpOptions {
  // Initiated FAST: such requests are kept until the gap closes, as the setting out_of_order
  // defines. SLOW: they are dropped, and the peer goes back to the gap (S-1). If not set: the
  // setting connection_type.
  std::optional<ConnectionType> type;
  // Number of gaps in one recovery before FAST becomes SLOW (S-8); 0: the first gap does it. If not
  // set: the setting max_recovery_attempts.
  std::optional<std::uint32_t> max_recovery_attempts;
};

// The path to the peer.
struct QpPath {
  std::string remote;  // the peer's IP address, "10.77.0.2"; not a multicast address
  std::string local;   // a local address of the same version; empty: source_for(remote)
  std::uint32_t traffic_class = 0;  // DSCP and ECN as in the IP header, 0 to 255
  std::uint32_t hop_limit = 64;     // 1 to 255
  // UDP source port, 49152 to 65535: routers may choose a path by it
  std::uint32_t source_port = 0xc000;
};

// One Modify QP; members that are not set are not part of it. The brackets list the moves that
// require an attribute and, after a bar, those that allow it; all other moves refuse it. An invalid
// value is refused with invalid_argument, and then nothing has changed.
struct QpAttributes {
  // Rights of the peer on memory that allows them: access_remote_write, _read, _atomic (IB-19).
  // [reset to init | init, to rtr, to rts, sqd]
  std::optional<std::uint32_t> access;

  // UD, which has no `access`: the key that requests must carry to be accepted, 32 bits (IB-103).
  // Requests cannot name a Q_Key with the top bit set, except from queue pairs that have it
  // themselves. [reset to init | init, to rtr, to rts, rts, sqd, sqe to rts]
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
  // How many Reads and atomics of the peer are served at a time, 0 to 16; the peer's
  // initiator_depth must not be larger. [to rtr]
  std::optional<std::uint32_t> responder_depth;
  // How long the peer is to wait when it sends and no receive is posted, as a code, 0 to 31: 1 is
  // 10 us, 12 640 us, 14 1.28 ms, 31 491.52 ms, and 0 is 655.36 ms (IB-55). [to rtr | to rts, sqd]
  std::optional<std::uint32_t> min_rnr_timer;

  // PSN of the first request packet sent, 24 bits: the peer's rq_psn. It should be hard to guess:
  // an attacker that knows it, both numbers and both addresses can forge packets. [to rts]
  std::optional<std::uint32_t> sq_psn;
  // Time to wait for a response, as a code n, 0 to 31: 4.096 us times 2^n, so 14 is 67 ms; the
  // actual time is at most four times that (IB-70). 0: without limit, so that a dead peer is not
  // detected. [to rts | sqd, drained]
  std::optional<std::uint32_t> ack_timeout;
  // How often a request without any response is repeated before it fails with retry_exceeded, 0 to
  // 7 (IB-71, IB-74). [to rts | sqd, drained]
  std::optional<std::uint32_t> retry_count;
  // How often a request for which the peer had no receive is repeated before it fails with
  // rnr_retry_exceeded, 0 to 6; 7: without limit (IB-73). [to rts | sqd, drained]
  std::optional<std::uint32_t> rnr_retry;
  // Reads and atomics outstanding at a time, 0 to 16; with 0 they fail. [to rts | sqd, drained]
  std::optional<std::uint32_t> initiator_depth;

  // Request a `send_queue_drained` event when every request that was started has its response
  // (IB-112). [| to sqd]
  std::optional<bool> tell_drained;

  // There is one port and one partition: the values can only be 1 and 0, which are also the
  // defaults. [reset to init | init, sqd]
  std::optional<std::uint32_t> port, pkey_index;
};

// Queue pair options that only iWARP has.
struct IwarpQpOptions {
  // How received Sends complete (specification 9.4): 1 or 2, and for 2 its threshold M, up to
  // 65536. If not set: the settings completion_method and completion_threshold.
  std::optional<std::uint32_t> completion_method, completion_threshold;
  // Handling of a Send for which no receive is posted. If it is not acknowledged yet (FAST), it
  // is dropped, and the peer retransmits it. If TCP has acknowledged it (SLOW, the kernel's
  // TCP), it ends the connection if this is 0. Otherwise the Send and everything after it
  // wait until a receive is posted, while TCP's window closes and sending continues: for at most
  // this time in ms, or ten seconds once the peer has closed. disconnect() discards what waits. If
  // not set: the setting receive_wait_ms.
  std::optional<std::uint32_t> receive_wait_ms;
};

}  // namespace urnic
