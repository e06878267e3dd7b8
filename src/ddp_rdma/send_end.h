// The data about a Send once its last segment was placed, and its storage if the segment was in
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "verbs/work.h"

namespace urnic::ddp {

struct SendEnd {
  verbs::ReceiveEnd verbs;    // contents of its completion
  std::uint32_t last_mo = 0;  // MO of its last segment
};

// This transport's part of a receive WQE 516R.
struct ReceivePart {
  std::uint32_t last_mo;  // as in SendEnd
};

// Method 2 of 9.4, for Sends that end in order: their WQEs are not written. Holds the data for the
// current segment; one object serves all streams of an engine, since no other stream runs between
// placing a segment in order and delivering the messages it ends.
class FreshSends {
 public:
  void put(std::uint32_t stream, std::uint32_t msn, const SendEnd& end) {
    if (stream != stream_ || msn != first_ + static_cast<std::uint32_t>(ends_.size() - next_)) {
      ends_.clear();
      next_ = 0;
      stream_ = stream;
      first_ = msn;
    }
    ends_.push_back(end);
  }
  // Takes the end of Send `msn` and forgets it. Returns false if it is not the next one.
  bool take(std::uint32_t stream, std::uint32_t msn, SendEnd* out) {
    if (stream != stream_ || msn != first_ || next_ == ends_.size()) return false;
    *out = ends_[next_++];
    ++first_;
    if (next_ == ends_.size()) forget(stream);
    return true;
  }
  void forget(std::uint32_t stream) {
    if (stream != stream_) return;
    ends_.clear();
    next_ = 0;
    first_ = 0;
  }

 private:
  std::uint32_t stream_ = 0;
  std::uint32_t first_ = 0;  // MSN of ends_[next_]
  std::size_t next_ = 0;
  std::vector<SendEnd> ends_;
};

}  // namespace urnic::ddp
