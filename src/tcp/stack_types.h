// Types in the interface of the byte-stream stack (tcp/stack.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"
#include "tcp/host_logic.h"
#include "tcp/loss.h"
#include "tcp/tcb.h"

namespace urnic::tcp {

// An endpoint of one stack: slot and generation, so that use of a closed handle is detected. A
// handle is not reused before 2^32 generations of its slot.
enum class Endpoint : std::uint64_t { None = 0 };

enum class Status : std::uint8_t {
  Ok,
  WouldBlock,   // nothing to read, no room to write, no connection to accept
  InProgress,   // the connection is being opened
  EndOfStream,  // the peer has sent its last byte
  Reset,        // the peer reset the connection
  Refused,      // no listener at that address
  TimedOut,     // retries, keepalive or user timeout ran out
  Unreachable,  // an ICMP error ended the attempt, or explains why it failed
  BrokenPipe,   // this endpoint may not write any more
  NotConnected,
  AlreadyConnected,
  AddressInUse,
  NoAddress,  // not an address of this stack, or none of the family
  Invalid,    // an argument, option or handle that is not valid here
};

// `bytes` is meaningful only with Ok.
struct IoResult {
  Status status = Status::Invalid;
  std::size_t bytes = 0;
};

// The current state of an endpoint (level-triggered).
struct Readiness {
  std::size_t readable = 0;  // bytes read() would return
  std::size_t writable = 0;  // bytes write() would accept
  bool acceptable = false;   // accept() would succeed
  bool connected = false;
  bool peer_closed = false;  // end of stream, perhaps after `readable` bytes
  bool error = false;        // take_error() returns an error
};

// The changes of an endpoint (edge-triggered), or-ed.
enum Change : std::uint32_t {
  kReadable = 1,
  kWritable = 2,
  kAcceptable = 4,
  kConnected = 8,
  kPeerClosed = 16,
  kError = 32,
};

// All state of a connection, as one copyable value.
struct Snapshot {
  static constexpr std::uint32_t kInfiniteSsthresh = 0x7fffffff;

  State state = State::Closed;
  CloseReason close_reason = CloseReason::None;
  std::uint32_t snd_una = 0, snd_nxt = 0, rcv_nxt = 0, iss = 0, irs = 0;  // sequence numbers
  std::uint32_t snd_wnd = 0;               // window of the peer, bytes
  std::uint32_t rcv_wnd = 0;               // our window
  std::uint64_t acked = 0, delivered = 0;  // bytes since the start, per direction
  // Congestion and loss; in bytes unless noted.
  std::uint32_t cwnd = 0, ssthresh = kInfiniteSsthresh;
  Recovery recovery = Recovery::Open;
  std::uint32_t in_flight = 0, pipe = 0, sacked = 0, lost = 0, retransmitted = 0;
  std::uint32_t reordering = 3;       // duplicate ACKs that count as a loss, segments
  std::uint64_t retransmissions = 0;  // segments resent so far
  // Time.
  bool rtt_measured = false;
  Duration srtt, rttvar, rto;
  std::uint8_t backoff = 0;  // doublings in rto
  std::uint8_t retries = 0;  // timer expirations without progress
  std::uint8_t probes = 0;   // unanswered window, keepalive or tail loss probes
  Duration since_data_sent, since_received;
  // Agreed with the peer.
  std::uint16_t send_mss = 0;        // payload of a full segment
  std::uint16_t advertised_mss = 0;  // ours
  std::uint16_t peer_mss = 0;        // announced by the peer, 0 if it announced none
  std::uint16_t receive_mss = 0;     // largest payload seen (at least 536)
  bool sack = false, timestamps = false, ecn = false, window_scaling = false;
  std::uint8_t send_shift = 0, receive_shift = 0;
  std::size_t holes = 0;  // gaps in the received data
  std::size_t unsent = 0, unread = 0;
  std::uint32_t send_buffer = 0, receive_buffer = 0;  // current size of each
};

// An outgoing IP datagram, complete with valid checksums. `bytes` is valid during the call that
// gets it as an argument, or until the next call of next_output().
struct Datagram {
  ByteView bytes;
  Instant send_time;
};

struct StackCounters : HostCounters {
  std::uint64_t datagrams_in = 0, datagrams_out = 0;
  std::uint64_t dropped_ip = 0;  // not IP, not for us, fragments, not TCP or ICMP
  std::uint64_t dropped_checksum = 0, dropped_header = 0;
  std::uint64_t resets_sent = 0, resets_received = 0;
  std::uint64_t opened_active = 0, opened_passive = 0, retransmissions = 0;
};

}  // namespace urnic::tcp
