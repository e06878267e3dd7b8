// What every command shares: exit codes, one-line errors, stopping by signal, sleeping when there
// is nothing to do.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "urnic/verbs.h"

namespace urnic::cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,  // it was tried and did not work
  kExitUsage = 2,   // the arguments or the configuration are wrong; nothing was tried
};

// Text that others may have written, fit for a terminal: control characters and what is no UTF-8
// become '?'.
std::string printable(const std::string& text);
// Private data of a peer as text, without the zeroes that RoCE fills it up with.
std::string said_in(const std::string& private_data);

// Prints "urnic <command>: <message>" as one line to standard error; or, where results are JSON, an
// object {"command": ..., "error": ...} in its place, on one line as well.
void complain_as_json(bool json);
void complain(const std::string& command, const std::string& message);

// SIGINT, SIGTERM and SIGHUP ask the running command to stop; one that comes later than
// `same_request_ms` after the first ends the process at once. SIGPIPE is ignored.
void install_stop_signals(std::int64_t same_request_ms = 1000);
// As they were when we began, for a program that takes our place.
void restore_signals();
bool stop_requested();
// Readable once a stop was requested.
int stop_fd();

// SIGUSR1 asks a command that repeats something to end after what it is doing.
void install_finish_signal();
bool finish_requested();

// Seconds of a clock that does not jump.
double now_seconds();

// Decides when a polling loop may sleep. Used as: if (work) idle.reset(); else if (idle.ripe())
// sleep.
class Idle {
 public:
  // The setting is of the library's thread; a command that measures or moves data looks itself for
  // a while in any case.
  explicit Idle(std::int64_t spin_us) : spin_(std::max<std::int64_t>(spin_us, 50)) {}
  void reset() { since_ = {}; }
  // Nothing was done; true once that has been so for the spinning time.
  bool ripe();

 private:
  std::chrono::microseconds spin_;
  std::chrono::steady_clock::time_point since_{};
};

// Run the calling thread (and those it starts) on one CPU. The error is one line.
Result<void> pin_to_cpu(int cpu);

}  // namespace urnic::cli
