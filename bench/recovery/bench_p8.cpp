// P8, the exact part: the benefit of the immediate duplicate ACK (section 7, R-60) for a sender.
// Two engines in virtual time, so that the figures depend only on the protocol and are the same on
// any machine.
//
//   recovery  a message of 2 to 4 segments whose first is refused for its CRC: time compared with
//   the
//             same message on a clean wire
//   goodput   messages over a wire that corrupts one segment in a thousand
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/simulated/writes.h"

using namespace urnic;

namespace {

constexpr std::uint32_t kSegment = 1400;  // bytes of a message that fill most of a segment
constexpr const char* kWire = "delay=50us,rate=10gbit,payload_only=100,skip_handshake=on";
constexpr std::uint32_t kMemory = 1u << 20;

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "bench_p8: %s\n", what);
  std::exit(1);
}

// Two nodes a hundred microseconds apart, and Writes between them.
class Path {
 public:
  Path(std::uint64_t seed, bool sack, bool immediate, bool name = false) {
    sim::PairOptions o;
    o.seed = seed;
    o.faults_left = o.faults_right = kWire;
    for (engine::Options* e : {&o.left, &o.right}) {
      e->tcp.sack = sack;
      e->tcp.ack_policy = tcp::AckPolicy::PerBurst;  // like a device (E-7)
      e->rto_auto = false;
      e->tcp.rto_min = Duration::ms(20);  // like on memif
      e->context.immediate_dup_ack = immediate;
      e->tcp.name_corrupted = name;
    }
    pair_ = std::make_unique<sim::Pair>(o);
    left_ = pair_->left().make_qp();
    right_ = pair_->right().make_qp();
    if (!pair_->connect(*left_, *right_)) die("the connection did not come up");
    writes_.emplace(pair_.get(), kMemory);
    // The round-trip time must be known and the congestion window open before the measurement.
    write(65536, 20, 16);
  }

  void faults(const std::string& more) {
    pair_->set_faults_left(more.empty() ? kWire : kWire + ("," + more));
  }

  // As in Writes::run().
  Duration write(std::uint32_t bytes, std::uint64_t count, std::uint32_t depth) {
    return writes_->run(*left_, bytes, count, depth);
  }

  void idle(Duration d) { pair_->run_for(d); }
  bool stays_fast() {
    const ConnectionStats s = pair_->right().engine().iwarp().qp_stats(*right_);
    return s.iwarp.downgrades == 0 && s.iwarp.ddp.terminates_sent == 0 &&
           s.iwarp.ddp.terminates_received == 0;
  }

 private:
  std::unique_ptr<sim::Pair> pair_;
  std::optional<bench::Writes> writes_;
  verbs::QueuePair *left_ = nullptr, *right_ = nullptr;
};

// The delay in microseconds that the refusal of the first segment causes for a message with
// `behind` more segments; mean over `seeds` connections.
double recovery_us(bool sack, bool immediate, std::uint32_t behind, int seeds) {
  double total = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    Path path(static_cast<std::uint64_t>(seed), sack, immediate);
    const Duration clean = path.write((1 + behind) * kSegment, 1, 1);
    path.idle(Duration::ms(1));
    path.faults("at=corrupt:1");
    const Duration hurt = path.write((1 + behind) * kSegment, 1, 1);
    total += static_cast<double>((hurt - clean).count_ns()) * 1e-3;
  }
  return total / seeds;
}

struct Pattern {
  const char* name;
  std::uint32_t bytes, depth;
  std::uint64_t messages;
};
constexpr Pattern kPatterns[] = {{"4 KiB, one at a time", 4096, 1, 20000},
                                 {"4 KiB, 4 at a time", 4096, 4, 40000},
                                 {"64 KiB, 16 at a time", 65536, 16, 4000}};

// Gb/s of virtual time.
double goodput(bool sack, bool immediate, const Pattern& p, int seeds, bool name = false,
               const char* faults = "corrupt=0.001") {
  double seconds = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    Path path(static_cast<std::uint64_t>(seed), sack, immediate, name);
    path.faults(faults);
    seconds += static_cast<double>(path.write(p.bytes, p.messages, p.depth).count_ns()) * 1e-9;
    if (!path.stays_fast()) die("the connection did not stay FAST");
  }
  return static_cast<double>(p.messages) * seeds * p.bytes * 8e-9 / seconds;
}

void verdict(double ratio, double target, bool at_most, const char* what) {
  const bool met = at_most ? ratio <= target : ratio >= target;
  std::printf("P8 %.3f %.2f %s # %s\n", ratio, target, met ? "met" : "missed", what);
}

}  // namespace

int main(int argc, char** argv) {
  int seeds = 2;
  CLI::App app{"P8: the immediate duplicate ACK, on against off"};
  app.add_option("--seeds", seeds, "connections for each figure")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  double recovery[2] = {0, 0};  // off, on; without SACK
  double small[2] = {0, 0};
  for (const bool sack : {false, true}) {
    std::printf("%s\n", sack ? "SACK at both ends" : "no SACK");
    for (std::uint32_t behind = 1; behind <= 3; ++behind) {
      const double off = recovery_us(sack, false, behind, seeds);
      const double on = recovery_us(sack, true, behind, seeds);
      std::printf("  recovery, %u behind %21s off %9.1f us   on %9.1f us   %.3f\n", behind, "", off,
                  on, on / off);
      if (sack) continue;
      recovery[0] += off;
      recovery[1] += on;
    }
    for (const Pattern& p : kPatterns) {
      const double off = goodput(sack, false, p, seeds), on = goodput(sack, true, p, seeds);
      std::printf("  goodput, %-28s off %9.3f Gb/s on %9.3f Gb/s %.3f\n", p.name, off, on,
                  on / off);
      if (sack || &p != &kPatterns[0]) continue;
      small[0] = off;
      small[1] = on;
    }
  }
  const Pattern& stream = kPatterns[2];
  const double whole = goodput(true, true, stream, seeds, true, "");
  const double cut = goodput(true, true, stream, seeds, false);
  const double named = goodput(true, true, stream, seeds, true);
  std::printf("  %s: clean %.3f Gb/s, not named %.3f, named %.3f\n", stream.name, whole, cut,
              named);
  verdict(named / whole, 0.9, false,
          "virtual time: goodput with corruption / without, named (E-42)");
  verdict(recovery[1] / recovery[0], 0.7, true,
          "no SACK: recovery time, mean of 1 to 3 segments behind, on / off");
  verdict(small[1] / small[0], 1.05, false, "no SACK: goodput, 4 KiB one at a time, on / off");
  return 0;
}
