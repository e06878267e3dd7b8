// P5, P12: ping-pong of RDMA Writes of 8 bytes, or of a given size, between two processes, each on
// its own core: own TCP or RoCE over memif, or over the kernel's TCP. Each end polls the memory
// that the other writes (E-13), first and last word, and drives its engine in between. Prints half
// round trips in microseconds, median and 99th percentile, and the number of TCP segments sent per
// Write: one if replies carry the ACKs (E-7); 0 with RoCE and the kernel's TCP. With --json prints
// the distribution.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <vector>

#include "bench/e2e/ends.h"
#include "bench/e2e/half_trips.h"
#include "bench/e2e/pin.h"

using namespace urnic;
using namespace urnic::bench;

namespace {

// Up to this size the payload of a Write is posted inline.
constexpr std::uint32_t kInline = 64;
// Every 64th Write is signaled, so that the send queue is emptied.
constexpr std::uint64_t kSignalEvery = 64;

// The memory of one end: first the part that the peer writes, then the part that we send. Both are
// whole words; the first and the last hold the number of the Write.
struct Player {
  End e;
  std::uint64_t* memory;
  std::size_t words;  // of one message

  // The offset of the outgoing message: in a separate cache line.
  static std::size_t outgoing(std::size_t words) { return (words + 7) / 8 * 8; }

  void send(std::uint64_t n) {
    const std::size_t out = outgoing(words);
    const auto bytes = static_cast<std::uint32_t>(8 * words);
    memory[out] = memory[out + words - 1] = n;
    const bool last = n % kSignalEvery == 0;
    e.write(
        n, 8 * out, bytes, 0,
        (bytes <= kInline ? send_inline : SendFlags(0)) | (last ? send_signaled : SendFlags(0)));
    if (!last) return;
    Completion c;
    while (e.cq.poll({&c, 1}) == 0) {
    }
    if (c.status != WcStatus::success) fail(to_string(c.status));
  }
  void receive(std::uint64_t n) {
    const std::atomic_ref<std::uint64_t> first(memory[0]), last(memory[words - 1]);
    const auto there = [n](const std::atomic_ref<std::uint64_t>& word) {
      return word.load(std::memory_order_acquire) == n;
    };
    for (std::uint64_t spins = 0; !there(last) || !there(first); ++spins) {
      e.device.progress();
      if ((spins & 0xfffff) == 0xfffff && e.qp.state() == QpState::error) fail("connection lost");
    }
  }
  [[noreturn]] static void fail(const char* why) {
    std::fprintf(stderr, "write_lat: %s\n", why);
    std::_Exit(1);
  }
};

std::span<std::uint8_t> bytes(std::vector<std::uint64_t>& words) {
  return {reinterpret_cast<std::uint8_t*>(words.data()), words.size() * 8};
}

}  // namespace

int main(int argc, char** argv) {
  EndOptions o;
  std::uint64_t rounds = 100000;
  CLI::App app{"P5, P12: RDMA Write latency"};
  std::uint32_t size = 8;
  bool json = false;
  app.add_option("--rounds", rounds, "round trips")->check(CLI::Range(100, 100000000));
  app.add_option("--mtu", o.mtu, "IP MTU")->check(CLI::Range(576, 65000));
  app.add_option("--progress", o.progress, "who drives the engines: poll or auto");
  app.add_flag("--roce", o.roce, "RoCE instead of iWARP");
  app.add_flag("--tcp", o.kernel_tcp, "over the kernel's TCP on loopback instead of memif");
  app.add_flag("--udp", o.kernel_udp, "over the kernel's UDP on loopback instead of memif; RoCE");
  app.add_option("--size", size, "bytes of a Write, a multiple of 8")
      ->check(CLI::Range(8, 1 << 24));
  app.add_flag("--json", json, "the distribution, [[percent, us], ...]");
  CLI11_PARSE(app, argc, argv);
  o.roce |= o.kernel_udp;
  if (size % 8 != 0 || (o.roce && o.kernel_tcp)) {
    std::fprintf(stderr, "write_lat: --size is a multiple of 8, and --tcp is iWARP alone\n");
    return 2;
  }
  const SocketDirectory directory;
  o.socket = directory.socket();
  const std::uint64_t warm = rounds / 10, total = rounds + warm;
  const std::size_t words = size / 8;
  std::vector<std::uint64_t> memory(Player::outgoing(words) + words);
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    pin_to(1);
    Player p{open_server(o, bytes(memory)), memory.data(), words};
    for (std::uint64_t n = 1; n <= total; ++n) {
      p.receive(n);
      p.send(n);
    }
    const double until = seconds() + 0.2;
    while (seconds() < until) p.e.device.progress();
    std::_Exit(0);
  }
  pin_to(0);
  Player p{open_client(o, bytes(memory)), memory.data(), words};
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
  const HalfTrips trips(std::move(half));
  if (json) {
    trips.print_json();
  } else {
    std::printf("%.3f %.3f %.3f\n", trips.at(50), trips.at(99), sent / static_cast<double>(total));
  }
  return status == 0 ? 0 : 1;
}
