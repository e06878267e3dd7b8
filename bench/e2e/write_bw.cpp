// P4, P6, P12, P17: RDMA Writes over one connection or several between two processes, each on its
// own core: own TCP or RoCE over memif, iWARP over the kernel's TCP, or RoCE over its UDP; CRC on.
// Prints Gb/s of payload, acknowledged by the peer. Afterwards the receiver compares every byte of
// some passes over the memory.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/e2e/ends.h"
#include "bench/e2e/pin.h"

using namespace urnic;
using namespace urnic::bench;

namespace {

struct Options {
  EndOptions end;
  double seconds = 2, warm_up = 0.2;
  std::uint32_t size = 65536;
  std::uint32_t depth = 16;        // Writes outstanding, of all connections
  std::uint32_t signal_every = 1;  // Writes of a connection per completion
  std::uint32_t window = 1 << 20;  // bytes of memory at each end, used cyclically
  bool alone = false;              // poll after each post, so that each Write leaves by itself
  bool json = false;
};

// After the window: the number of the pass, written by the sender at the end of the pass. The
// receiver writes it back, one byte further on, after comparing the pass. The third byte is written
// to wait for the Writes before it.
constexpr std::size_t kFlag = 64;
// Pass 1 is the result of the measurement. The following passes have their own bytes, and each is
// compared before the next.
constexpr std::uint8_t kPasses = 16;

// The counters of one end, all its connections together.
struct Counters {
  std::uint64_t downgrades = 0, terminates = 0, refused = 0;
  std::uint64_t retransmits = 0, rto_expirations = 0, segments_out = 0, segments_in = 0;
};

Counters counters_of(const Options& o, End& e) {
  Counters sum;
  for (std::uint32_t i = 0; i < o.end.connections; ++i) {
    const IwarpStats s = e.connection(i).stats().iwarp;
    sum.downgrades += s.downgrades;
    sum.terminates += s.ddp.terminates_sent + s.ddp.terminates_received;
    sum.refused += s.recovery_attempts;
    sum.retransmits += s.tcp.retransmits;
    sum.rto_expirations += s.tcp.rto_expirations;
    sum.segments_out += s.tcp.segments_out;
    sum.segments_in += s.tcp.segments_in;
  }
  return sum;
}

// `seen` is in memory shared by both processes, for the sender's report.
int receive_side(const Options& o, Counters* seen) {
  std::vector<std::uint8_t> memory(o.window + kFlag);
  End e = open_server(o.end, memory);
  volatile std::uint8_t* const done = &memory[o.window];
  std::vector<Completion> got(o.depth);
  bool right = true;
  for (std::uint8_t pass = 1; pass <= kPasses; ++pass) {
    for (std::uint64_t spins = 0; *done != pass; ++spins) {
      e.device.progress();
      if ((spins & 0xfffff) == 0xfffff && e.qp.state() == QpState::error) return 1;
    }
    if (right && !has_pattern({memory.data(), o.window}, pass - 1u)) {
      std::fprintf(stderr, "write_bw: pass %u: the memory does not hold what was written\n", pass);
      right = false;
    }
    e.cq.poll(got);
    memory[o.window + 2] = pass;
    e.write(pass, o.window + 2, 1, o.window + 1, send_signaled);
  }
  *seen = counters_of(o, e);
  // The acknowledgment of the last Write must still be sent.
  const double until = seconds() + 0.2;
  while (seconds() < until) e.device.progress();
  return right ? 0 : 1;
}

// The sending end: the numbers of posted and completed Writes. The connections take turns. A
// completion also covers the earlier Writes of its connection without one.
class Sender {
 public:
  Sender(const Options& o, End& e) : o_(o), e_(e), got_(o.depth), covered_(o.end.connections) {}

  // The next Write of the walk through the window, if there is room.
  void write_next(std::uint64_t slot) {
    const std::uint64_t at = slot * o_.size;
    post(at, o_.size, (turn_ + 1) % o_.signal_every == 0);
  }
  // One byte at the same place of both ends, with a completion.
  void write_flag(std::uint64_t at) {
    while (!has_room()) poll();
    post(at, 1, true);
  }
  // Waits for everything posted: a byte on each connection also covers the Writes without a
  // completion.
  void finish() {
    for (std::uint32_t i = 0; i < o_.end.connections; ++i) write_flag(o_.window + 2);
    while (done < posted) poll();
  }
  bool has_room() const { return posted - done < o_.depth; }
  // Returns true if there were completions.
  bool poll() {
    const int n = e_.cq.poll(got_);
    for (int i = 0; i < n; ++i) {
      const Completion& c = got_[static_cast<std::size_t>(i)];
      if (c.status != WcStatus::success) {
        std::fprintf(stderr, "write_bw: %s\n", to_string(c.status));
        std::_Exit(1);
      }
      const std::uint64_t covers = c.wr_id / covered_.size() + 1;
      std::uint64_t& covered = covered_[c.wr_id % covered_.size()];
      done += covers - covered;
      covered = covers;
    }
    return n != 0;
  }

  std::uint64_t posted = 0, done = 0;

 private:
  void post(std::uint64_t at, std::uint32_t length, bool signaled) {
    e_.write(posted++, at, length, at, signaled ? std::uint32_t{send_signaled} : 0u, connection_);
    if (++connection_ == o_.end.connections) {
      connection_ = 0;
      ++turn_;
    }
  }

  const Options& o_;
  End& e_;
  std::vector<Completion> got_;
  std::vector<std::uint64_t> covered_;  // Writes of each connection
  std::uint32_t connection_ = 0;        // of the next Write
  std::uint64_t turn_ = 0;              // Writes that it had
};

// The receiver compares each pass; the first is the result of the measurement.
void have_it_compared(const Options& o, std::vector<std::uint8_t>& memory, Sender& s) {
  const std::uint64_t slots = o.window / o.size;
  volatile std::uint8_t* const compared = &memory[o.window + 1];
  for (std::uint8_t pass = 1; pass <= kPasses; ++pass) {
    if (pass != 1) {
      fill_pattern({memory.data(), o.window}, pass - 1u);
      for (std::uint64_t slot = 0; slot < slots; ++slot) {
        while (!s.has_room()) s.poll();
        s.write_next(slot);
      }
    }
    memory[o.window] = pass;
    // A flag is placed when it arrives, even if earlier data was lost and arrives later (E-12). So
    // wait until all data is there, because the receiver compares the memory when it sees the flag.
    s.finish();
    s.write_flag(o.window);
    const double give_up = seconds() + 10;
    while (s.done < s.posted || *compared != pass) {
      s.poll();
      if (seconds() > give_up) {
        std::fprintf(stderr, "write_bw: the receiver does not answer\n");
        std::_Exit(1);
      }
    }
  }
}

nlohmann::json send_side(const Options& o) {
  std::vector<std::uint8_t> memory(o.window + kFlag);
  fill_pattern({memory.data(), o.window});
  End e = open_client(o.end, memory);
  const std::uint64_t slots = o.window / o.size;
  Sender s(o, e);
  std::uint64_t counted = 0;
  double from = 0, now = seconds();
  const double warm = now + o.warm_up;
  for (;;) {
    while (s.has_room()) {
      s.write_next(s.posted % slots);
      if (o.alone) break;
    }
    if (!s.poll()) continue;
    now = seconds();
    if (from == 0 && now > warm) {
      from = now;
      counted = s.done;
    }
    if (from != 0 && now - from > o.seconds) break;
  }
  counted = s.done - counted;
  const double took = now - from;
  s.finish();
  have_it_compared(o, memory, s);
  const double rate = static_cast<double>(counted) * o.size * 8e-9 / took;
  const Counters seen = counters_of(o, e);
  for (std::uint32_t i = 0; i < o.end.connections; ++i) e.connection(i).disconnect();
  return {{"gbits", rate},
          {"messages", counted},
          {"seconds", took},
          {"retransmits", seen.retransmits},
          {"rto_expirations", seen.rto_expirations},
          {"segments_out", seen.segments_out},
          {"segments_in", seen.segments_in}};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"P4, P6, P12, P17: RDMA Write bandwidth"};
  app.add_option("--mtu", o.end.mtu, "IP MTU")->check(CLI::Range(576, 65000));
  app.add_option("--seconds", o.seconds, "length of the measurement")
      ->check(CLI::Range(0.05, 3600.));
  app.add_option("--warm-up", o.warm_up, "seconds before it begins")->check(CLI::Range(0., 60.));
  app.add_option("--size", o.size, "bytes of a Write")->check(CLI::Range(1, 1 << 24));
  app.add_option("--depth", o.depth, "Writes outstanding")->check(CLI::Range(1, 256));
  app.add_option("--signal-every", o.signal_every,
                 "Writes of a connection that have one completion between them")
      ->check(CLI::Range(1, 128));
  app.add_option("--connections", o.end.connections, "they take turns, and share the depth")
      ->check(CLI::Range(1, 64));
  app.add_flag("--alone", o.alone, "poll after each post, so that each Write leaves by itself");
  app.add_option("--window", o.window, "bytes of memory at each end")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--progress", o.end.progress, "who drives the engines: poll or auto");
  app.add_flag("--roce", o.end.roce, "RoCE instead of iWARP");
  app.add_flag("--udp", o.end.kernel_udp,
               "over the kernel's UDP on loopback instead of memif; RoCE");
  app.add_flag("--tcp", o.end.kernel_tcp,
               "over the kernel's TCP on loopback instead of memif; iWARP");
  std::string faults;
  app.add_option("--faults", faults, "what the wire does to the Writes (docs/fault.md)");
  app.add_flag("--json", o.json, "one JSON object instead of one number");
  CLI11_PARSE(app, argc, argv);
  if ((o.signal_every > 1 ? 2 : 1) * o.signal_every * o.end.connections > o.depth) {
    std::fprintf(stderr,
                 "write_bw: --depth is at least the connections times twice --signal-every\n");
    return 2;
  }
  o.end.roce |= o.end.kernel_udp;
  if (o.end.kernel_tcp && o.end.roce) {
    std::fprintf(stderr, "write_bw: --tcp is iWARP alone\n");
    return 2;
  }
  o.window = std::max(o.window / o.size, 1u) * o.size;
  const SocketDirectory directory;
  o.end.socket = directory.socket();
  void* const shared =
      mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  Counters* const seen = static_cast<Counters*>(shared);
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    pin_to(1);
    std::_Exit(receive_side(o, seen));
  }
  pin_to(0);
  o.end.faults = faults;
  nlohmann::json report = send_side(o);
  int theirs = 0;
  waitpid(child, &theirs, 0);
  if (theirs != 0) return 1;
  if (o.json) {
    report["refused"] = seen->refused;
    report["downgrades"] = seen->downgrades;
    report["terminates"] = seen->terminates;
    std::printf("%s\n", report.dump().c_str());
  } else {
    std::printf("%.3f\n", report["gbits"].get<double>());
  }
  return 0;
}
