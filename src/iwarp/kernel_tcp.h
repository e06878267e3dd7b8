// The other transport below a queue pair (D7): the engine's state of a connection over the kernel's
// TCP, and the state that all such connections of an engine share.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ip_address.h"
#include "base/ring.h"
#include "base/stream_offset.h"
#include "base/time.h"
#include "ddp_rdma/sender.h"
#include "iwarp/departing_streams.h"
#include "kernel_tcp/faulty_stream.h"
#include "kernel_tcp/inbox.h"
#include "kernel_tcp/poller.h"
#include "kernel_tcp/socket.h"
#include "kernel_tcp/tap.h"
#include "tcp/flow.h"

namespace urnic::iwarp {

// Counts a connection that waits for room in the kernel, as long as it waits.
class RoomWait {
 public:
  explicit RoomWait(std::uint32_t* waiting) : waiting_(waiting) {}
  ~RoomWait() { end(); }
  RoomWait(const RoomWait&) = delete;
  RoomWait& operator=(const RoomWait&) = delete;
  void begin() {
    if (!on_) ++*waiting_;
    on_ = true;
  }
  void end() {
    if (on_) --*waiting_;
    on_ = false;
  }

 private:
  std::uint32_t* waiting_;
  bool on_ = false;
};

struct KernelTcp;

// State of one connection.
struct KernelLink {
  KernelLink(kernel_tcp::Socket s, KernelTcp* kernel);

  kernel_tcp::Socket socket;
  kernel_tcp::Inbox inbox;
  // Null without a plan of faults. It then takes what is sent, and passes it on to the kernel when
  // it is due.
  std::unique_ptr<kernel_tcp::FaultyStream> faults;
  Instant read_again = Instant::never();  // a closed window opens
  StreamOffset sent;                      // bytes passed to the kernel, or to the faults
  std::uint64_t received = 0;             // bytes taken from it
  // The rest of a segment that the kernel has accepted partly. It is not built again: the part
  // already sent carries, or will carry, a CRC of exactly these bytes (E-20).
  std::vector<std::uint8_t> rest;
  std::size_t rest_at = 0;
  std::uint32_t mss = 0;
  unsigned mss_uses = 0;  // number of uses left before the kernel is asked again
  bool aligned = true;    // one record for each segment (E-31); there are none on a connection to
                          // ourselves
  bool readable = false, writable = false;
  RoomWait room;          // from a short send until it is writable again
  bool queued = false;    // in the queue of connections to read from
  bool ending = false;    // the peer's FIN or an error comes after the bytes
  bool ended = false;     // the peer's FIN has arrived
  bool finish = false;    // our FIN follows the last byte
  bool finished = false;  // our FIN was passed to the kernel
  int send_error = 0;     // sending failed; received data is read first
};

// The options of `tcp:...`.
struct KernelTcpOptions {
  IpAddress bind;     // local address to connect from and listen at; unspecified: any
  bool align = true;  // E-31
};

// The pieces of a burst of segments for the kernel.
struct KernelBatch {
  static constexpr std::size_t kBytes = 256 * 1024;  // per burst, and for built segments in it
  static constexpr std::size_t kPieces = 256, kRecords = 64, kViews = 32;
  std::vector<std::uint8_t> built;  // segments that had to be copied (CRC, small messages)
  std::array<ddp::FpduView, kViews> views;
  std::array<iovec, kPieces> pieces;
  std::array<std::uint32_t, kRecords> record_pieces, record_bytes;
  std::size_t built_bytes = 0, piece_count = 0, record_count = 0, view_count = 0, bytes = 0;
  void clear() { built_bytes = piece_count = record_count = view_count = bytes = 0; }
};

// State of an engine.
struct KernelTcp {
  KernelTcpOptions options;
  std::unique_ptr<kernel_tcp::Poller> poller;
  std::unique_ptr<kernel_tcp::Tap> tap;        // null without a capture
  std::unique_ptr<kernel_tcp::Faults> faults;  // null without a plan
  DepartingStreams departing;
  kernel_tcp::InboxPool pool;
  Ring<std::uint64_t> readable;  // connections with unread bytes in the kernel
  KernelBatch batch;
  kernel_tcp::Socket spare;  // released for a moment when descriptors run out
  Instant accept_again = Instant::never();
  Instant ready, ask_again;            // sockets: last time one was ready, and when to ask again
  std::uint32_t waiting_for_room = 0;  // connections
  std::uint64_t bytes_in = 0, bytes_out = 0, reads = 0, writes = 0, connections_refused = 0;
};

// The connection as a tap sees it.
inline kernel_tcp::Tapped tapped(const tcp::FlowKey& key, const KernelLink& l) {
  return {key.local_end(), key.remote_end(), l.sent.value(), l.received};
}

inline KernelLink::KernelLink(kernel_tcp::Socket s, KernelTcp* kernel)
    : socket(std::move(s)),
      inbox(&kernel->pool),
      faults(kernel->faults ? kernel->faults->open() : nullptr),
      room(&kernel->waiting_for_room) {}

// When a connection with faults has something to do. What is due waits for room in the kernel, and
// for the connection's turn if it is queued for sending.
inline Instant fault_deadline(const KernelLink& l, bool queued_for_sending) {
  if (!l.socket.is_open()) return Instant::never();
  const bool waits = !l.writable || queued_for_sending;
  return earlier(l.read_again, waits ? Instant::never() : l.faults->next_due());
}
// True if a plan of faults holds bytes that were sent.
inline bool has_bytes_under_way(const KernelLink& l) {
  return l.faults != nullptr && !l.faults->empty();
}
// True if our FIN or RST need not wait for a plan of faults.
inline bool may_end(const KernelLink& l, Instant now) {
  return l.faults == nullptr || l.faults->end_is_due(now);
}
// True if what has arrived is left in the kernel, so that TCP's window closes.
inline bool has_closed_window(const KernelLink& l, Instant now) {
  return l.faults != nullptr && now < l.faults->window_opens();
}

}  // namespace urnic::iwarp
