// Shared by all commands: exit codes, one-line errors, stopping on a signal, sleeping while idle.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "urnic/verbs.h"

namespace urnic::cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,  // the operation was tried and failed
  kExitUsage = 2,   // the arguments or the configuration are wrong; nothing was tried
};

// Makes text from other parties safe for a terminal: control characters and invalid UTF-8 become
// '?'.
std::string printable(const std::string& text);
// Private data of a peer as text, without the zero bytes that RoCE pads it with.
std::string error_text_in(const std::string& private_data);

// Prints "urnic <command>: <message>" as one line to standard error. If results are JSON, prints an
// object {"command": ..., "error": ...} instead, also on one line.
void complain_as_json(bool json);
void complain(const std::string& command, const std::string& message);

// SIGINT, SIGTERM and SIGHUP request the running command to stop. A signal that arrives more than
// `same_request_ms` after the first one ends the process at once. SIGPIPE is ignored.
void install_stop_signals(std::int64_t same_request_ms = 1000);
// Restores the signal handlers for a program that replaces this process.
void restore_signals();
bool stop_requested();
// Readable after a stop request.
int stop_fd();

// SIGUSR1 requests a repeating command to end after the current repetition.
void install_finish_signal();
bool finish_requested();

// Seconds of a monotonic clock.
double now_seconds();

// Decides when a polling loop may sleep. Use it as: if (work) idle.reset(); else if (idle.ripe())
// sleep.
class Idle {
 public:
  // `spin_us` is the setting for the library's thread. A command that measures or moves data polls
  // for at least 50 us in any case.
  explicit Idle(std::int64_t spin_us) : spin_(std::max<std::int64_t>(spin_us, 50)) {}
  void reset() { since_ = {}; }
  // Call it after a turn without work; true once the loop has been idle for the spin time.
  bool ripe();

 private:
  std::chrono::microseconds spin_;
  std::chrono::steady_clock::time_point since_{};
};

// Runs the calling thread (and the threads it starts) on one CPU. The error is one line.
Result<void> pin_to_cpu(int cpu);

}  // namespace urnic::cli
