// Writes of 4 KiB, each over one of many queue pairs chosen randomly, at random places of the same
// memory.
#pragma once

#include <span>

#include "base/rng.h"
#include "bench/micro/stopwatch.h"
#include "bench/simulated/writes.h"

namespace urnic::bench {

class ScatteredWrites {
 public:
  static constexpr std::uint32_t kMessage = 4096, kMemory = 1u << 20;
  static constexpr std::uint32_t kDepth = 16;  // outstanding messages over all queue pairs

  explicit ScatteredWrites(sim::Pair* pair) : pair_(pair), writes_(pair, kMemory) {}

  // Performs `count` Writes. Returns the working time of this thread in seconds; ends the process
  // if one does not complete.
  double run(std::span<verbs::QueuePair* const> among, std::uint64_t count) {
    std::uint64_t posted = 0, done = 0;
    verbs::Cqe cqes[kDepth];
    const double from = seconds_now();
    const bool finished = pair_->run_until(
        [&] {
          for (int n; (n = pair_->left().poll_send(cqes)) > 0;) {
            for (int i = 0; i < n; ++i) {
              if (cqes[i].completion.status != verbs::Status::Success)
                Writes::die("a Write failed");
            }
            done += static_cast<std::uint64_t>(n);
          }
          while (posted < count && posted - done < kDepth) {
            posted += post(*among[rng_.below(among.size())]);
          }
          return done == count;
        },
        Duration::s(3600));
    if (!finished) Writes::die("a Write did not complete");
    return seconds_now() - from;
  }

 private:
  // 0: there is no room, the last one is still outstanding.
  unsigned post(verbs::QueuePair& qp) {
    const std::uint64_t at = rng_.below(kMemory / kMessage) * kMessage;
    const verbs::Post posted = writes_.post(qp, kMessage, at);
    if (posted == verbs::Post::Full) return 0;
    if (posted != verbs::Post::Ok) Writes::die("a Write was refused");
    return 1;
  }

  sim::Pair* pair_;
  Writes writes_;
  Rng rng_{7};
};

}  // namespace urnic::bench
