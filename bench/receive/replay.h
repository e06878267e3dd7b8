// Feeds one engine with prepared frames at full speed: RDMA Writes to a registered region, one FPDU
// per segment. The ideal loops use the same frames, patched in the same way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/receive/replay_port.h"
#include "sim/pair.h"

namespace urnic::bench {

// Frames in one block of memory. Sequence number and checksum are patched when a frame is used, so
// that a set can be sent repeatedly.
class FrameSet {
 public:
  struct Item {
    std::uint32_t offset;   // of the frame in the block
    std::uint32_t length;   // whole frame
    std::uint32_t partial;  // checksum over everything but sequence number and checksum field
    std::uint32_t pseudo;   // sum of the pseudo header
    std::uint32_t payload;  // TCP payload (one FPDU)
    std::uint64_t to;       // destination of the ULP payload, in bytes from the region's start
  };
  std::uint8_t* frame(std::size_t i) { return block.data() + items[i].offset; }
  // Turns frame `i` into the segment at `seq`.
  void patch(std::size_t i, std::uint32_t at);
  // For a ReplayPort: from `next` on, at `seq`.
  static void hand_out(void* set, urnic_frame* frames, unsigned n);

  std::vector<std::uint8_t> block;
  std::vector<Item> items;
  std::uint32_t tcp_offset = 0, payload_offset = 0;  // in every frame
  std::uint32_t ulp_bytes = 0;                       // ULP payload per frame
  std::size_t next = 0;
  std::uint32_t seq = 0;
};

// The engine is compared with loops over the same frames without any protocol.
enum class Ideal : std::uint8_t {
  ThreePasses,  // fastest checksum, ISA-L's CRC, memcpy
  OnePass,      // our own kernel for both sums, memcpy
};

// A receiving engine with an established connection, and its frames.
class Receiver {
 public:
  // `working_set`: bytes of all frames together; the destination region has the same size.
  Receiver(std::uint32_t mtu, std::uint64_t working_set, bool fast);
  ~Receiver();

  // Processes about `bytes` of ULP payload; returns the working time of this thread in seconds.
  // Both loops continue where they stopped, half the working set apart, so that neither benefits
  // from cache contents of the other.
  double run_engine(std::uint64_t bytes, std::uint64_t* placed);
  // Processes the same frames with patch, checksum, CRC and copies without any protocol: one copy
  // (FAST) or two (SLOW: into a reassembly buffer, CRC there, out of it). Every checksum and CRC
  // must be right; otherwise the process ends.
  double run_ideal(std::uint64_t bytes, std::uint64_t* placed, Ideal kind);

  ConnectionStats stats();
  std::uint32_t frame_payload() const { return frames_.ulp_bytes; }

 private:
  void prepare(std::uint32_t mtu, std::uint64_t working_set);
  bool fast_;
  std::unique_ptr<sim::Pair> pair_;
  verbs::QueuePair *sender_ = nullptr, *receiver_ = nullptr;
  FrameSet frames_;
  std::vector<std::uint8_t> region_, reassembly_;
  std::uint32_t stag_ = 0;
  std::unique_ptr<ReplayPort> replay_;
  Instant now_;
  std::size_t next_ideal_ = 0;
};

}  // namespace urnic::bench
