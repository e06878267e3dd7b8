// What a bad network does to a connection, as far as the end of a stream can see it (the setting
// `faults`, fault/stream_line.h). It lies between the engine and the socket.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/time.h"

namespace urnic::kernel_tcp {

// One connection. `now` must never decrease.
class FaultyStream {
 public:
  FaultyStream() = default;
  virtual ~FaultyStream() = default;
  FaultyStream(const FaultyStream&) = delete;
  FaultyStream& operator=(const FaultyStream&) = delete;

  // ---- sending
  // Takes records of these lengths, as many as it has room for, and returns their bytes. `pieces`
  // has the bytes of all.
  virtual std::size_t send(std::span<const iovec> pieces, std::span<const std::uint32_t> records,
                           Instant now) = 0;
  // The bytes that may go to the socket now, as a record of their own; none if it is empty.
  virtual ByteView due(Instant now) const = 0;
  // The socket has taken the first `n` of them.
  virtual void passed(std::size_t n) = 0;
  // The connection is to be reset now.
  virtual bool reset_is_due(Instant now) const = 0;
  // True when our FIN or RST may go. From the first call on it is under way, behind all records.
  virtual bool end_is_due(Instant now) = 0;
  // When one of these has more; never() if nothing waits.
  virtual Instant next_due() const = 0;
  // True if everything sent was passed on.
  virtual bool empty() const = 0;

  // ---- receiving
  virtual void received(ByteView bytes, Instant now) = 0;
  // The socket is not read before this time.
  virtual Instant window_opens() const = 0;
};

// All connections of an engine.
class Faults {
 public:
  Faults() = default;
  virtual ~Faults() = default;
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  // For a new connection. It must not outlive this object.
  virtual std::unique_ptr<FaultyStream> open() = 0;
};

}  // namespace urnic::kernel_tcp
