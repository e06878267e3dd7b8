// What has been cut and not yet acknowledged: the ledger, the copies of those FPDUs that may not be
// rebuilt (E-22), and where the stream stands.
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
  // How many more there may be.
  std::uint32_t room() const { return kMaxRecords - ledger_.size(); }
  StreamOffset end() const { return end_; }    // one past the last byte that was cut
  StreamOffset sent() const { return sent_; }  // one past the highest byte ever in TCP's hands
  void note_sent(StreamOffset end) { sent_ = std::max(sent_, end); }

  // 0 is the oldest.
  Record& operator[](std::uint32_t i) { return ledger_[i]; }
  const Record& oldest() const { return ledger_.front(); }
  Record& newest() { return ledger_.back(); }
  StreamOffset end_of_oldest() const {
    // As a distance from end_, so that 32 bits suffice.
    const Record& r = ledger_.front();
    return end_ - (low(end_) - (r.begin + r.wire));
  }
  // Does byte `at` lie in one of them?
  bool holds(StreamOffset at) const {
    return !ledger_.empty() && at < end_ && end_ - at <= low(end_) - ledger_.front().begin;
  }
  // Which one, and how far behind its beginning (holds(at)).
  std::uint32_t find(StreamOffset at, std::uint32_t* skip) {
    const std::uint32_t i = ledger_.find(low(at));
    *skip = low(at) - ledger_[i].begin;
    return i;
  }

  // `wire` bytes more: a record whose place is known and whose rest is the caller's. Field by
  // field into its place: copied from a local one it would wait until that has left the store
  // buffer, behind all of the frame.
  Record& cut(std::uint32_t wire) {
    Record& r = ledger_.push();
    r.begin = low(end_);
    r.wire = wire;
    end_ += wire;
    return r;
  }
  // Acknowledged.
  void pop_oldest() {
    if (oldest().kept != nullptr) kept_.free(oldest().kept);
    ledger_.pop();
  }
  // Record `i` and all behind it leave the stream, if none of their bytes was ever sent.
  bool take_back(std::uint32_t i);
  // All of them are forgotten.
  void drop() {
    while (!ledger_.empty()) pop_oldest();
  }
  // The stream begins again.
  void restart() {
    drop();
    end_ = sent_ = StreamOffset();
  }

  KeptBytes& kept() { return kept_; }
  const KeptBytes& kept() const { return kept_; }

 private:
  // bound: FPDUs of a connection in flight; beyond: no more are cut until some are acknowledged;
  // test: RetainedTest.SoManyFpdusAreInFlightAndMoreWhenSomeAreAcknowledged
  static constexpr std::uint32_t kMaxRecords = 1u << 20;  // FPDUs in flight

  static std::uint32_t low(StreamOffset at) { return static_cast<std::uint32_t>(at.value()); }

  Ledger ledger_;
  StreamOffset end_, sent_;
  KeptBytes kept_;
};

}  // namespace urnic::ddp
