// P18: many RoCE queue pairs. The memory of an idle RC queue pair, and the cost of messages if each
// uses a random one of all queue pairs, compared with the same messages over one. Two engines in
// one thread and virtual time; the working time of this thread is measured, in alternating slices.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/many/crowd.h"
#include "bench/many/touched.h"
#include "bench/simulated/roce_pairing.h"
#include "bench/simulated/scattered.h"

using namespace urnic;

namespace {

struct Options {
  std::uint32_t queue_pairs = 100000;
  int reps = 30;
  std::uint64_t messages = 20000;  // per slice
  bool json = false;
};

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "bench_p18: %s\n", what);
  std::exit(1);
}

sim::PairOptions pair_options() {
  sim::PairOptions o;
  o.completions = 1024;
  for (engine::Options* e : {&o.left, &o.right}) {
    e->speaks_roce = true;
    e->roce.selective = e->roce.probe = true;  // the defaults of the settings
  }
  return o;
}

// Two nodes and pairs of queue pairs; their work queues have the minimum size, except for one pair.
class Crowd {
 public:
  Crowd() : pair_(pair_options()), writes_(&pair_) {}

  void grow(std::uint64_t to) {
    while (qps_.size() < to) {
      const std::uint32_t depth = qps_.empty() ? bench::ScatteredWrites::kDepth : 1;
      verbs::QueuePair* const left = pair_.left().make_roce_qp({depth, 1, 1});
      verbs::QueuePair* const right = pair_.right().make_roce_qp({1, 1, 1});
      if (left == nullptr || right == nullptr) die("no queue pair any more");
      bench::pair_up(&pair_, *left, *right, ib::PathMtu::k1024);
      qps_.push_back(left);
      peers_.push_back(right);
    }
    pair_.run_for(Duration::s(1));  // resolve the peer's address
  }
  double write(std::uint64_t count, std::uint64_t among) {
    return writes_.run({qps_.data(), static_cast<std::size_t>(among)}, count);
  }

  // The cost of the memory accesses alone, for the queue pairs in use.
  bench::Touched touched() const {
    bench::Touched t;
    for (std::size_t i = 0; i < qps_.size(); ++i) {
      const bool used = roce::context_of(*qps_[i]).requester.rc() != nullptr;
      if (used) t.add(*qps_[i], *peers_[i]);
    }
    return t;
  }

 private:
  sim::Pair pair_;
  bench::ScatteredWrites writes_;
  std::vector<verbs::QueuePair*> qps_, peers_;
};

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"P18: memory of an idle RC queue pair; Writes over many of them beside one"};
  app.add_option("--queue-pairs", o.queue_pairs, "how many")->check(CLI::Range(1000, 100000));
  app.add_option("--reps", o.reps, "slices of each kind")->check(CLI::Range(1, 10000));
  app.add_option("--messages", o.messages, "of a slice")->check(CLI::Range(100, 10000000));
  app.add_flag("--json", o.json, "print everything as one JSON object before the last lines");
  CLI11_PARSE(app, argc, argv);

  Crowd crowd;
  const bench::ManyFigures f = bench::measure_many(crowd, o.queue_pairs, o.reps, o.messages);
  bench::Touched touched = crowd.touched();
  std::vector<double> one, all;
  for (int i = 0; i < o.reps; ++i) {
    one.push_back(touched.run(o.messages, 1));
    all.push_back(touched.run(o.messages, touched.size()));
  }
  const double more = (bench::median(all) - bench::median(one)) / static_cast<double>(o.messages);
  const double least = 1 / f.rate_one;  // seconds per message over one queue pair
  const double by_memory = least / (least + more);
  if (o.json) {
    std::printf("%s\n", nlohmann::json{{"bench", "P18"},
                                       {"queue_pairs", o.queue_pairs},
                                       {"bytes_idle", f.idle},
                                       {"bytes_used", f.used},
                                       {"messages_one", f.rate_one},
                                       {"messages_all", f.rate_all},
                                       {"ratio", f.ratio},
                                       {"ns_of_memory", more * 1e9},
                                       {"ratio_by_memory", by_memory}}
                            .dump()
                            .c_str());
  } else {
    std::printf("%-58s %10u\n", "queue pairs", o.queue_pairs);
    std::printf("%-58s %10.0f\n", "bytes of an idle one", f.idle);
    std::printf("%-58s %10.0f\n", "bytes of one that was used now and then", f.used);
    std::printf("%-58s %10.0f\n", "messages a second of this thread, one queue pair", f.rate_one);
    std::printf("%-58s %10.0f\n", "messages a second of this thread, any of them", f.rate_all);
    std::printf("%-58s %10.0f\n", "ns that the lines of any of them take, nothing done",
                more * 1e9);
    std::printf("%-58s %10.3f\n", "ratio if a message took these besides, and no more", by_memory);
  }
  const auto verdict = [](double value, double target, bool met, const char* what) {
    std::printf("P18 %.3f %.2f %s # %s\n", value, target, met ? "met" : "missed", what);
  };
  verdict(f.idle / 1024, 1.25, f.idle <= 1280, "KiB of an idle RC queue pair");
  verdict(f.ratio, 0.6, f.ratio >= 0.6,
          "4 KiB Writes over queue pairs chosen at random / over one, same memory");
  return 0;
}
