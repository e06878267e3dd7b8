// Receives from one UDP socket and makes frames of the datagrams. With offload (UDP_GRO) the kernel
// joins datagrams of one flow and one size to a message of many segments; each segment becomes a
// frame with its own headers.
//
// One thread. Frames lie in memory of the receiver and are valid until the next burst().
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>

#include "port/counters.h"
#include "port/fd.h"
#include "port/identification_patch.h"
#include "port/port.h"
#include "port/udp_headers.h"
#include "port/udp_socket.h"

namespace urnic::port {

class UdpReceiver {
 public:
  // `socket` and `mac` stay the caller's. A frame of more than `max_frame` bytes is dropped.
  UdpReceiver(const Fd* socket, bool v6, const std::uint8_t (*mac)[6], std::uint32_t max_frame);

  // Returns up to `n` frames: those left of earlier messages, or else newly received ones.
  unsigned burst(urnic_frame* frames, unsigned n, QueueCounters& counters);
  // True if burst() has frames without another system call.
  bool has_more() const { return message_ != received_; }

 private:
  static constexpr unsigned kMessages = kBurst;   // for each system call, while they are single
  static constexpr unsigned kJoined = 8;          // for each system call, while they are joined
  static constexpr unsigned kMostSegments = 128;  // in one message: UDP_MAX_SEGMENTS of Linux
  static constexpr unsigned kMostPlaces = 64;     // places that the kernel writes a message to
  static constexpr std::uint32_t kHeadroom = 64;
  static_assert(kHeadroom >= kMostUdpHeaders);
  // Memory for a whole message with headroom for each segment. The 17 cache lines more keep the
  // beginnings of messages out of the same cache sets.
  static constexpr std::size_t kRegion = 65536 + kMostSegments * 2 * kHeadroom + 17 * 64;

  struct Message {
    std::uint32_t length = 0;
    std::uint32_t segment = 0;  // bytes of each but the last
    UdpDatagram headers;
  };

  std::uint8_t* region(unsigned message) { return memory_.get() + message * kRegion; }
  // Offset of the payload of segment `k` in a region, for segments of `size` bytes.
  static std::size_t place(std::uint32_t size, unsigned k) {
    return kHeadroom + k * std::size_t{(size + 63) / 64 * 64 + kHeadroom};
  }
  void receive(QueueCounters& counters);
  void aim(std::uint32_t segment);
  bool read(msghdr& m, std::uint32_t length, Message* message) const;
  void spread(unsigned message);
  bool next_frame(urnic_frame* frame, QueueCounters& counters);

  const Fd& socket_;
  const bool v6_;
  const std::uint8_t (&mac_)[6];
  const std::uint32_t max_frame_;
  std::unique_ptr<std::uint8_t[]> memory_;  // kMessages regions
  std::array<iovec, kMessages> single_;
  std::array<iovec, std::size_t{kJoined} * kMostPlaces> scattered_;
  std::uint32_t expected_ = 0;  // size of the segments of the last joined message; 0: single ones
  std::uint32_t aimed_ = 0;     // size of the segments that `scattered_` is made for
  unsigned places_ = 1;         // of each message in `scattered_`
  std::array<Message, kMessages> messages_;
  // The next frame is segment `segment_` of `message_`.
  unsigned received_ = 0, message_ = 0, segment_ = 0;
  std::uint32_t landed_ = 0;  // `expected_` when the present messages were received
  IdentificationPatch patch_;
};

}  // namespace urnic::port
