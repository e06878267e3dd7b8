// V4 and V5: ping-pong of 8 bytes between two processes that do not poll continuously, so that the
// sleeping thread of each handles arrivals (docs/progress.md). Nothing is pinned except with
// --cpus. Prints half round trips in microseconds: median, 99th percentile, average.
//
//   bench_wake event [--port memif|tcp]   Sends; arm, poll, sleep in poll(2) on the queue
//   bench_wake memory [--port memif|tcp]  Writes; spins on the memory that the other end writes
//   bench_wake tcp-event                  kernel TCP, blocking in recv
//   bench_wake tcp-memory                 kernel TCP; one thread blocks in recv and stores, one
//   spins
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "bench/e2e/ends.h"
#include "bench/e2e/pin.h"

using namespace urnic;
using namespace urnic::bench;

namespace {

constexpr std::uint32_t kMessage = 8;

[[noreturn]] void fail(const char* why) {
  std::fprintf(stderr, "bench_wake: %s\n", why);
  std::_Exit(1);
}

// One end of a ping-pong. Messages are numbered from 1.
struct Player {
  virtual ~Player() = default;
  virtual void send(std::uint64_t n) = 0;
  virtual void receive(std::uint64_t n) = 0;
};

// Completions by event, in the order that verbs require.
struct EventPlayer : Player {
  explicit EventPlayer(End end, std::uint64_t* m) : e(std::move(end)), memory(m) {
    for (int i = 0; i < 16; ++i) post_receive();
  }
  void post_receive() {
    const Sge sge{reinterpret_cast<std::uint64_t>(memory), kMessage, e.region.lkey()};
    if (!e.qp.post_receive({0, {&sge, 1}}).ok()) fail("receive");
  }
  void send(std::uint64_t) override {
    const Sge sge{reinterpret_cast<std::uint64_t>(memory + 8), kMessage, e.region.lkey()};
    SendRequest r;
    r.opcode = Opcode::send;
    r.flags = send_signaled;
    r.sges = {&sge, 1};
    if (!e.qp.post_send(r).ok()) fail("send");
  }
  void receive(std::uint64_t n) override {
    while (heard < n) {
      if (take()) continue;
      e.cq.arm();
      if (take()) continue;
      pollfd p{e.cq.fd(), POLLIN, 0};
      if (poll(&p, 1, 20000) != 1) fail("no event in 20 s");
      std::uint64_t count;
      if (read(e.cq.fd(), &count, sizeof count) < 0 && errno != EAGAIN) fail("event");
    }
  }
  bool take() {
    Completion c[4];
    const int n = e.cq.poll(c);
    for (int i = 0; i < n; ++i) {
      if (c[i].status != WcStatus::success) fail(to_string(c[i].status));
      if (c[i].opcode != Opcode::receive) continue;
      ++heard;
      post_receive();
    }
    return n > 0;
  }
  End e;
  std::uint64_t* memory;
  std::uint64_t heard = 0;
};

// Like perftest's ib_write_lat: post, spin on memory, poll for the own completion.
struct MemoryPlayer : Player {
  explicit MemoryPlayer(End end, std::uint64_t* m) : e(std::move(end)), memory(m) {}
  void send(std::uint64_t n) override {
    if (n > 1) {
      Completion c;
      while (e.cq.poll({&c, 1}) == 0) {
      }
      if (c.status != WcStatus::success) fail(to_string(c.status));
    }
    memory[8] = n;
    e.write(n, 64, kMessage, 0, send_inline | send_signaled);
  }
  void receive(std::uint64_t n) override {
    const std::atomic_ref<std::uint64_t> word(memory[0]);
    while (word.load(std::memory_order_acquire) != n) {
    }
  }
  End e;
  std::uint64_t* memory;
};

void exchange(int fd, std::uint64_t* n, bool read_it) {
  auto* b = reinterpret_cast<char*>(n);
  for (std::size_t done = 0; done < sizeof *n;) {
    const ssize_t k = read_it ? recv(fd, b + done, sizeof *n - done, 0)
                              : ::send(fd, b + done, sizeof *n - done, MSG_NOSIGNAL);
    if (k <= 0) fail("the other end is gone");
    done += static_cast<std::size_t>(k);
  }
}

struct TcpPlayer : Player {
  explicit TcpPlayer(int s) : fd(s) {}
  void send(std::uint64_t n) override { exchange(fd, &n, false); }
  void receive(std::uint64_t) override {
    std::uint64_t n;
    exchange(fd, &n, true);
  }
  int fd;
};

struct TcpMemoryPlayer : TcpPlayer {
  TcpMemoryPlayer(int s, std::uint64_t total) : TcpPlayer(s) {
    std::thread([this, total] {
      for (std::uint64_t n = 0; n < total;) {
        exchange(fd, &n, true);
        word.store(n, std::memory_order_release);
      }
    }).detach();
  }
  void receive(std::uint64_t n) override {
    while (word.load(std::memory_order_acquire) != n) {
    }
  }
  std::atomic<std::uint64_t> word{0};
};

// Two connected sockets, one for each process.
void make_sockets(int* a, int* b) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t len = sizeof to;
  if (bind(listener, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 ||
      listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&to), &len) != 0) {
    fail("loopback");
  }
  *a = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(*a, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) fail("loopback");
  *b = accept(listener, nullptr, nullptr);
  const int one = 1;
  for (const int s : {*a, *b}) setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  close(listener);
}

std::span<std::uint8_t> bytes(std::vector<std::uint64_t>& words) {
  return {reinterpret_cast<std::uint8_t*>(words.data()), words.size() * 8};
}

}  // namespace

int main(int argc, char** argv) {
  EndOptions o;
  o.mtu = 9000;
  o.progress = "auto";
  std::uint64_t rounds = 10000;
  std::string what, port = "memif";
  std::vector<int> cpus;
  CLI::App app{"V4, V5: ping-pong of programs that sleep, or spin on memory"};
  app.add_option("what", what)
      ->required()
      ->check(CLI::IsMember({"event", "memory", "tcp-event", "tcp-memory"}));
  app.add_option("--port", port)->check(CLI::IsMember({"memif", "tcp"}));
  app.add_option("--rounds", rounds, "round trips")->check(CLI::Range(10, 100000000));
  app.add_option("--cpus", cpus, "the cores of the two ends")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::Range(0, CPU_SETSIZE - 1));
  CLI11_PARSE(app, argc, argv);
  const SocketDirectory directory;
  o.socket = directory.socket();
  o.kernel_tcp = port == "tcp";
  const std::uint64_t warm = rounds / 10, total = rounds + warm;
  std::vector<std::uint64_t> memory(16);
  int ends[2] = {-1, -1};
  if (what.starts_with("tcp-")) make_sockets(&ends[0], &ends[1]);
  const auto player = [&](bool server) -> std::unique_ptr<Player> {
    const int fd = ends[server ? 1 : 0];
    if (what == "tcp-event") return std::make_unique<TcpPlayer>(fd);
    if (what == "tcp-memory") return std::make_unique<TcpMemoryPlayer>(fd, total);
    End e = server ? open_server(o, bytes(memory)) : open_client(o, bytes(memory));
    if (what == "event") return std::make_unique<EventPlayer>(std::move(e), memory.data());
    return std::make_unique<MemoryPlayer>(std::move(e), memory.data());
  };
  const pid_t child = fork();
  if (child < 0) return 1;
  if (!cpus.empty()) pin_to(cpus[child == 0 ? 1 : 0]);
  if (child == 0) {
    const auto p = player(true);
    for (std::uint64_t n = 1; n <= total; ++n) {
      p->receive(n);
      p->send(n);
    }
    usleep(200000);
    std::_Exit(0);
  }
  const auto p = player(false);
  usleep(50000);  // the other end has posted its receives
  std::vector<double> half;
  half.reserve(rounds);
  double before = seconds();
  for (std::uint64_t n = 1; n <= total; ++n) {
    p->send(n);
    p->receive(n);
    const double now = seconds();
    if (n > warm) half.push_back((now - before) * 0.5e6);
    before = now;
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::sort(half.begin(), half.end());
  std::printf("%.3f %.3f %.3f\n", half[half.size() / 2], half[half.size() * 99 / 100],
              std::accumulate(half.begin(), half.end(), 0.0) / static_cast<double>(half.size()));
  std::fflush(stdout);
  std::_Exit(status == 0 ? 0 : 1);
}
