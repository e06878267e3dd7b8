// Outgoing datagrams of a stack: builds them, completes their IP headers and passes them to the
// driver, through a sink or when the driver asks. Buffers are reused.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/ring.h"
#include "base/time.h"
#include "net/classify.h"
#include "tcp/segment.h"
#include "tcp/stack_types.h"

namespace urnic::tcp {

class DatagramQueue {
 public:
  using Sink = void (*)(void* context, ByteView datagram, Instant send_time);
  using Bytes = std::vector<std::uint8_t>;

  explicit DatagramQueue(std::uint8_t ttl) : ttl_(ttl) {}

  void set_sink(Sink sink, void* context);
  bool has_sink() const { return sink_ != nullptr; }

  // Returns `size` bytes for the caller to fill: room for the IP header, then the segment.
  Bytes make(std::size_t size);
  // Writes the IP header of a datagram that holds its segment, and queues it.
  void send(const IpAddress& src, const IpAddress& dst, std::uint8_t tos, std::uint16_t id,
            Bytes datagram, Instant now);
  // Queues a segment that belongs to no connection, to the sender of `to`. False if too many wait
  // already.
  bool reply(const net::Classified& to, const Segment& segment, Instant now);

  // Gets the oldest datagram, valid until the next call. False if there is none.
  bool next(Datagram* out);
  // Passes the oldest datagram to the sink. False if there is none, or no sink.
  bool deliver();
  std::uint64_t sent() const { return sent_; }

 private:
  struct Packet {
    Instant send_time;
    Bytes bytes;
  };

  std::uint8_t ttl_;
  Sink sink_ = nullptr;
  void* sink_context_ = nullptr;
  Ring<Packet> output_;
  std::vector<Bytes> spare_;  // for reuse
  Bytes current_;             // the datagram that next() returned
  std::uint64_t sent_ = 0;
};

// Bytes of the IP header of our datagrams to `dst`; the checksum of the addresses and the protocol.
std::size_t ip_header(const IpAddress& dst);
std::uint32_t pseudo_sum(const IpAddress& src, const IpAddress& dst);

}  // namespace urnic::tcp
