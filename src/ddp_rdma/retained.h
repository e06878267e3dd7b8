// The part of the stream that was cut and is not yet acknowledged: the ledger, the copies of those
// FPDUs that must not be rebuilt (E-22), and the position of the stream.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/stream_offset.h"
#include "ddp_rdma/kept_bytes.h"
#include "ddp_rdma/ledger.h"

namespace urnic::ddp {

class Retained {
 public:
  explicit Retained(BufferPool* pool) : ledger_(pool), kept_(pool) {}
  ~Retained() { drop(); }
  Retained(const Retained&) = delete;
  Retained& operator=(const Retained&) = delete;

  bool empty() const { return ledger_.empty(); }
  std::uint32_t size() const { return ledger_.size(); }
  // How many more records may be added.
  std::uint32_t room() const { return kMaxRecords - ledger_.size(); }
  StreamOffset end() const { return end_; }    // one past the last byte cut
  StreamOffset sent() const { return sent_; }  // one past the highest byte ever passed to TCP
  void note_sent(StreamOffset end) { sent_ = std::max(sent_, end); }

  // Index 0 is the oldest.
  Record& operator[](std::uint32_t i) { return ledger_[i]; }
  const Record& oldest() const { return ledger_.front(); }
  Record& newest() { return ledger_.back(); }
  StreamOffset end_of_oldest() const {
    // Computed as a distance from end_, so that 32 bits are enough.
    const Record& r = ledger_.front();
    return end_ - (low(end_) - (r.begin + r.wire));
  }
  // True if byte `at` lies in one of the records.
  bool holds(StreamOffset at) const {
    return !ledger_.empty() && at < end_ && end_ - at <= low(end_) - ledger_.front().begin;
  }
  // Returns the record of byte `at`, and its distance from the record's beginning; requires
  // holds(at).
  std::uint32_t find(StreamOffset at, std::uint32_t* skip) {
    const std::uint32_t i = ledger_.find(low(at));
    *skip = low(at) - ledger_[i].begin;
    return i;
  }

  // Adds a record of `wire` bytes at the end of the stream; the caller fills in the rest. Fields
  // are written one by one in place: a copy of a local record would wait in the store buffer, after
  // all stores of the frame.
  Record& cut(std::uint32_t wire) {
    Record& r = ledger_.push();
    r.begin = low(end_);
    r.wire = wire;
    end_ += wire;
    return r;
  }
  // The oldest record was acknowledged.
  void pop_oldest() {
    if (oldest().kept != nullptr) kept_.free(oldest().kept);
    ledger_.pop();
  }
  // Removes record `i` and all later ones from the stream, if none of their bytes was ever sent.
  bool take_back(std::uint32_t i);
  // Forgets all records.
  void drop() {
    while (!ledger_.empty()) pop_oldest();
  }
  // Restarts the stream at offset 0.
  void restart() {
    drop();
    end_ = sent_ = StreamOffset();
  }

  KeptBytes& kept() { return kept_; }
  const KeptBytes& kept() const { return kept_; }

 private:
  // bound: FPDUs of a connection in flight; beyond: no more are cut until some are acknowledged;
  // test: RetainedTest.TheNumberOfFpdusInFlightIsBounded
  static constexpr std::uint32_t kMaxRecords = 1u << 20;  // FPDUs in flight

  static std::uint32_t low(StreamOffset at) { return static_cast<std::uint32_t>(at.value()); }

  Ledger ledger_;
  StreamOffset end_, sent_;
  KeptBytes kept_;
};

}  // namespace urnic::ddp
