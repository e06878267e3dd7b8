// Shared by both ends of tap_test: options and reports.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/ip_address.h"
#include "interop/stream_session.h"
#include "tcp/stack.h"

namespace urnic::interop {

constexpr std::size_t kChunk = 64 * 1024;

struct Options {
  bool kernel = false;
  std::string port, rx_faults, tx_faults, capture, congestion;
  std::vector<IpPrefix> addresses;
  std::uint16_t serve = 0;
  std::uint32_t mtu = 65535;
  std::vector<std::pair<tcp::Option, std::int64_t>> tcp;
};

// Prints "tap_stream: why"; exit code 2.
[[noreturn]] void die(const std::string& why);

Instant now_of_the_clock();

// The measurements of a connection.
struct Watch {
  Instant begin = now_of_the_clock(), first, last_progress;
  Duration longest_pause;
  std::uint64_t content = 0;

  void progress(std::uint64_t now_content, Instant now) {
    if (now_content == content) return;
    if (content == 0) first = now;
    if (content != 0) longest_pause = std::max(longest_pause, now - last_progress);
    content = now_content;
    last_progress = now;
  }
};

// Prints one line of JSON for a finished conversation. `error`: how its connection failed, if it
// did.
void report(const Options& o, const Session& s, const Watch& w, std::uint64_t retransmissions,
            std::string error);
// The exit code for the reports so far.
bool any_failed();

struct Command {
  SocketAddress to;
  Job job;
};

// Reads commands from standard input.
class Input {
 public:
  Input();
  bool at_end() const { return end_; }

  // The complete lines received so far.
  std::vector<Command> take();

 private:
  std::string text_;
  bool end_ = false;
};

// Runs the end with the kernel's sockets; returns the exit code.
int run_kernel_end(const Options& o);

}  // namespace urnic::interop
