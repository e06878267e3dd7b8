// A port whose wire is the fuzzer: it takes the engine's frames one by one and inserts received
// frames; link and room to send are switches. Each frame is in an allocation of exactly its length.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "port/port.h"
#include "tests/fuzz/input.h"

namespace urnic::fuzz {

using Bytes = std::vector<std::uint8_t>;

class FuzzPort {
 public:
  explicit FuzzPort(std::uint32_t max_frame) : max_frame_(max_frame) {}
  FuzzPort(const FuzzPort&) = delete;
  FuzzPort& operator=(const FuzzPort&) = delete;

  port::Port open() { return {&kOps, reinterpret_cast<urnic_port*>(this)}; }

  void put(const Bytes& frame) {
    if (up_ && !frame.empty() && in_.size() < 512) in_.push_back(copy(frame.data(), frame.size()));
  }
  std::deque<Bytes> take() { return std::exchange(out_, {}); }
  bool nothing_to_receive() const { return in_.empty(); }

  void set_link(bool up) {
    if (up && !up_) ++epoch_;
    if (!up) in_.clear();
    up_ = up;
  }
  bool link() const { return up_; }
  void set_full(bool full) { full_ = full; }

 private:
  struct Buffer {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::uint32_t length = 0;
  };
  static Buffer copy(const std::uint8_t* data, std::size_t n) {
    Buffer b{std::make_unique<std::uint8_t[]>(n), static_cast<std::uint32_t>(n)};
    std::memcpy(b.bytes.get(), data, n);
    return b;
  }
  static FuzzPort& of(urnic_port* p) { return *reinterpret_cast<FuzzPort*>(p); }

  static void close(urnic_port*) {}
  static void info(urnic_port* p, urnic_port_info* i) {
    *i = {};
    i->link_up = of(p).up_ ? 1 : 0;
    i->max_frame = of(p).max_frame_;
    i->queues = 1;
    i->link_epoch = of(p).epoch_;
  }
  static void stats(urnic_port*, urnic_port_stats* s) { *s = {}; }
  static unsigned rx_burst(urnic_port* p, unsigned, urnic_frame* f, unsigned n) {
    FuzzPort& self = of(p);
    require(self.lent_.empty(), "a burst was asked for before the last one was given back");
    for (; n > 0 && !self.in_.empty(); --n) {
      self.lent_.push_back(std::move(self.in_.front()));
      self.in_.pop_front();
      *f = {};
      f->data[0] = self.lent_.back().bytes.get();
      f->len[0] = self.lent_.back().length;
      ++f;
    }
    return static_cast<unsigned>(self.lent_.size());
  }
  static void rx_release(urnic_port* p, unsigned, const urnic_frame*, unsigned n) {
    require(of(p).lent_.size() == n, "not all frames of the burst were given back");
    of(p).lent_.clear();
  }
  static unsigned tx_reserve(urnic_port* p, unsigned, std::uint32_t len, urnic_frame* f,
                             unsigned n) {
    FuzzPort& self = of(p);
    require(self.reserved_.empty(), "reserved again before all was committed");
    require(len <= self.max_frame_, "more than a frame was reserved");
    if (self.full_ || !self.up_ || self.out_.size() > 4096) return 0;
    for (unsigned i = 0; i < n; ++i) {
      self.reserved_.push_back({std::make_unique<std::uint8_t[]>(len), len});
      f[i] = {};
      f[i].data[0] = self.reserved_.back().bytes.get();
      f[i].len[0] = len;
    }
    return n;
  }
  static void tx_commit(urnic_port* p, unsigned, urnic_frame* f, unsigned n) {
    FuzzPort& self = of(p);
    require(n <= self.reserved_.size(), "more was committed than reserved");
    for (unsigned i = 0; i < n; ++i) {
      if (f[i].len[0] == 0) continue;
      require(f[i].len[0] <= self.reserved_[i].length, "a frame is longer than its buffer");
      Bytes all(f[i].data[0], f[i].data[0] + f[i].len[0]);
      if (f[i].len[1] != 0) all.insert(all.end(), f[i].data[1], f[i].data[1] + f[i].len[1]);
      require(all.size() <= self.max_frame_, "a frame is longer than the wire carries");
      if (self.up_) self.out_.push_back(std::move(all));
    }
    self.reserved_.clear();
  }
  static unsigned wait_fds(urnic_port*, unsigned, int*, unsigned) { return 0; }
  static int arm(urnic_port* p, unsigned) { return of(p).in_.empty() ? 0 : 1; }
  static void disarm(urnic_port*, unsigned) {}

  static constexpr urnic_port_ops kOps = {
      .abi_version = URNIC_PORT_ABI_VERSION,
      .size = sizeof(urnic_port_ops),
      .kind = "mem",
      .open = nullptr,
      .close = close,
      .info = info,
      .stats = stats,
      .rx_burst = rx_burst,
      .rx_release = rx_release,
      .tx_reserve = tx_reserve,
      .tx_commit = tx_commit,
      .wait_fds = wait_fds,
      .arm = arm,
      .disarm = disarm,
  };

  std::uint32_t max_frame_;
  std::uint32_t epoch_ = 1;
  bool up_ = true, full_ = false;
  std::deque<Buffer> in_;
  std::vector<Buffer> lent_, reserved_;
  std::deque<Bytes> out_;
};

}  // namespace urnic::fuzz
