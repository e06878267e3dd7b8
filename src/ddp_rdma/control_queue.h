// Outgoing bytes that are not a message of a work queue: frames of the MPA start-up, and ready
// ULPDUs (RTR, Terminate). They are copied and wait here until they are cut.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "ddp_rdma/fpdu_sizes.h"
#include "ddp_rdma/kept_bytes.h"

namespace urnic::ddp {

class ControlQueue {
 public:
  struct Item {
    std::uint8_t* block;  // in KeptBytes
    std::uint32_t len;
    bool raw;  // not an FPDU
  };

  bool empty() const { return items_.empty(); }
  const Item& front() const { return items_.front(); }
  // Both ignore bytes that cannot be sent: an empty range, more than one block holds, or a ULPDU
  // without an opcode.
  void add_raw(KeptBytes* kept, ByteView bytes);
  void add_ulpdu(KeptBytes* kept, ByteView ulpdu);
  // Removes the first item. The caller then owns its block.
  void pop();
  void clear(KeptBytes* kept);
  // Stream bytes that the queue will take.
  std::uint64_t estimate(const FpduSizes& sizes) const;

 private:
  void add(KeptBytes* kept, ByteView bytes, bool raw);

  std::vector<Item> items_;
};

}  // namespace urnic::ddp
