// A middlebox that cuts and joins segments. The bytes of a stream leave it unchanged and in order,
// but with other segment boundaries, so that FPDUs are no longer aligned with segments (spec
// section 2; E-37).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "fault/flow_guard.h"
#include "fault/tcp_frame.h"

namespace urnic::fault {

struct ResegmentStats {
  std::uint64_t cut = 0, joined = 0;
};

class Resegmenter {
 public:
  explicit Resegmenter(Rng rng) : rng_(rng) {}

  // `f` with view `v` (nullptr: not TCP) enters; leaving frames are appended to `out`. With `touch`
  // the frame may be cut, joined, or held for its successor until now + hold. `cut_now` cuts it
  // regardless of the probability. Segments with a wrong checksum pass unchanged, so that it is not
  // repaired.
  struct Rule {
    double probability = 0;
    bool touch = false, cut_now = false;
    std::uint32_t cut_from = 0, cut_to = 0;  // range that cut_now cuts out; cut_to 0: random
    std::uint32_t mtu = 1500;                // for joined segments
    Duration hold;
  };
  void push(Frame f, const TcpView* v, const Rule& rule, Instant now, std::vector<Frame>& out);
  // Releases the frames that have waited long enough.
  void flush(Instant now, std::vector<Frame>& out);
  void flush_all(std::vector<Frame>& out) { flush(Instant::never(), out); }
  Instant next_deadline() const;

  void reseed(Rng rng) { rng_ = rng; }
  std::size_t held() const { return held_.size(); }
  const ResegmentStats& stats() const { return stats_; }

 private:
  // bound: segments held back to be joined; beyond: the segment passes unchanged; test:
  // Resegmenter.FlowsAreNotMixed
  static constexpr std::size_t kHeldLimit = 256;
  struct Held {
    Frame frame;
    Instant until;
  };
  void recut(Frame f, bool joined, const Rule& rule, const FlowKey& key, Instant now,
             std::vector<Frame>& out);
  void hold(Frame f, const FlowKey& key, const Rule& rule, Instant now, std::vector<Frame>& out);

  Rng rng_;
  std::map<FlowKey, Held> held_;
  ResegmentStats stats_;
};

}  // namespace urnic::fault
