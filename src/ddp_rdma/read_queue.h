// Read Queue 214: inbound Read and Atomic Requests, circular by MSN (Fig 11, R-89..R-92; RFC 7306,
// 5: both are numbered together and share the IRD). A request is placed into the entry for its MSN,
// in any order. The doorbell makes entries ready strictly in order. An entry is free again when the
// last byte of its response was acknowledged.
//
//   oldest            next_response           ready_end            oldest + limit
//      | being sent, or sent | ready, waiting     | placed or empty       |
#pragma once

#include <cstdint>

#include "base/buffer_pool.h"
#include "ddp_rdma/atomic_request.h"
#include "ddp_rdma/header.h"

namespace urnic::ddp {

class ReadQueue {
 public:
  struct Entry {
    ReadRequest request;
    AtomicRequest atomic;  // valid if is_atomic
    bool placed;
    bool is_atomic;
  };

  // `pool` provides the memory of the entries while there are any.
  explicit ReadQueue(BufferPool* pool, std::uint32_t first_msn = 1);
  ~ReadQueue();
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  // Sets the negotiated IRD. Only while empty.
  // bound: the peer's Reads and atomics served at once (IRD); setting: ird; beyond: one more is a
  // protocol error: Terminate; test: ReadQueue.CapacityIsTheNegotiatedMaximum,
  // Admitting.ReadRequestsMeetTheNegotiatedLimit, Reads.MoreRequestsThanNegotiatedTerminate
  void set_limit(std::uint16_t ird);
  std::uint16_t limit() const { return limit_; }
  void reset(std::uint32_t first_msn = 1);

  std::uint32_t oldest() const { return oldest_; }           // oldest unfinished
  std::uint32_t next() const { return ready_end_; }          // next to deliver
  std::uint32_t next_response() const { return response_; }  // next to answer
  std::uint32_t ready() const { return ready_end_ - response_; }
  bool empty() const { return entries_ == nullptr; }

  // True if there is a free entry for `msn`, in [next(), oldest() + limit).
  bool has_room(std::uint32_t msn) const {
    return msn - oldest_ < limit_ && msn - oldest_ >= ready_end_ - oldest_;
  }

  // Writes the request into its entry; requires has_room(msn); may be repeated.
  void place(std::uint32_t msn, const ReadRequest& request);
  void place(std::uint32_t msn, const AtomicRequest& request);
  // The entry to deliver next, nullptr if it was never placed.
  const ReadRequest* to_deliver() const;
  // Rings the doorbell for that entry.
  void announce() { ++ready_end_; }
  // The request whose response is being built: [oldest, ready_end). For an atomic, returns a Read
  // of the same cost on the same memory.
  const ReadRequest& request(std::uint32_t msn) const { return entry(msn).request; }
  // Writes the request again, as far as a Terminate copies it, to `dst` (kMaxRequest bytes). For a
  // Read, its first `offset` bytes are done. Returns the number of bytes.
  static constexpr std::uint32_t kMaxRequest = kUntaggedHeader + kAtomicRequest;
  std::uint32_t emit(std::uint32_t msn, std::uint32_t offset, std::uint8_t* dst) const;
  // The atomic at `msn`; nullptr if it is a Read.
  const AtomicRequest* atomic(std::uint32_t msn) const {
    const Entry& e = entry(msn);
    return e.is_atomic ? &e.atomic : nullptr;
  }
  // The response to next_response() has begun.
  void start_response() { ++response_; }
  // The oldest response was acknowledged.
  void finish_oldest();

 private:
  Entry& take(std::uint32_t msn);
  Entry& entry(std::uint32_t msn) const { return entries_[msn & mask_]; }
  void release();

  BufferPool* pool_;
  Entry* entries_ = nullptr;
  std::uint32_t mask_ = 0;
  std::uint16_t limit_ = 0;
  std::uint16_t live_ = 0;  // placed and not finished
  std::uint32_t oldest_, response_, ready_end_;
};

}  // namespace urnic::ddp
