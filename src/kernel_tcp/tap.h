// Sees the bytes that cross the sockets of an engine, for a capture (device/stream_capture.h).
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/ip_address.h"

namespace urnic::kernel_tcp {

// A connection at the moment of a call: its addresses, and the bytes it has sent and received.
struct Tapped {
  SocketAddress local, remote;
  std::uint64_t sent = 0, received = 0;
};

// Called by the owner of the engine.
class Tap {
 public:
  Tap() = default;
  virtual ~Tap() = default;
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  // The kernel has taken the first `taken` bytes of `pieces`, which are records of these lengths.
  // They are not in `sent` yet.
  virtual void sent(const Tapped&, std::span<const iovec> pieces,
                    std::span<const std::uint32_t> records, std::size_t taken) = 0;
  // `bytes` are not in `received` yet.
  virtual void received(const Tapped&, ByteView bytes) = 0;
  // A FIN or RST of this end, or of the peer.
  enum class End : std::uint8_t { Fin, Reset };
  virtual void ended(const Tapped&, End, bool by_peer) = 0;
  // The engine goes to sleep: a file should be complete for its readers.
  virtual void idle() = 0;
};

}  // namespace urnic::kernel_tcp
