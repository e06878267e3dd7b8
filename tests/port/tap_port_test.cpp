#include "port/tap_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_tun.h>
#include <netinet/tcp.h>

#include <atomic>
#include <thread>

#include "base/inet_checksum.h"
#include "port/memif_check.h"
#include "port/netns_check.h"
#include "port/port_check.h"

namespace urnic::port {
namespace {

using check::Bytes;
using ::testing::HasSubstr;

std::string error_of(const std::string& spec) {
  auto p = Port::open(spec);
  return p.ok() ? "(opened)" : p.error();
}

#define RUN_WITH_TAP(body)                                                       \
  do {                                                                           \
    if (access("/dev/net/tun", R_OK | W_OK) != 0) {                              \
      GTEST_SKIP() << "/dev/net/tun cannot be opened: " << std::strerror(errno); \
    }                                                                            \
    RUN_IN_NETWORK_NAMESPACE(body);                                              \
  } while (false)

#define RETURN_UNLESS(condition) \
  if (!(condition)) return std::string(#condition) + " failed at line " + std::to_string(__LINE__)

// An ARP request from 10.9.0.2 for the kernel's address.
Bytes arp_request() {
  Bytes b(60);
  std::fill(b.begin(), b.begin() + 6, 0xff);
  const std::uint8_t mac[] = {2, 0, 0, 0, 0, 2};
  std::memcpy(&b[6], mac, 6);
  const std::uint8_t rest[] = {8, 6, 0, 1, 8, 0, 6, 4, 0, 1};
  std::memcpy(&b[12], rest, sizeof rest);
  std::memcpy(&b[22], mac, 6);
  const std::uint8_t ips[] = {10, 9, 0, 2, 0, 0, 0, 0, 0, 0, 10, 9, 0, 1};
  std::memcpy(&b[28], ips, sizeof ips);
  return b;
}

bool is_arp_reply(const Bytes& b) {
  return b.size() >= 42 && load_be16(&b[12]) == 0x0806 && b[21] == 2 && b[31] == 1;
}

std::string expect_arp_answer(Port& p) {
  // The kernel drops requests that arrive before its interface is ready: repeat it every second.
  for (int attempt = 0; attempt < 20; ++attempt) {
    RETURN_UNLESS(check::send_one(p, 0, arp_request()));
    const std::uint64_t end = check::monotonic_ms() + 1000;
    while (check::monotonic_ms() < end) {
      if (is_arp_reply(check::receive_one(p, 0, 1))) return "";
      check::sleep_on(p, 0, 50);
    }
  }
  return "no ARP reply";
}

TEST(TapPort, TheKernelAnswers) {
  RUN_WITH_TAP([]() -> std::string {
    auto p = Port::open("tap:name=u0,mtu=1400");
    if (!p.ok()) return p.error();
    RETURN_UNLESS(p->info().max_frame == 1414);
    RETURN_UNLESS(p->info().link_up == 1);
    RETURN_UNLESS(check::interface_up("u0", "10.9.0.1"));
    return expect_arp_answer(*p);
  });
}

TEST(TapPort, TakesOverADescriptorWithAndWithoutTheHeader) {
  for (const int header : {0, static_cast<int>(IFF_VNET_HDR)}) {
    RUN_WITH_TAP([&]() -> std::string {
      const int fd = open("/dev/net/tun", O_RDWR);
      ifreq r{};
      std::strcpy(r.ifr_name, "given");
      r.ifr_flags = static_cast<short>(IFF_TAP | IFF_NO_PI | header);
      RETURN_UNLESS(ioctl(fd, TUNSETIFF, &r) == 0);
      RETURN_UNLESS(check::interface_up("given", "10.9.0.1"));
      auto p = Port::open("tap:mtu=1500,fd=" + std::to_string(fd));
      if (!p.ok()) return p.error();
      if (std::string wrong = expect_arp_answer(*p); !wrong.empty()) return wrong;
      *p = Port();
      RETURN_UNLESS(fcntl(fd, F_GETFD) == -1);  // the port must have closed it
      return "";
    });
  }
}

TEST(TapPort, WrongDescriptorsAreRefusedAndLeftOpen) {
  EXPECT_THAT(error_of("tap:fd=0,name=x"), HasSubstr("either name= or fd="));
  const int fd = open("/dev/null", O_RDWR);
  EXPECT_THAT(error_of("tap:fd=" + std::to_string(fd)), HasSubstr("not a TAP descriptor"));
  EXPECT_NE(fcntl(fd, F_GETFD), -1);
  close(fd);
  RUN_WITH_TAP([]() -> std::string {
    const int tun = open("/dev/net/tun", O_RDWR);
    ifreq r{};
    r.ifr_flags = static_cast<short>(IFF_TUN | IFF_NO_PI);
    RETURN_UNLESS(ioctl(tun, TUNSETIFF, &r) == 0);
    const std::string e = error_of("tap:fd=" + std::to_string(tun));
    if (e.find("TUN") == std::string::npos) return e;
    RETURN_UNLESS(fcntl(tun, F_GETFD) != -1);
    return "";
  });
}

TEST(TapPort, ErrorsAreOneClearLine) {
  EXPECT_THAT(error_of("tap:name=averyveryverylongname"), HasSubstr("15"));
  EXPECT_THAT(error_of("tap:mtu=9"), HasSubstr("68 to"));
  RUN_WITH_TAP([]() -> std::string {
    auto first = Port::open("tap:name=u0");
    if (!first.ok()) return first.error();
    const std::string busy = error_of("tap:name=u0");
    if (busy.find("in use by another program") == std::string::npos) return busy;
    const std::string other = error_of("tap:name=lo");
    if (other.find("not a single-queue TAP interface") == std::string::npos) return other;
    return "";
  });
}

// Without the capability: in a child that has dropped it.
TEST(TapPort, MissingPrivilegesAreExplained) {
  if (geteuid() != 0 && access("/dev/net/tun", R_OK | W_OK) == 0) {
    EXPECT_THAT(error_of("tap:name=u0"), HasSubstr("unshare -Urn"));
    return;
  }
  if (geteuid() != 0) {
    EXPECT_THAT(error_of("tap:name=u0"), HasSubstr("chmod 0666 /dev/net/tun"));
    return;
  }
  check::Child child([] {
    if (setresuid(65534, 65534, 65534) != 0) return 2;
    const std::string e = error_of("tap:name=u0");
    // It depends on the permissions of the device which of the two is reported.
    return e.find("unshare -Urn") != std::string::npos ||
                   e.find("chmod 0666 /dev/net/tun") != std::string::npos
               ? 0
               : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(TapPort, ADeletedInterfaceTakesTheLinkDownAndDoesNotSpin) {
  RUN_WITH_TAP([]() -> std::string {
    auto p = Port::open("tap:name=u0");
    if (!p.ok()) return p.error();
    RETURN_UNLESS(system("ip link del u0") == 0);
    check::receive_one(*p, 0, 10);
    RETURN_UNLESS(p->info().link_up == 0);
    int fd = -1;
    RETURN_UNLESS(!p->arm(0) && p->wait_fds(0, &fd, 1) == 0);
    RETURN_UNLESS(check::send_one(*p, 0, arp_request()));
    RETURN_UNLESS(p->stats().tx_dropped == 1);
    return "";
  });
}

TEST(TapPort, AnInterfaceGoingDownAndUpIsDetected) {
  RUN_WITH_TAP([]() -> std::string {
    auto p = Port::open("tap:name=u0");
    if (!p.ok()) return p.error();
    const auto epoch = p->info().link_epoch;
    RETURN_UNLESS(system("ip link set u0 down") == 0);
    RETURN_UNLESS(check::send_one(*p, 0, arp_request()));
    RETURN_UNLESS(p->stats().tx_dropped == 1);
    RETURN_UNLESS(p->info().link_up == 0);
    RETURN_UNLESS(system("ip link set u0 up") == 0);
    const std::uint64_t end = check::monotonic_ms() + check::kSoonMs;
    while (p->info().link_up == 0 && check::monotonic_ms() < end) check::receive_one(*p, 0, 0);
    RETURN_UNLESS(p->info().link_up == 1);
    RETURN_UNLESS(p->info().link_epoch == epoch + 1);
    return "";
  });
}

// proves: E-43
TEST(TapPort, ASleeperIsWokenWhenTheInterfaceOrItsCarrierIsLost) {
  RUN_WITH_TAP([]() -> std::string {
    auto p = Port::open("tap:name=u0");
    if (!p.ok()) return p.error();
    const auto sleep_until = [&](int up) {
      const std::uint64_t end = check::monotonic_ms() + check::kSoonMs;
      while (p->info().link_up != up && check::monotonic_ms() < end) {
        check::receive_one(*p, 0, 0);
        check::sleep_on(*p, 0, 200);
      }
      return p->info().link_up == up;
    };
    for (const char* what : {"down", "carrier off"}) {
      const std::string set = "ip link set u0 ";
      RETURN_UNLESS(sleep_until(1));
      RETURN_UNLESS(system((set + what).c_str()) == 0);
      RETURN_UNLESS(sleep_until(0));
      RETURN_UNLESS(system((set + (what[0] == 'd' ? "up" : "carrier on")).c_str()) == 0);
      RETURN_UNLESS(sleep_until(1));
    }
    return "";
  });
}

// Two kernels (network namespaces) connected by two TAP ports with a forwarder in between, which
// sees the frames that an engine would see.
class Forwarder {
 public:
  Forwarder(Port& a, Port& b) : a_(a), b_(b) {}
  void run(const std::atomic<bool>& stop) {
    while (!stop.load()) {
      if (!move(a_, b_) && !move(b_, a_)) {
        if (a_.arm(0) || b_.arm(0)) continue;
        pollfd p[2] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}};
        a_.wait_fds(0, &p[0].fd, 1);
        b_.wait_fds(0, &p[1].fd, 1);
        poll(p, 2, 20);
        a_.disarm(0);
        b_.disarm(0);
      }
    }
  }
  std::uint32_t largest() const { return largest_; }
  std::uint64_t partial() const { return partial_; }

 private:
  bool move(Port& from, Port& to) {
    Frame in[kBurst], out[kBurst];
    const unsigned n = from.rx_burst(0, in, kBurst);
    if (n == 0) return false;
    const unsigned m = to.tx_reserve(0, to.info().max_frame, out, n);
    for (unsigned i = 0; i < m; ++i) {
      const Bytes b = check::joined(in[i]);
      std::memcpy(out[i].data[0], b.data(), b.size());
      out[i].len[0] = static_cast<std::uint32_t>(b.size());
      largest_ = std::max(largest_, out[i].len[0]);
      if (in[i].csum == URNIC_CSUM_PARTIAL) {
        ++partial_;
        finish_checksum(out[i].data[0], out[i].len[0]);
      }
    }
    to.tx_commit(0, out, m);
    from.rx_release(0, in, n);
    return true;
  }
  // The field holds the pseudo-header sum; the receiving kernel checks the result.
  static void finish_checksum(std::uint8_t* p, std::uint32_t length) {
    const auto f = parse_tcp_frame({p, length}, length);
    if (!f) return;
    store_be16(p + f->tcp + 16, inet_checksum(inet_sum({p + f->tcp, f->end - f->tcp})));
  }
  Port &a_, &b_;
  std::uint32_t largest_ = 0;
  std::uint64_t partial_ = 0;
};

std::uint8_t stream_byte(std::uint64_t i) {
  return static_cast<std::uint8_t>((i * 2654435761u) >> 13);
}

std::string send_stream(int s, std::uint64_t bytes) {
  std::vector<std::uint8_t> part(256 * 1024);
  for (std::uint64_t at = 0; at < bytes;) {
    const std::size_t n =
        static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), bytes - at));
    for (std::size_t i = 0; i < n; ++i) part[i] = stream_byte(at + i);
    for (std::size_t done = 0; done < n;) {
      const ssize_t k = send(s, part.data() + done, n - done, MSG_NOSIGNAL);
      if (k <= 0) return "send failed";
      done += static_cast<std::size_t>(k);
    }
    at += n;
  }
  shutdown(s, SHUT_WR);
  return "";
}

std::string receive_stream(int s, std::uint64_t bytes) {
  std::vector<std::uint8_t> part(256 * 1024);
  std::uint64_t at = 0;
  for (ssize_t n; (n = recv(s, part.data(), part.size(), 0)) > 0;) {
    for (ssize_t i = 0; i < n; ++i, ++at) {
      if (part[static_cast<std::size_t>(i)] != stream_byte(at)) {
        return "byte " + std::to_string(at) + " differs";
      }
    }
  }
  return at == bytes ? "" : "only " + std::to_string(at) + " bytes came";
}

struct TwoKernels {
  // Leaves this process in the second namespace. `listener` belongs to the first.
  std::string open(const std::string& keys) {
    auto p = Port::open("tap:name=ua" + keys);
    if (!p.ok()) return p.error();
    a = std::move(p.value());
    RETURN_UNLESS(check::interface_up("ua", "10.9.0.1"));
    listener = socket(AF_INET, SOCK_STREAM, 0);
    RETURN_UNLESS(unshare(CLONE_NEWNET) == 0);
    auto q = Port::open("tap:name=ub" + keys);
    if (!q.ok()) return q.error();
    b = std::move(q.value());
    RETURN_UNLESS(check::interface_up("ub", "10.9.0.2"));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(7000);
    RETURN_UNLESS(bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    RETURN_UNLESS(listen(listener, 1) == 0);
    client = socket(AF_INET, SOCK_STREAM, 0);
    return "";
  }
  std::string connect_pair() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(7000);
    inet_pton(AF_INET, "10.9.0.1", &at.sin_addr);
    RETURN_UNLESS(connect(client, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    server = accept(listener, nullptr, nullptr);
    RETURN_UNLESS(server >= 0);
    return "";
  }
  Port a, b;
  int listener = -1, client = -1, server = -1;
};

std::string kernel_to_kernel(const std::string& keys, std::uint64_t bytes, bool expect_super) {
  TwoKernels k;
  if (std::string wrong = k.open(keys); !wrong.empty()) return wrong;
  Forwarder f(k.a, k.b);
  std::atomic<bool> stop{false};
  std::thread forwarding([&] { f.run(stop); });
  std::string wrong = k.connect_pair();
  if (wrong.empty()) {
    std::string sent = "?", received = "?";
    std::thread sender([&] { sent = send_stream(k.client, bytes); });
    received = receive_stream(k.server, bytes);
    sender.join();
    wrong = sent + received;
  }
  // And the other direction, on the same connection.
  if (wrong.empty()) {
    std::string sent = "?";
    std::thread sender([&] { sent = send_stream(k.server, bytes / 4); });
    wrong = receive_stream(k.client, bytes / 4);
    sender.join();
    wrong += sent;
  }
  stop = true;
  forwarding.join();
  if (!wrong.empty()) return wrong;
  const Stats a = k.a.stats(), b = k.b.stats();
  RETURN_UNLESS(f.largest() <= k.a.info().max_frame);
  RETURN_UNLESS(a.rx_bad == 0 && b.rx_bad == 0 && a.tx_dropped == 0 && b.tx_dropped == 0);
  if (expect_super) {
    RETURN_UNLESS(f.partial() > 0);
    // b receives data from the client's kernel, a sends it on: one call for many frames.
    const double calls = static_cast<double>(a.syscalls + b.syscalls);
    const double frames =
        static_cast<double>(a.rx_frames + a.tx_frames + b.rx_frames + b.tx_frames);
    fprintf(stderr, "%.3f system calls per frame\n", calls / frames);
    if (calls / frames > 0.25) return "calls per frame " + std::to_string(calls / frames);
  }
  return "";
}

TEST(TapPort, KernelTcpPassesWithSuperSegments) {
  RUN_WITH_TAP([] { return kernel_to_kernel(",mtu=1500", 100'000'000, true); });
}
TEST(TapPort, KernelTcpPassesWithoutOffload) {
  RUN_WITH_TAP([] { return kernel_to_kernel(",mtu=1500,offload=off", 20'000'000, false); });
}
TEST(TapPort, KernelTcpPassesWithLargeFrames) {
  RUN_WITH_TAP([] { return kernel_to_kernel(",mtu=9000", 50'000'000, false); });
}

}  // namespace
}  // namespace urnic::port
