// One endpoint of the byte-stream stack: new, a listener or a connection.
#pragma once

#include <cstdint>

#include "base/byte_ring.h"
#include "base/byte_store.h"
#include "base/ring.h"
#include "tcp/host_logic.h"
#include "tcp/stack_options.h"
#include "tcp/stack_types.h"
#include "tcp/tcb_state.h"

namespace urnic::tcp {

// The smallest size of an auto-tuned buffer. A connection needs this much to make progress, so it
// gets it even when the limit is reached.
inline constexpr std::uint32_t kLeastBuffer = 4096;

struct Socket {
  enum class Kind : std::uint8_t { Fresh, Listener, Stream };

  Socket(ChunkPool* pool, const EndpointOptions& o)
      : options(o), tx(o.send_buffer), rx(pool, o.tcp.receive_buffer) {}

  std::uint32_t slot = 0, generation = 0;
  Kind kind = Kind::Fresh;
  bool has_handle = true;
  bool orphan = false;  // closed by the program; the stack finishes it
  bool dead = false;    // TCP is done: receives no more segments
  bool was_connected = false;
  bool write_closed = false, read_closed = false;
  bool more = false;          // the writer has announced more data
  bool touched = false;       // got segments in this burst
  bool reported = false;      // is in changed_
  Status error = Status::Ok;  // pending
  std::uint32_t changes = 0;  // to report
  EndpointOptions options;
  SocketAddress local, remote;

  Tcb tcb;
  ByteRing tx;                     // written, not acknowledged
  ByteStore rx;                    // received, not read; out-of-order bytes too
  Ring<std::uint64_t> write_ends;  // offsets after which PSH is set (PshRule::EndOfWrite)
  std::uint64_t retransmissions = 0;
  std::uint16_t ip_id = 0;  // per endpoint: a shared counter would reveal how many datagrams we
                            // send
  // Buffers: the current size of each, and the bytes read since the round began
  // (buffer_grants.cpp).
  std::uint32_t receive_granted = 0, send_granted = 0;
  std::uint64_t round_bytes = 0;
  Instant round_begin;
  Instant timer_at = Instant::never();
  Instant orphan_deadline = Instant::never();  // in FIN-WAIT-2

  // Fields of a passive connection before accept().
  bool pending = false;
  std::uint32_t parent_slot = 0, parent_generation = 0;

  // Fields of a listener.
  Backlog backlog;
  Ring<std::uint32_t> ready;  // slots, oldest first

  FlowKey key() const { return {local.ip, remote.ip, local.port, remote.port}; }
  std::uint64_t unread() const { return tcb.rcv.holes.rcv_nxt().value() - rx.base(); }
  std::uint64_t receive_room() const {
    return rx.capacity() > unread() ? rx.capacity() - unread() : 0;
  }
  bool open() const { return kind == Kind::Stream && !dead; }
};

}  // namespace urnic::tcp
