#include "interop/tap_end.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "device/driver.h"

namespace urnic::interop {
namespace {

bool failed = false;

std::optional<Command> parse_command(const std::string& line) {
  char address[80], role[40];
  unsigned long long n = 0;
  if (std::sscanf(line.c_str(), "connect %79s %39s %llu", address, role, &n) != 3) {
    return std::nullopt;
  }
  const auto to = SocketAddress::parse(address);
  const auto r = role_from_name(role);
  if (!to || !r || n == 0) return std::nullopt;
  Command c{*to, {}};
  c.job.role = *r;
  c.job.seed = n * 2654435761u + to->port;
  if (*r == Role::Echo) {
    c.job.rounds = static_cast<std::uint32_t>(n);
  } else {
    c.job.bytes = n;
  }
  return c;
}

}  // namespace

Instant now_of_the_clock() {
  return monotonic_now();
}

void die(const std::string& why) {
  std::fprintf(stderr, "tap_stream: %s\n", why.c_str());
  std::exit(2);
}

bool any_failed() {
  return failed;
}

void report(const Options& o, const Session& s, const Watch& w, std::uint64_t retransmissions,
            std::string error) {
  if (error.empty()) error = s.error();
  if (error.empty() && !s.done()) error = "ended early";
  if (!error.empty()) failed = true;
  const double seconds = static_cast<double>((now_of_the_clock() - w.begin).count_ns()) / 1e9;
  std::printf(
      "{\"side\": \"%s\", \"client\": %s, \"role\": \"%s\", \"content\": %llu, "
      "\"rounds\": %u, \"seconds\": %.4f, \"retransmissions\": %llu, "
      "\"longest_pause_ms\": %.1f, \"error\": \"%s\"}\n",
      o.kernel ? "kernel" : "urnic", s.is_client() ? "true" : "false",
      std::string(role_name(s.job().role)).c_str(), static_cast<unsigned long long>(s.content()),
      s.rounds_done(), seconds, static_cast<unsigned long long>(retransmissions),
      static_cast<double>(w.longest_pause.count_ns()) / 1e6, error.c_str());
  std::fflush(stdout);
}

Input::Input() {
  fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
}

std::vector<Command> Input::take() {
  std::vector<Command> out;
  char part[512];
  for (;;) {
    const ssize_t n = ::read(0, part, sizeof part);
    if (n == 0) end_ = true;
    if (n <= 0) break;
    text_.append(part, static_cast<std::size_t>(n));
  }
  for (std::size_t e; (e = text_.find('\n')) != text_.npos; text_.erase(0, e + 1)) {
    const auto c = parse_command(text_.substr(0, e));
    if (!c) die("not a command: " + text_.substr(0, e));
    out.push_back(*c);
  }
  return out;
}

}  // namespace urnic::interop
