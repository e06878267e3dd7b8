// Byte-stream stacks on a simulated network with its own clock.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tcp/stack.h"

namespace urnic::tcp::test {

class Network {
 public:
  double loss = 0, duplicate = 0, corrupt = 0, reorder = 0;
  Duration delay = Duration::us(100);
  Duration jitter = Duration::ms(3);
  double rate = 0;          // bit/s of each sender's line; 0: no limit
  std::size_t queue = 200;  // full frames that may wait for the line
  Instant now = Instant::from_ns(1000000000);
  Rng rng;
  std::uint64_t carried = 0, overflowed = 0;
  // Sees every datagram when it is sent; false drops it.
  std::function<bool(std::size_t from, ByteView)> filter;

  explicit Network(std::uint64_t seed) : rng(seed) {}

  Stack& add(StackConfig config) {
    stacks_.push_back(std::make_unique<Stack>(std::move(config)));
    return *stacks_.back();
  }

  // Runs until nothing more happens or `limit` has passed. Stops early if `done` returns true.
  void run(Duration limit, const std::function<bool()>& done = nullptr) {
    const Instant end = now + limit;
    for (;;) {
      collect();
      if (done && done()) return;
      Instant next = wire_.empty() ? Instant::never() : wire_.top().at;
      for (const auto& s : stacks_) next = earlier(next, s->next_deadline());
      if (next > end) {
        if (now < end) now = end;
        return;
      }
      now = std::max(now, next);
      for (const auto& s : stacks_) {
        if (s->next_deadline() <= now) s->run(now);
      }
      while (!wire_.empty() && wire_.top().at <= now) {
        const Flying f = wire_.top();
        wire_.pop();
        // Every stack except the sender's gets it. Stacks with other addresses drop it.
        for (std::size_t i = 0; i < stacks_.size(); ++i) {
          if (i != f.from) stacks_[i]->input(f.bytes, now);
        }
      }
    }
  }

 private:
  struct Flying {
    Instant at;
    std::uint64_t order;
    std::size_t from;
    std::vector<std::uint8_t> bytes;
    bool operator<(const Flying& o) const { return at != o.at ? at > o.at : order > o.order; }
  };

  void collect() {
    Datagram d;
    for (std::size_t i = 0; i < stacks_.size(); ++i) {
      while (stacks_[i]->next_output(&d)) {
        ++carried;
        ASSERT_LE(d.send_time, now);
        if (filter && !filter(i, d.bytes)) continue;
        if (rng.chance(loss)) continue;
        if (rate != 0 && !pass_line(i, d.bytes.size())) continue;
        std::vector<std::uint8_t> b(d.bytes.begin(), d.bytes.end());
        if (rng.chance(duplicate)) post(i, b);
        if (rng.chance(corrupt))
          b[rng.below(b.size())] ^= static_cast<std::uint8_t>(1u << rng.below(8));
        post(i, std::move(b));
      }
    }
  }
  // A drop-tail queue, and a line with a rate. Returns false if there is no room.
  bool pass_line(std::size_t from, std::size_t bytes) {
    line_free_.resize(stacks_.size(), now);
    Instant& free = line_free_[from];
    const auto time = [&](std::size_t n) {
      return Duration::ns(static_cast<std::int64_t>(static_cast<double>(n) * 8e9 / rate));
    };
    free = std::max(free, now);
    if (free - now > time(queue * 1500)) {
      ++overflowed;
      return false;
    }
    free = free + time(bytes);
    return true;
  }
  void post(std::size_t from, std::vector<std::uint8_t> bytes) {
    Instant at = (rate != 0 ? line_free_[from] : now) + delay;
    if (rng.chance(reorder)) {
      at = at + Duration::ns(static_cast<std::int64_t>(
                    rng.below(static_cast<std::uint64_t>(jitter.count_ns()))));
    }
    wire_.push({at, order_++, from, std::move(bytes)});
  }

  std::vector<std::unique_ptr<Stack>> stacks_;
  std::priority_queue<Flying> wire_;
  std::vector<Instant> line_free_;  // when the frames sent so far have left
  std::uint64_t order_ = 0;
};

inline IpAddress ip(const char* text) {
  return *IpAddress::parse(text);
}

inline std::uint8_t byte(std::uint64_t i, std::uint64_t stream) {
  return static_cast<std::uint8_t>(((i + 1) * (2 * stream + 3) * 0x9e3779b97f4a7c15ULL) >> 40);
}

// Writes and reads a patterned stream, as far as the stack allows.
struct Peer {
  Stack* stack = nullptr;
  Endpoint e = Endpoint::None;
  std::uint64_t out_stream = 0, in_stream = 0;
  std::uint64_t to_write = 0, written = 0, got = 0;
  bool content_ok = true, eof = false, closed_write = false;
  Status failure = Status::Ok;

  void work(Instant now, std::size_t chunk = 16384) {
    if (e == Endpoint::None) return;
    std::vector<std::uint8_t> b(chunk);
    while (written < to_write) {
      const std::size_t n = std::min<std::uint64_t>(chunk, to_write - written);
      for (std::size_t i = 0; i < n; ++i) b[i] = byte(written + i, out_stream);
      const IoResult r = stack->write(e, ByteView(b).first(n), now);
      if (r.status != Status::Ok) {
        if (r.status != Status::WouldBlock) failure = r.status;
        break;
      }
      written += r.bytes;
      if (r.bytes < n) break;
    }
    if (written == to_write && !closed_write && to_write != 0) {
      closed_write = stack->shutdown_write(e, now) == Status::Ok;
    }
    while (!eof) {
      const IoResult r = stack->read(e, b, now);
      if (r.status == Status::EndOfStream) eof = true;
      if (r.status != Status::Ok) {
        if (r.status != Status::WouldBlock && r.status != Status::EndOfStream) failure = r.status;
        break;
      }
      for (std::size_t i = 0; i < r.bytes; ++i) content_ok &= b[i] == byte(got + i, in_stream);
      got += r.bytes;
    }
  }
};

}  // namespace urnic::tcp::test
