// P7: many connections. What an idle one takes in memory, and what Writes cost when each is of a
// connection chosen at random among all of them, beside the same Writes over one. Two engines in
// one thread and virtual time; what is measured is the time this thread works, in turns.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/many/resident.h"
#include "bench/micro/stopwatch.h"
#include "bench/simulated/scattered.h"

using namespace urnic;
using bench::median;

namespace {

constexpr std::uint64_t kConnectionsOfOnePort = 20000;  // fewer than there are ephemeral ports

struct Options {
  std::uint64_t connections = 100000;
  int reps = 30;
  std::uint64_t messages = 20000;  // of a slice
  bool json = false;
};

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "bench_p7: %s\n", what);
  std::exit(1);
}

// Two nodes and connections between them; Writes from the left one into the same memory.
class Crowd {
 public:
  explicit Crowd(std::uint64_t most) {
    sim::PairOptions o;
    o.completions = 1024;
    for (engine::Options* e : {&o.left, &o.right}) {
      e->tcp.ack_policy = tcp::AckPolicy::PerBurst;  // as a device does (E-7)
      e->max_connections = static_cast<std::uint32_t>(most);
    }
    pair_ = std::make_unique<sim::Pair>(o);
    writes_.emplace(pair_.get());
    qps_.reserve(most);
  }

  void grow(std::uint64_t to) {
    while (qps_.size() < to) {
      // Work queues are as large as who has them wants; only one connection needs more than one.
      verbs::QueuePair* const left =
          pair_->left().make_qp(qps_.empty() ? bench::ScatteredWrites::kDepth : 1, 1, 1);
      verbs::QueuePair* const right = pair_->right().make_qp(1, 1, 1);
      const std::uint64_t port = 7000 + qps_.size() / kConnectionsOfOnePort;
      if (left == nullptr || right == nullptr ||
          !pair_->connect(*left, *right, {}, {}, "10.0.0.2:" + std::to_string(port))) {
        die("a connection did not come up");
      }
      pair_->left().events.clear();
      pair_->right().events.clear();
      qps_.push_back(left);
    }
    pair_->run_for(Duration::s(1));  // what is sent behind the handshake
  }

  // `count` Writes, each of one of the first `among` connections. Seconds this thread worked.
  double write(std::uint64_t count, std::uint64_t among) {
    return writes_->run({qps_.data(), static_cast<std::size_t>(among)}, count);
  }

 private:
  std::unique_ptr<sim::Pair> pair_;
  std::optional<bench::ScatteredWrites> writes_;
  std::vector<verbs::QueuePair*> qps_;
};

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"P7: memory of an idle connection; Writes over many connections beside one"};
  app.add_option("--connections", o.connections, "how many")->check(CLI::Range(1000, 100000));
  app.add_option("--reps", o.reps, "slices of each kind")->check(CLI::Range(1, 10000));
  app.add_option("--messages", o.messages, "of a slice")->check(CLI::Range(100, 10000000));
  app.add_flag("--json", o.json, "print everything as one JSON object before the last lines");
  CLI11_PARSE(app, argc, argv);

  // What the first hundred take is the engines' own: tables begin, pools get their first blocks.
  constexpr std::uint64_t kFirst = 100;
  Crowd crowd(o.connections);
  crowd.grow(kFirst);
  const std::uint64_t before = bench::resident();
  const double began = bench::seconds_now();
  crowd.grow(o.connections);
  const double set_up =
      (bench::seconds_now() - began) / static_cast<double>(o.connections - kFirst);
  const std::uint64_t after = bench::resident();
  // Each connection has two ends in this process.
  const double idle =
      static_cast<double>(after - before) / static_cast<double>(o.connections - kFirst) / 2;

  crowd.write(o.messages, 1);
  crowd.write(o.messages, o.connections);
  std::vector<double> one, all, ratio;
  for (int i = 0; i < o.reps; ++i) {
    one.push_back(crowd.write(o.messages, 1));
    all.push_back(crowd.write(o.messages, o.connections));
    ratio.push_back(one.back() / all.back());
  }
  const double used =
      static_cast<double>(bench::resident() - before) / static_cast<double>(o.connections) / 2;
  const auto rate = [&](const std::vector<double>& v) {
    return static_cast<double>(o.messages) / median(v);
  };
  if (o.json) {
    std::printf("%s\n", nlohmann::json{{"bench", "P7"},
                                       {"connections", o.connections},
                                       {"octets_idle", idle},
                                       {"octets_used", used},
                                       {"set_up_us", set_up * 1e6},
                                       {"messages_one", rate(one)},
                                       {"messages_all", rate(all)},
                                       {"ratio", median(ratio)}}
                            .dump()
                            .c_str());
  } else {
    std::printf("%-58s %10llu\n", "connections", static_cast<unsigned long long>(o.connections));
    std::printf("%-58s %10.0f\n", "octets of an idle one, each end", idle);
    std::printf("%-58s %10.0f\n", "octets of one that was used now and then", used);
    std::printf("%-58s %10.2f\n", "us of this thread to set one up, both ends", set_up * 1e6);
    std::printf("%-58s %10.0f\n", "messages a second of this thread, one connection", rate(one));
    std::printf("%-58s %10.0f\n", "messages a second of this thread, any of them", rate(all));
  }
  const auto verdict = [](double value, double target, bool met, const char* what) {
    std::printf("P7 %.3f %.2f %s # %s\n", value, target, met ? "met" : "missed", what);
  };
  verdict(idle / 1024, 2, idle <= 2048, "KiB of an idle connection, each end");
  verdict(median(ratio), 0.8, median(ratio) >= 0.8,
          "4 KiB Writes over connections chosen at random / over one, same memory");
  return 0;
}
