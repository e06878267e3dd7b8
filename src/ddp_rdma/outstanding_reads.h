// Our Reads and atomics whose response has not ended (RFC 7306, 5: both share the ORD). RTR reads
// of the start-up come first, then requests of the send queue, as a list through
// SendPart::next_read. The negotiated ORD limits their number.
#pragma once

#include <cstdint>

#include "ddp_rdma/read_sink.h"
#include "ddp_rdma/send_requests.h"

namespace urnic::ddp {

class OutstandingReads {
 public:
  explicit OutstandingReads(std::uint32_t first_msn)
      : next_msn_(first_msn), atomic_msn_(first_msn) {}

  void set_ord(std::uint16_t ord) { ord_ = ord; }
  std::uint16_t ord() const { return ord_; }
  // With ORD 0 no Read can ever be sent: the peer answers none (iwarp-wire 5.3).
  bool none_allowed() const { return ord_ == 0; }
  bool none() const { return count_ == 0; }
  bool has_credit() const { return count_ < ord_; }

  // Returns the MSN for a Read Request that is queued as a ULPDU (RTR). Its zero-length response
  // completes no work request.
  std::uint32_t begin_rtr() {
    ++rtr_;
    ++count_;
    return next_msn_++;
  }
  // Request `seq` begins, with `sink` for its response. Returns its MSN.
  std::uint32_t begin(const SendRequests& requests, std::uint32_t seq, std::uint32_t sink);
  // Completes the `n` oldest. Returns false if that fails: fewer are outstanding, or the end
  // of a response was never placed. The first ones may then have been completed.
  bool finish(std::uint32_t n, SendRequests* requests, ReadSinks* sinks);

  // Iterates over them, oldest first.
  struct Cursor {
    std::uint32_t left = 0, rtr = 0, seq = 0;
  };
  Cursor oldest() const { return {count_, rtr_, first_}; }
  // MSN of the next Atomic Response to deliver.
  std::uint32_t next_atomic_msn() const { return atomic_msn_; }
  // False at the end. `*sink` is 0 for an RTR read.
  static bool next(const SendRequests& requests, Cursor* cursor, std::uint32_t* sink,
                   std::uint32_t* size);

  void forget() { count_ = rtr_ = 0; }
  // Forgets the RTR reads, as if the start-up had sent none.
  void forget_rtr() {
    count_ -= rtr_;
    next_msn_ -= rtr_;
    rtr_ = 0;
  }
  void restart(std::uint32_t first_msn) {
    forget();
    next_msn_ = atomic_msn_ = first_msn;
  }

 private:
  std::uint32_t first_ = 0, last_ = 0;  // first and last index of the list
  std::uint32_t next_msn_, atomic_msn_;
  // bound: outstanding Reads and atomics (ORD); setting: ord; beyond: the next one and all after it
  // wait; test: SendingOrder.ReadsBeyondOrdDelayLaterRequests
  std::uint16_t ord_ = 0;
  std::uint16_t count_ = 0, rtr_ = 0;  // within the ORD
};

}  // namespace urnic::ddp
