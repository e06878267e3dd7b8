// The other transport below a queue pair (D7): a TCP connection of the kernel, as the engine keeps
// it, and what all such connections of an engine share.
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
#include "kernel_tcp/inbox.h"
#include "kernel_tcp/poller.h"
#include "kernel_tcp/socket.h"

namespace urnic::iwarp {

// One of those that wait for room in the kernel, for as long as it does.
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

// Of one connection.
struct KernelLink {
  KernelLink(kernel_tcp::Socket s, KernelTcp* kernel);

  kernel_tcp::Socket socket;
  kernel_tcp::Inbox inbox;
  StreamOffset sent;  // bytes in the kernel's hands
  // The rest of a segment of which the kernel has taken a part. It is not built a second time: the
  // part that is gone carries, or will carry, a CRC of these very bytes (E-20).
  std::vector<std::uint8_t> rest;
  std::size_t rest_at = 0;
  std::uint32_t mss = 0;
  unsigned mss_uses = 0;  // how often it may be used before the kernel is asked again
  bool aligned = true;  // one record for each segment (E-31); there is none on the way to ourselves
  bool readable = false, writable = false;
  RoomWait room;          // from a send that was not taken whole until it is writable again
  bool queued = false;    // among those to be read from
  bool ending = false;    // the peer's FIN or an error waits behind the bytes
  bool ended = false;     // the peer's FIN has come
  bool finish = false;    // our FIN follows the last byte
  bool finished = false;  // it has been given to the kernel
  int send_error = 0;     // sending failed; what the peer has said before is read first
};

// How `tcp:...` was opened.
struct KernelTcpOptions {
  IpAddress bind;     // connect from and listen at; unspecified: any
  bool align = true;  // E-31
};

// Pieces of a burst of segments on their way to the kernel.
struct KernelBatch {
  static constexpr std::size_t kBytes = 256 * 1024;  // of one burst, and of built segments in it
  static constexpr std::size_t kPieces = 256, kRecords = 64, kViews = 32;
  std::vector<std::uint8_t> built;  // segments that had to be copied (CRC, small messages)
  std::array<ddp::FpduView, kViews> views;
  std::array<iovec, kPieces> pieces;
  std::array<std::uint32_t, kRecords> record_pieces, record_bytes;
  std::size_t built_bytes = 0, piece_count = 0, record_count = 0, view_count = 0, bytes = 0;
  void clear() { built_bytes = piece_count = record_count = view_count = bytes = 0; }
};

// Of an engine.
struct KernelTcp {
  KernelTcpOptions options;
  std::unique_ptr<kernel_tcp::Poller> poller;
  kernel_tcp::InboxPool pool;
  Ring<std::uint64_t> readable;  // connections with bytes left in the kernel
  KernelBatch batch;
  kernel_tcp::Socket spare;  // given up for a moment when descriptors run out
  Instant accept_again = Instant::never();
  Instant ready, ask_again;            // sockets: when any was last, and when to ask again
  std::uint32_t waiting_for_room = 0;  // connections
  std::uint64_t bytes_in = 0, bytes_out = 0, reads = 0, writes = 0, connections_refused = 0;
};

inline KernelLink::KernelLink(kernel_tcp::Socket s, KernelTcp* kernel)
    : socket(std::move(s)), inbox(&kernel->pool), room(&kernel->waiting_for_room) {}

}  // namespace urnic::iwarp
