// Completion data of Sends that stays in the RNIC instead of being written to their WQEs (method 2
// of 9.4), for the first M Sends that are pending out of order. Data of Sends in order is in
// FreshSends.
#pragma once

#include <cstdint>

#include "base/buffer_pool.h"
#include "ddp_rdma/send_end.h"

namespace urnic::ddp {

// The first M pending Sends of one stream, in MSN order. Memory belongs to the pool, and is
// returned when no Send is held.
class HeldSends {
 public:
  HeldSends(BufferPool* pool, std::uint32_t threshold) : pool_(pool), threshold_(threshold) {}
  ~HeldSends() { clear(); }
  HeldSends(const HeldSends&) = delete;
  HeldSends& operator=(const HeldSends&) = delete;

  // Returns false if M are held already. An earlier entry for `msn` is replaced.
  bool put(std::uint32_t msn, const SendEnd& end);
  // Takes the entry for `msn`, and forgets it and all earlier ones.
  bool take(std::uint32_t msn, SendEnd* out);
  void clear();
  std::uint32_t size() const { return count_; }

 private:
  struct Note {
    std::uint32_t msn;
    SendEnd end;
  };
  void make_room();

  BufferPool* pool_;
  Note* notes_ = nullptr;
  std::uint32_t first_ = 0, count_ = 0, room_ = 0;
  std::uint32_t threshold_;
  unsigned shift_ = 0;
};

}  // namespace urnic::ddp
