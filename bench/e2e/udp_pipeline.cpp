// The other side of P17, without a protocol: datagrams of the size of RoCE's packets go from one
// process to another through the kernel's UDP on loopback, 32 with each system call, and nothing is
// done with them. With offload the call is one segmented send (UDP_SEGMENT) and one joined receive
// (UDP_GRO); without, sendmmsg and recvmmsg. Prints Gb/s of the payload that packets of PATH_MTU
// bytes would have carried, as received.
#include <errno.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/e2e/pin.h"

using namespace urnic::bench;

namespace {

constexpr unsigned kBurst = 32;
constexpr std::size_t kAround = 12 + 4;  // BTH and ICRC of a packet in the middle of a message
constexpr int kBuffer = 4 << 20;         // the size that port = udp requests

// The receiver's state, in memory shared by both processes.
struct Shared {
  std::atomic<std::uint64_t> received;
  std::atomic<int> port, stop;
};

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "udp_pipeline: %s: %s\n", what, std::strerror(errno));
  std::_Exit(1);
}

int bound_socket(sockaddr_in* at) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket");
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof kBuffer);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kBuffer, sizeof kBuffer);
  const int probe = IP_PMTUDISC_DO;
  setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe);
  *at = {};
  at->sin_family = AF_INET;
  at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof *at;
  if (bind(fd, reinterpret_cast<sockaddr*>(at), size) != 0) die("bind");
  if (getsockname(fd, reinterpret_cast<sockaddr*>(at), &size) != 0) die("getsockname");
  return fd;
}

// The messages of one burst, each with its own buffer.
class Burst {
 public:
  explicit Burst(std::size_t bytes) : memory_(kBurst * bytes, 0x5a) {
    for (unsigned i = 0; i < kBurst; ++i) {
      parts_[i] = {memory_.data() + i * bytes, bytes};
      messages_[i] = {};
      messages_[i].msg_hdr.msg_iov = &parts_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
  }
  void send_to(sockaddr_in* to) {
    for (mmsghdr& m : messages_) {
      m.msg_hdr.msg_name = to;
      m.msg_hdr.msg_namelen = sizeof *to;
    }
  }
  mmsghdr* messages() { return messages_.data(); }

 private:
  std::vector<std::uint8_t> memory_;
  std::array<iovec, kBurst> parts_;
  std::array<mmsghdr, kBurst> messages_;
};

// One message of up to 64 segments.
void receive_joined(int fd, std::size_t bytes, Shared* shared) {
  const int on = 1;
  if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0) die("UDP_GRO");
  std::vector<std::uint8_t> memory(65536);
  while (shared->stop == 0) {
    const ssize_t n = recv(fd, memory.data(), memory.size(), MSG_DONTWAIT);
    if (n > 0) shared->received += static_cast<std::size_t>(n) / bytes;
  }
}

void receive_side(std::size_t bytes, bool offload, Shared* shared) {
  sockaddr_in at;
  const int fd = bound_socket(&at);
  if (offload) {
    shared->port = ntohs(at.sin_port);
    return receive_joined(fd, bytes, shared);
  }
  shared->port = ntohs(at.sin_port);
  Burst burst(bytes);
  while (shared->stop == 0) {
    const int n = recvmmsg(fd, burst.messages(), kBurst, MSG_DONTWAIT, nullptr);
    if (n > 0) shared->received += static_cast<unsigned>(n);
  }
}

// 32 segments with one call, or as many as one IP packet holds. Returns how many.
unsigned send_segmented(int fd, std::size_t bytes, sockaddr_in* to, mmsghdr* messages) {
  const unsigned n = std::min<unsigned>(kBurst, static_cast<unsigned>(65000 / bytes));
  std::array<iovec, kBurst> parts;
  for (unsigned i = 0; i < n; ++i) parts[i] = *messages[i].msg_hdr.msg_iov;
  const auto segment = static_cast<std::uint16_t>(bytes);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof segment)] = {};
  msghdr m{};
  m.msg_name = to;
  m.msg_namelen = sizeof *to;
  m.msg_iov = parts.data();
  m.msg_iovlen = n;
  m.msg_control = control;
  m.msg_controllen = sizeof control;
  cmsghdr* const c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = IPPROTO_UDP;
  c->cmsg_type = UDP_SEGMENT;
  c->cmsg_len = CMSG_LEN(sizeof segment);
  std::memcpy(CMSG_DATA(c), &segment, sizeof segment);
  return sendmsg(fd, &m, MSG_DONTWAIT) > 0 ? n : 0;
}

// Never more than `window` ahead, like a requester: datagrams lost at a full socket do not count.
double send_side(std::size_t bytes, bool offload, std::uint64_t window, double length,
                 Shared* shared) {
  sockaddr_in own, to;
  const int fd = bound_socket(&own);
  while (shared->port == 0) usleep(1000);
  to = own;
  to.sin_port = htons(static_cast<std::uint16_t>(shared->port));
  Burst burst(bytes);
  burst.send_to(&to);
  std::uint64_t sent = 0, before = 0;
  const double begin = seconds(), warm = begin + length / 10;
  double from = 0, now = begin, heard = begin;
  std::uint64_t last = 0;
  while (from == 0 || now - from < length) {
    const std::uint64_t there = shared->received;
    if (there != last) {
      last = there;
      heard = now;
    } else if (now - heard > 0.01) {
      sent = there;  // some were lost: do not wait for them
      heard = now;
    }
    if (sent - there + kBurst <= window) {
      const int n = offload ? static_cast<int>(send_segmented(fd, bytes, &to, burst.messages()))
                            : sendmmsg(fd, burst.messages(), kBurst, MSG_DONTWAIT);
      if (n > 0) sent += static_cast<unsigned>(n);
    }
    now = seconds();
    if (from == 0 && now > warm) {
      from = now;
      before = shared->received;
    }
  }
  return static_cast<double>(shared->received - before) / (now - from);
}

}  // namespace

int main(int argc, char** argv) {
  const bool single = argc == 4 && std::strcmp(argv[3], "single") == 0;
  if (argc != 3 && !single) {
    std::fprintf(stderr, "usage: bench_udp_pipeline PATH_MTU SECONDS [single]\n");
    return 2;
  }
  const std::size_t pmtu = std::strtoul(argv[1], nullptr, 10);
  const double length = std::strtod(argv[2], nullptr);
  if (pmtu < 256 || pmtu > 4096 || !(length > 0 && length <= 3600)) {
    std::fprintf(stderr, "bench_udp_pipeline: PATH_MTU is 256 to 4096, SECONDS up to 3600\n");
    return 2;
  }
  constexpr std::uint64_t kWindow = 256;  // SendRules::window
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("memory");
  auto* const shared = new (memory) Shared{};
  const pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) {
    pin_to(1);
    receive_side(pmtu + kAround, !single, shared);
    std::_Exit(0);
  }
  pin_to(0);
  const double rate = send_side(pmtu + kAround, !single, kWindow, length, shared);
  shared->stop = 1;
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("%.3f\n", rate * static_cast<double>(pmtu) * 8e-9);
  return status == 0 ? 0 : 1;
}
