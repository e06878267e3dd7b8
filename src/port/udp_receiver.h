// What one UDP socket receives, as frames: the kernel hands out datagrams one by one or, with
// offload, joined to segments of one size, and each becomes a frame of its own with its headers in
// front.
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

  // Up to `n` frames, which were received now or are left of what was received before.
  unsigned burst(urnic_frame* frames, unsigned n, QueueCounters& counters);
  // Frames of the last message are left.
  bool has_more() const { return message_ != received_; }

 private:
  static constexpr unsigned kMessages = kBurst;   // received with one call, while they are single
  static constexpr unsigned kJoined = 8;          // the same, while they are joined
  static constexpr unsigned kMostSegments = 128;  // in one message; UDP_MAX_SEGMENTS
  static constexpr unsigned kMostPlaces = 64;     // that a joined message is scattered to
  static constexpr std::uint32_t kHeadroom = 64;
  static_assert(kHeadroom >= kMostUdpHeaders);
  // A whole message, with headroom for each segment; and 17 cache lines, so that the beginnings of
  // messages do not share the sets of a cache.
  static constexpr std::size_t kRegion = 65536 + kMostSegments * 2 * kHeadroom + 17 * 64;

  struct Message {
    std::uint32_t length = 0;
    std::uint32_t segment = 0;  // bytes of each but the last
    UdpDatagram headers;
  };

  std::uint8_t* region(unsigned message) { return memory_.get() + message * kRegion; }
  // The payload of segment `k` of a message with segments of `size` bytes.
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
  // The size of segments that `scattered_` is made for; 0: messages are received in one piece.
  std::uint32_t expected_ = 0, aimed_ = 0;
  unsigned places_ = 1;  // of each message in `scattered_`
  std::array<Message, kMessages> messages_;
  // What of them is still to be handed out: from segment `segment_` of `message_` on.
  unsigned received_ = 0, message_ = 0, segment_ = 0;
  std::uint32_t landed_ = 0;  // `expected_` when they were received
  IdentificationPatch patch_;
};

}  // namespace urnic::port
