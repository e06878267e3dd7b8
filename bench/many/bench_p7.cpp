// P7: many connections. The memory of an idle one, and the cost of Writes if each uses a random one
// of all connections, compared with the same Writes over one. Two engines in one thread and virtual
// time; the working time of this thread is measured, in alternating slices.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/many/crowd.h"
#include "bench/simulated/scattered.h"

using namespace urnic;

namespace {

constexpr std::uint64_t kConnectionsOfOnePort = 20000;  // fewer than the ephemeral ports

struct Options {
  std::uint64_t connections = 100000;
  int reps = 30;
  std::uint64_t messages = 20000;  // per slice
  bool json = false;
};

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "bench_p7: %s\n", what);
  std::exit(1);
}

// Two nodes and connections between them, with Writes from the left node into the same memory.
class Crowd {
 public:
  explicit Crowd(std::uint64_t most) {
    sim::PairOptions o;
    o.completions = 1024;
    for (engine::Options* e : {&o.left, &o.right}) {
      e->tcp.ack_policy = tcp::AckPolicy::PerBurst;  // like a device (E-7)
      e->max_connections = static_cast<std::uint32_t>(most);
    }
    pair_ = std::make_unique<sim::Pair>(o);
    writes_.emplace(pair_.get());
    qps_.reserve(most);
  }

  void grow(std::uint64_t to) {
    while (qps_.size() < to) {
      // The program chooses the size of work queues; only one connection needs more than one entry.
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
    pair_->run_for(Duration::s(1));  // for packets after the handshake
  }

  // Sends `count` Writes, each over one of the first `among` connections. Returns the working time
  // of this thread in seconds.
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

  Crowd crowd(o.connections);
  const bench::ManyFigures f = bench::measure_many(crowd, o.connections, o.reps, o.messages);
  if (o.json) {
    std::printf("%s\n", nlohmann::json{{"bench", "P7"},
                                       {"connections", o.connections},
                                       {"bytes_idle", f.idle},
                                       {"bytes_used", f.used},
                                       {"set_up_us", f.set_up * 1e6},
                                       {"messages_one", f.rate_one},
                                       {"messages_all", f.rate_all},
                                       {"ratio", f.ratio}}
                            .dump()
                            .c_str());
  } else {
    std::printf("%-58s %10llu\n", "connections", static_cast<unsigned long long>(o.connections));
    std::printf("%-58s %10.0f\n", "bytes of an idle one, each end", f.idle);
    std::printf("%-58s %10.0f\n", "bytes of one that was used now and then", f.used);
    std::printf("%-58s %10.2f\n", "us of this thread to set one up, both ends", f.set_up * 1e6);
    std::printf("%-58s %10.0f\n", "messages a second of this thread, one connection", f.rate_one);
    std::printf("%-58s %10.0f\n", "messages a second of this thread, any of them", f.rate_all);
  }
  const auto verdict = [](double value, double target, bool met, const char* what) {
    std::printf("P7 %.3f %.2f %s # %s\n", value, target, met ? "met" : "missed", what);
  };
  verdict(f.idle / 1024, 2, f.idle <= 2048, "KiB of an idle connection, each end");
  verdict(f.ratio, 0.6, f.ratio >= 0.6,
          "4 KiB Writes over connections chosen at random / over one, same memory");
  return 0;
}
