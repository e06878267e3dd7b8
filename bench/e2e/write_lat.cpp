// P5, P12: ping-pong of 8-octet RDMA Writes between two processes on a core each, own TCP or RoCE
// over memif.
// Each end polls the memory the other writes (E-13) and drives its engine in between. Prints half
// round trips in microseconds, median and 99th percentile, and the TCP segments that went out for
// each Write: one, where replies carry the ACKs (E-7); 0 with RoCE.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <vector>

#include "bench/e2e/ends.h"
#include "bench/e2e/pin.h"

using namespace urnic;
using namespace urnic::bench;

namespace {

constexpr std::uint32_t kMessage = 8;
// Every so many Writes one is signaled, so that the send queue empties.
constexpr std::uint64_t kSignalEvery = 64;

// Memory of one end: what the peer writes, then what we write from.
struct Player {
  End e;
  std::uint64_t* memory;

  void send(std::uint64_t n) {
    memory[8] = n;
    const bool last = n % kSignalEvery == 0;
    e.write(n, 64, kMessage, 0, send_inline | (last ? send_signaled : SendFlags(0)));
    if (!last) return;
    Completion c;
    while (e.cq.poll({&c, 1}) == 0) {
    }
    if (c.status != WcStatus::success) fail(to_string(c.status));
  }
  void receive(std::uint64_t n) {
    const std::atomic_ref<std::uint64_t> word(memory[0]);
    for (std::uint64_t spins = 0; word.load(std::memory_order_acquire) != n; ++spins) {
      e.device.progress();
      if ((spins & 0xfffff) == 0xfffff && e.qp.state() == QpState::error) fail("connection lost");
    }
  }
  [[noreturn]] static void fail(const char* why) {
    std::fprintf(stderr, "write_lat: %s\n", why);
    std::_Exit(1);
  }
};

std::span<std::uint8_t> octets(std::vector<std::uint64_t>& words) {
  return {reinterpret_cast<std::uint8_t*>(words.data()), words.size() * 8};
}

}  // namespace

int main(int argc, char** argv) {
  EndOptions o;
  std::uint64_t rounds = 100000;
  CLI::App app{"P5, P12: RDMA Write latency over memif"};
  app.add_option("--rounds", rounds, "round trips")->check(CLI::Range(100, 100000000));
  app.add_option("--mtu", o.mtu, "IP MTU")->check(CLI::Range(576, 65000));
  app.add_option("--progress", o.progress, "who drives the engines: poll or auto");
  app.add_flag("--roce", o.roce, "RoCE instead of iWARP");
  CLI11_PARSE(app, argc, argv);
  const SocketDirectory directory;
  o.socket = directory.socket();
  const std::uint64_t warm = rounds / 10, total = rounds + warm;
  std::vector<std::uint64_t> memory(16);
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    pin_to(1);
    Player p{open_server(o, octets(memory)), memory.data()};
    for (std::uint64_t n = 1; n <= total; ++n) {
      p.receive(n);
      p.send(n);
    }
    const double until = seconds() + 0.2;
    while (seconds() < until) p.e.device.progress();
    std::_Exit(0);
  }
  pin_to(0);
  Player p{open_client(o, octets(memory)), memory.data()};
  std::vector<double> half;
  half.reserve(rounds);
  double before = seconds();
  for (std::uint64_t n = 1; n <= total; ++n) {
    p.send(n);
    p.receive(n);
    const double now = seconds();
    if (n > warm) half.push_back((now - before) * 0.5e6);
    before = now;
  }
  const double sent = static_cast<double>(p.e.qp.stats().iwarp.tcp.segments_out);
  p.e.qp.disconnect();
  int status = 0;
  waitpid(child, &status, 0);
  std::sort(half.begin(), half.end());
  std::printf("%.3f %.3f %.3f\n", half[half.size() / 2], half[half.size() * 99 / 100],
              sent / static_cast<double>(total));
  return status == 0 ? 0 : 1;
}
