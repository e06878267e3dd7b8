// Datagrams on their way out of a stack: made, finished and handed to the driver, by a sink or when
// it asks. Bytes are used again.
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

  // `size` bytes to be filled: an IP header's room, the segment.
  Bytes make(std::size_t size);
  // The IP header of a datagram that has its segment, and off it goes.
  void send(const IpAddress& src, const IpAddress& dst, std::uint8_t tos, std::uint16_t id,
            Bytes datagram, Instant now);
  // A segment of no connection, back to where `to` came from. False when too many wait already.
  bool reply(const net::Classified& to, const Segment& segment, Instant now);

  // The oldest, lent until the next call; false when there is none.
  bool next(Datagram* out);
  // Gives the oldest to the sink; false when there is none, or no sink.
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
  std::vector<Bytes> spare_;  // to use again
  Bytes current_;             // what next() lent
  std::uint64_t sent_ = 0;
};

// Bytes of the IP header of our datagrams to `dst`, and the sum of its addresses and protocol.
std::size_t ip_header(const IpAddress& dst);
std::uint32_t pseudo_sum(const IpAddress& src, const IpAddress& dst);

}  // namespace urnic::tcp
