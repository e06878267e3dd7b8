// The work that bench/instructions counts: a fixed amount of one kind, with the same instructions
// in every run. Prints how many units (segments, messages) passed through the engine's poll.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "bench/receive/replay.h"
#include "bench/receive/roce_replay.h"
#include "bench/simulated/writes.h"

using namespace urnic;

namespace {

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "bench_counted: %s\n", what);
  std::exit(1);
}

// Only the receiving half, fed from memory: segments.
std::uint64_t receive(std::uint32_t mtu, bool fast) {
  bench::Receiver receiver(mtu, 128u << 10, fast);
  std::uint64_t placed = 0;
  receiver.run_engine(16u << 20, &placed);
  if (placed < 16u << 20) die("not everything was placed");
  return placed / receiver.frame_payload();
}

// The same for RoCE: packets.
std::uint64_t receive_roce(std::uint32_t pmtu) {
  bench::RoceReceiver receiver(pmtu, 128u << 10);
  receiver.run_engine(16u << 20);
  return (16u << 20) / pmtu;
}

// Two engines in virtual time with Writes between them: the whole work of both for a message.
class Ends {
 public:
  Ends(std::uint32_t mtu, bool roce) {
    sim::PairOptions o;
    o.mtu = mtu;
    for (engine::Options* e : {&o.left, &o.right}) {
      e->tcp.ack_policy = tcp::AckPolicy::PerBurst;  // like a device (E-7)
      e->speaks_roce = roce;
      e->roce.selective = e->roce.probe = true;  // the defaults of the settings
    }
    pair_ = std::make_unique<sim::Pair>(o);
    roce ? connect_roce() : connect_iwarp();
    writes_.emplace(pair_.get(), kMemory);
  }

  std::uint64_t run(std::uint32_t bytes, std::uint64_t count, std::uint32_t depth) {
    writes_->run(*left_, bytes, count, depth);
    return count;
  }

 private:
  static constexpr std::uint32_t kMemory = 1u << 17;

  void connect_iwarp() {
    left_ = pair_->left().make_qp();
    if (!pair_->connect(*left_, *pair_->right().make_qp())) die("the connection did not come up");
  }
  void connect_roce() {
    left_ = pair_->left().make_roce_qp();
    verbs::QueuePair* const right = pair_->right().make_roce_qp();
    const SocketAddress at = *SocketAddress::parse("10.0.0.2:7000");
    auto& far = pair_->right().engine().roce_control().connections();
    auto& near = pair_->left().engine().roce_control().connections();
    auto bound = far.listeners().bind({at, false, false});
    if (!bound || !far.listeners().listen(bound.value(), 1)) die("nobody listens");
    if (!near.connect(*left_, at, {}, pair_->now())) die("connect");
    const auto come = [&] { return !pair_->right().roce_requests.empty(); };
    if (!pair_->run_until(come, Duration::s(10))) die("nobody asked");
    const auto handle = pair_->right().roce_requests.back().id;
    if (!far.accept(handle, *right, {}, pair_->now())) die("accept");
    const auto up = [&] { return left_->state == verbs::QpState::Rts; };
    if (!pair_->run_until(up, Duration::s(10))) die("the connection did not come up");
  }

  std::unique_ptr<sim::Pair> pair_;
  std::optional<bench::Writes> writes_;
  verbs::QueuePair* left_ = nullptr;
};

const std::map<std::string, std::function<std::uint64_t()>> kCases = {
    {"receive-1500", [] { return receive(1500, true); }},
    {"receive-9000", [] { return receive(9000, true); }},
    {"receive-1500-slow", [] { return receive(1500, false); }},
    {"roce-receive-1024", [] { return receive_roce(1024); }},
    {"roce-receive-4096", [] { return receive_roce(4096); }},
    {"write-64k-1500", [] { return Ends(1500, false).run(65536, 300, 16); }},
    {"write-64k-9000", [] { return Ends(9000, false).run(65536, 600, 16); }},
    {"write-64", [] { return Ends(1500, false).run(64, 8000, 64); }},
    {"write-64-alone", [] { return Ends(1500, false).run(64, 4000, 1); }},
    {"roce-write-64k-1500", [] { return Ends(1500, true).run(65536, 300, 16); }},
    {"roce-write-64k-9000", [] { return Ends(9000, true).run(65536, 600, 16); }},
    {"roce-write-64", [] { return Ends(1500, true).run(64, 8000, 64); }},
    {"roce-write-64-alone", [] { return Ends(1500, true).run(64, 4000, 1); }},
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"fixed work whose instructions bench/instructions counts"};
  std::string name;
  bool list = false;
  app.add_option("CASE", name, "which work");
  app.add_flag("--list", list, "the names of all cases");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    for (const auto& c : kCases) std::printf("%s\n", c.first.c_str());
    return 0;
  }
  const auto found = kCases.find(name);
  if (found == kCases.end()) {
    std::fprintf(stderr, "bench_counted: no case '%s': see --list\n", name.c_str());
    return 2;
  }
  std::printf("units %llu\n", static_cast<unsigned long long>(found->second()));
  return 0;
}
