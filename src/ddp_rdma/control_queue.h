// What goes out that is no message of a work queue: bytes of the MPA start-up, and ready ULPDUs
// (RTR, Terminate). Waits here, copied, until it is cut.
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
    bool raw;  // no FPDU
  };

  bool empty() const { return items_.empty(); }
  const Item& front() const { return items_.front(); }
  // What cannot be sent is not taken: nothing, more than one block holds, a ULPDU without an
  // opcode.
  void add_raw(KeptBytes* kept, ByteView bytes);
  void add_ulpdu(KeptBytes* kept, ByteView ulpdu);
  // The first one leaves; its block is the caller's.
  void pop();
  void clear(KeptBytes* kept);
  // Bytes of the stream it will take.
  std::uint64_t estimate(const FpduSizes& sizes) const;

 private:
  void add(KeptBytes* kept, ByteView bytes, bool raw);

  std::vector<Item> items_;
};

}  // namespace urnic::ddp
