#include "cli/runtime.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <nlohmann/json.hpp>

namespace urnic::cli {
namespace {

std::atomic<bool> stop_flag{false}, finish_flag{false};
bool json_complaints = false;  // set once at the beginning
int stop_event = -1;
constexpr std::size_t kMostShown = 400;  // of one line

std::atomic<std::int64_t> first_signal_ms{0};
// `timeout` and shells signal a process and then its group: that is one stop request that arrives
// twice.
std::int64_t same_request = 0;

void on_signal(int number) {
  const int keep = errno;
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  const std::int64_t now = std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
  std::int64_t first = 0;
  if (!first_signal_ms.compare_exchange_strong(first, now) && now - first >= same_request) {
    signal(number, SIG_DFL);
    raise(number);  // takes effect when this handler has returned: the user insists
  }
  stop_flag = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(stop_event, &one, sizeof one);
  errno = keep;
}

}  // namespace

std::string printable(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : lead >= 0xe0 && lead < 0xf0 ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    bool fine = length != 0 && i + length <= text.size() && lead >= 0x20 && lead != 0x7f;
    for (std::size_t k = 1; fine && k < length; ++k) {
      fine = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    }
    // U+0080 to U+009F are control characters too.
    if (fine && lead == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0) fine = false;
    out += fine ? text.substr(i, length) : "?";
    i += fine ? length : 1;
  }
  return out;
}

std::string error_text_in(const std::string& private_data) {
  return printable(
      private_data.substr(0, private_data.find_last_not_of(std::string(" \0", 2)) + 1));
}

void complain_as_json(bool json) {
  json_complaints = json;
}

void complain(const std::string& command, const std::string& message) {
  if (json_complaints) {
    nlohmann::ordered_json j;
    if (!command.empty()) j["command"] = command;
    j["error"] = message;
    const std::string text = j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    std::fprintf(stderr, "%s\n", text.c_str());
    return;
  }
  std::string line = command.empty() ? "urnic: " : "urnic " + command + ": ";
  for (const char c : message) line += c == '\n' || c == '\t' ? ' ' : c;
  while (!line.empty() && line.back() == ' ') line.pop_back();
  // A name of thousands of characters must not hide the reason.
  if (line.size() > kMostShown) {
    line = line.substr(0, kMostShown / 2) + " ... " + line.substr(line.size() - kMostShown / 2);
  }
  std::fprintf(stderr, "%s\n", printable(line).c_str());
}

namespace {

constexpr int kHandled[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
struct sigaction before[std::size(kHandled)];

}  // namespace

void restore_signals() {
  for (std::size_t i = 0; i < std::size(kHandled); ++i) sigaction(kHandled[i], &before[i], nullptr);
}

void install_stop_signals(std::int64_t same_request_ms) {
  same_request = same_request_ms;
  for (std::size_t i = 0; i < std::size(kHandled); ++i) sigaction(kHandled[i], nullptr, &before[i]);
  if (stop_event < 0) stop_event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

void install_finish_signal() {
  struct sigaction action {};
  action.sa_handler = [](int) { finish_flag = true; };
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
}

bool finish_requested() {
  return finish_flag.load(std::memory_order_relaxed);
}

bool stop_requested() {
  return stop_flag.load(std::memory_order_relaxed);
}

int stop_fd() {
  return stop_event;
}

double now_seconds() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(t).count();
}

bool Idle::ripe() {
  const auto now = std::chrono::steady_clock::now();
  if (since_ == std::chrono::steady_clock::time_point{}) since_ = now;
  return now - since_ >= spin_;
}

Result<void> pin_to_cpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu < 0 || cpu >= CPU_SETSIZE)
    return Error{Errc::invalid_argument, "--cpu " + std::to_string(cpu) + ": no such CPU"};
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    return Error{Errc::invalid_argument,
                 "cannot run on CPU " + std::to_string(cpu) + ": " +
                     (errno == EINVAL ? "not available to this process" : std::strerror(errno))};
  }
  return {};
}

}  // namespace urnic::cli
