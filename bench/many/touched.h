// The cache lines that a RoCE message accesses in its two queue pairs, read one by one without any
// processing. It shows the cost of many queue pairs if memory were the only limit, with each line
// requested as soon as its address is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "bench/micro/stopwatch.h"
#include "roce/context.h"

namespace urnic::bench {

class Touched {
 public:
  // Adds a pair; both must have had a request from `from` to `to`.
  void add(const verbs::QueuePair& from, const verbs::QueuePair& to) {
    const roce::Context &a = roce::context_of(from), &b = roce::context_of(to);
    pairs_.push_back({&from, &a, a.requester.rc(), &to, &b, b.responder.rc()});
  }
  std::size_t size() const { return pairs_.size(); }
  // Returns the seconds for one message over each of `count` pairs chosen randomly among the first
  // `among`.
  double run(std::uint64_t count, std::uint64_t among) {
    const double began = seconds_now();
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const Pair& p = pairs_[static_cast<std::size_t>(rng_.below(among))];
      sum += lines(p.from, sizeof *p.from) + lines(p.near, sizeof *p.near) +
             lines(p.requester, sizeof *p.requester) + lines(p.to, sizeof *p.to) +
             lines(p.far, sizeof *p.far) + lines(p.responder, sizeof *p.responder);
    }
    kept_ = sum;
    return seconds_now() - began;
  }

 private:
  struct Pair {
    const verbs::QueuePair* from;
    const roce::Context* near;
    const ib::Requester* requester;
    const verbs::QueuePair* to;
    const roce::Context* far;
    const ib::Responder* responder;
  };
  static std::uint64_t lines(const void* at, std::size_t bytes) {
    constexpr std::size_t kLine = 64;
    std::uint64_t sum = 0;
    const auto* const p = static_cast<const volatile std::uint8_t*>(at);
    for (std::size_t i = 0; i < bytes; i += kLine) sum += p[i];
    return sum;
  }

  std::vector<Pair> pairs_;
  Rng rng_{9};
  volatile std::uint64_t kept_ = 0;
};

}  // namespace urnic::bench
