// Feeds one engine with prepared RoCE packets at full speed: RDMA Writes of 64 KiB to a registered
// region over one RC queue pair. The ideal loop uses the same packets, patched in the same way.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench/receive/replay_port.h"
#include "sim/pair.h"

namespace urnic::bench {

// Frames in one block of memory. PSN and ICRC are patched when a frame is used, so that a set can
// be sent repeatedly. The ICRC is linear, and three tables hold the effect of the PSN on it.
class PacketSet {
 public:
  struct Item {
    std::uint32_t offset;   // of the frame in the block
    std::uint32_t length;   // whole frame
    std::uint32_t icrc;     // at PSN 0
    std::uint32_t shifts;   // selects the table: packets of that many bytes
    std::uint32_t payload;  // offset in the frame
    std::uint64_t to;       // destination of the payload, in bytes from the region's start
  };
  std::uint8_t* frame(std::size_t i) { return block.data() + items[i].offset; }
  void patch(std::size_t i, std::uint32_t at);
  // For a ReplayPort: from `next` on, at `psn`.
  static void hand_out(void* set, urnic_frame* frames, unsigned n);

  using Shifts = std::array<std::array<std::uint32_t, 256>, 3>;  // by byte of the PSN
  std::vector<std::uint8_t> block;
  std::vector<Item> items;
  std::vector<std::pair<std::uint32_t, Shifts>> shifts;  // by packet length in bytes
  std::size_t next = 0;
  std::uint32_t psn = 0;
};

class RoceReceiver {
 public:
  static constexpr std::uint32_t kMessage = 65536;

  // `working_set`: bytes of payload of all frames together, a multiple of kMessage; the destination
  // region has the same size.
  RoceReceiver(std::uint32_t pmtu, std::uint64_t working_set);

  // Processes `bytes` of payload, a multiple of kMessage; returns the working time of this thread
  // in seconds. Both loops continue where they stopped, half the working set apart.
  double run_engine(std::uint64_t bytes);
  // Processes the same frames with patch, ICRC and memcpy without any protocol. Every ICRC must be
  // right; otherwise the process ends.
  double run_ideal(std::uint64_t bytes);

  std::uint32_t pmtu() const { return pmtu_; }

 private:
  void prepare(std::uint64_t working_set);
  std::uint64_t taken() const;

  std::uint32_t pmtu_;
  std::unique_ptr<sim::Pair> pair_;
  verbs::QueuePair *sender_ = nullptr, *receiver_ = nullptr;
  std::vector<std::uint8_t> region_;
  std::uint32_t rkey_ = 0;
  PacketSet packets_;
  ReplayPort replay_;
  Instant now_;
  std::size_t next_ideal_ = 0;
};

}  // namespace urnic::bench
