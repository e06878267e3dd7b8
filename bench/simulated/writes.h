// Writes from the left node of a simulated pair into memory of the right one, for measurements in
// virtual time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "sim/pair.h"

namespace urnic::bench {

class Writes {
 public:
  // `bytes` of memory at each end. `pair` must outlive this object.
  Writes(sim::Pair* pair, std::uint32_t bytes)
      : pair_(pair),
        memory_(2 * std::size_t{bytes}, 0x33),
        sink_(memory_.data() + bytes),
        source_key_(pair->left().register_memory(memory_.data(), bytes, verbs::kLocalWrite)),
        sink_key_(pair->right().register_memory(sink_, bytes,
                                                verbs::kLocalWrite | verbs::kRemoteWrite)) {}

  // Posts one signaled Write of `bytes`, from and to `at`.
  verbs::Post post(verbs::QueuePair& qp, std::uint32_t bytes, std::uint64_t at = 0) {
    const verbs::Sge sge{reinterpret_cast<std::uint64_t>(memory_.data()) + at, bytes, source_key_};
    verbs::SendWr wr;
    wr.op = verbs::WrOp::Write;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.remote_address = reinterpret_cast<std::uint64_t>(sink_) + at;
    wr.rkey = sink_key_;
    return pair_->left().post_send(qp, wr, pair_->now());
  }

  // Performs `count` Writes of `bytes`, `depth` at a time. Returns the virtual time; ends the
  // process if one does not complete.
  Duration run(verbs::QueuePair& qp, std::uint32_t bytes, std::uint64_t count,
               std::uint32_t depth) {
    const Instant from = pair_->now();
    std::uint64_t posted = 0, done = 0;
    const bool finished = pair_->run_until(
        [&] {
          pair_->left().drain_completions();
          done += pair_->left().send_done.size();
          pair_->left().send_done.clear();
          for (; posted < count && posted - done < depth; ++posted) {
            if (post(qp, bytes) != verbs::Post::Ok) die("a Write was refused");
          }
          return done == count;
        },
        Duration::s(3600));
    if (!finished || qp.state != verbs::QpState::Rts) die("a Write did not complete");
    return pair_->now() - from;
  }

  [[noreturn]] static void die(const char* what) {
    std::fprintf(stderr, "bench: %s\n", what);
    std::exit(1);
  }

 private:
  sim::Pair* pair_;
  std::vector<std::uint8_t> memory_;
  std::uint8_t* sink_;
  std::uint32_t source_key_, sink_key_;
};

}  // namespace urnic::bench
