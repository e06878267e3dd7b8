// The counterpart of P5: a ping-pong of 8 bytes, or of a given size, over kernel TCP on loopback,
// both ends pinned, spinning on non-blocking receive, TCP_NODELAY. Prints the half round trip in
// microseconds: p50 and p99, or, with `json`, its distribution.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/e2e/half_trips.h"
#include "bench/e2e/pin.h"

using namespace urnic::bench;

namespace {

bool exchange(int fd, std::vector<char>& b, bool read_it) {
  std::size_t done = 0;
  while (done < b.size()) {
    const std::size_t left = b.size() - done;
    const ssize_t n = read_it ? recv(fd, b.data() + done, left, MSG_DONTWAIT)
                              : send(fd, b.data() + done, left, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) done += static_cast<std::size_t>(n);
    if (n == 0 || (n < 0 && errno != EAGAIN)) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc >= 2 ? std::atoi(argv[1]) : 0;
  const int bytes = argc >= 3 ? std::atoi(argv[2]) : 8;
  const bool json = argc == 4 && std::strcmp(argv[3], "json") == 0;
  if (rounds < 100 || bytes < 1 || bytes > 1 << 24 || (argc > 3 && !json)) {
    std::fprintf(stderr,
                 "usage: bench_tcp_pingpong ROUNDS [BYTES [json]] (at least 100 rounds, up to "
                 "16777216 bytes)\n");
    return 2;
  }
  std::vector<char> message(static_cast<std::size_t>(bytes));
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t len = sizeof a;
  if (bind(listener, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&a), &len) != 0) {
    std::perror("tcp_pingpong");
    return 1;
  }
  const int one = 1;
  const pid_t child = fork();
  if (child == 0) {
    pin_to(1);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) _exit(1);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    while (exchange(fd, message, true) && exchange(fd, message, false)) {
    }
    _exit(0);
  }
  pin_to(0);
  const int fd = accept(listener, nullptr, nullptr);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  std::vector<double> half;
  half.reserve(static_cast<std::size_t>(rounds));
  for (int i = -rounds / 10; i < rounds; ++i) {
    const double from = seconds();
    if (!exchange(fd, message, false) || !exchange(fd, message, true)) return 1;
    if (i >= 0) half.push_back((seconds() - from) * 0.5e6);
  }
  close(fd);
  waitpid(child, nullptr, 0);
  const HalfTrips trips(std::move(half));
  if (json) {
    trips.print_json();
  } else {
    std::printf("%.3f %.3f\n", trips.at(50), trips.at(99));
  }
  return 0;
}
