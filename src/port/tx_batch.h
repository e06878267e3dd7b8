// Reserves and commits transmit buffers of the port in bursts: one call of each kind per burst
// (D3).
#pragma once

#include <algorithm>
#include <cstdint>

#include "port/port.h"

namespace urnic::port {

class TxBatch {
 public:
  static constexpr unsigned kFirst = 4;  // buffers, if nothing else is expected
  TxBatch(Port* port, unsigned queue, std::uint32_t frame_size)
      : port_(port), queue_(queue), size_(frame_size) {}

  // Returns a buffer of frame_size bytes, or nullptr if the port is full. The caller sets len[0]
  // and calls keep(); a frame that is not kept is returned again. `expected`: as many will be asked
  // for, so they leave together.
  Frame* next(unsigned expected = kFirst) {
    if (used_ < reserved_) return &frames_[used_];
    const bool more = used_ != 0;
    flush();
    // For one small message or an ACK, a whole burst of buffers is not worthwhile.
    reserved_ =
        port_->tx_reserve(queue_, size_, frames_, more ? kBurst : std::min(expected, kBurst));
    if (reserved_ == 0) {
      full_ = true;
      return nullptr;
    }
    return &frames_[0];
  }
  void keep() {
    bytes_ += frame_len(frames_[used_]);
    ++frames_sent_;
    ++used_;
  }

  // Sends the kept frames and returns the others.
  void flush() {
    if (reserved_ == 0) return;
    for (unsigned i = used_; i < reserved_; ++i) frames_[i].len[0] = frames_[i].len[1] = 0;
    port_->tx_commit(queue_, frames_, reserved_);
    reserved_ = used_ = 0;
  }

  std::uint32_t frame_size() const { return size_; }
  bool full() const { return full_; }
  void clear_full() { full_ = false; }
  std::uint64_t frames_sent() const { return frames_sent_; }
  std::uint64_t bytes_sent() const { return bytes_; }

 private:
  Port* port_;
  unsigned queue_;
  std::uint32_t size_;
  unsigned reserved_ = 0, used_ = 0;
  bool full_ = false;
  std::uint64_t frames_sent_ = 0, bytes_ = 0;
  Frame frames_[kBurst];
};

}  // namespace urnic::port
