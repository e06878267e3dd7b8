// The DPDK port, loaded as users load it. EAL runs once per process, so every test has its own
// child process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <syslog.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "port/memif_check.h"
#include "port/netns_check.h"
#include "port/port_check.h"
#include "port/unix_address.h"

namespace urnic::port {
namespace {

using check::Bytes;
using ::testing::HasSubstr;

#define RETURN_UNLESS(condition) \
  if (!(condition)) return std::string(#condition) + " failed at line " + std::to_string(__LINE__)

// Skip only if the plugin was not built; a plugin that does not load or start is an error.
#define NEEDS_PLUGIN()                                                                  \
  {                                                                                     \
    std::string why_;                                                                   \
    check::in_child(                                                                    \
        []() -> std::string {                                                           \
          auto p_ = Port::open("dpdk:vdev=net_null0");                                  \
          return p_.ok() ? "" : p_.error();                                             \
        },                                                                              \
        &why_);                                                                         \
    if (why_.find("not found") != std::string::npos) {                                  \
      GTEST_SKIP() << "the DPDK port was not built (libdpdk-dev is missing): " << why_; \
    }                                                                                   \
    ASSERT_EQ(why_, "");                                                                \
  }                                                                                     \
  static_assert(true)

void expect_in_child(const std::function<std::string()>& body) {
  std::string result;
  check::in_child(body, &result);
  EXPECT_EQ(result, "");
}

TEST(DpdkPort, ARingCarriesFramesOfEverySize) {
  NEEDS_PLUGIN();
  expect_in_child([]() -> std::string {
    auto p = Port::open("dpdk:vdev=net_ring0,mtu=9000");
    if (!p.ok()) return p.error();
    RETURN_UNLESS(p->info().link_up == 1);
    RETURN_UNLESS(p->info().max_frame == 9014);
    for (std::uint32_t len = 60; len <= 9014; len += 113) {
      RETURN_UNLESS(check::send_one(*p, 0, check::pattern(len, len)));
      RETURN_UNLESS(check::receive_one(*p, 0) == check::pattern(len, len));
    }
    // Foreign payload, and frames returned unsent among others.
    Frame f[4];
    RETURN_UNLESS(p->tx_reserve(0, 54, f, 4) == 4);
    Bytes payload(1000, 7);
    for (int i = 0; i < 4; ++i) std::memset(f[i].data[0], i, 54);
    f[1].len[0] = 0;
    f[2].data[1] = payload.data();
    f[2].len[1] = 1000;
    p->tx_commit(0, f, 2);
    p->tx_commit(0, f + 2, 2);
    RETURN_UNLESS(check::receive_one(*p, 0) == Bytes(54, 0));
    Bytes want(54, 2);
    want.insert(want.end(), 1000, 7);
    RETURN_UNLESS(check::receive_one(*p, 0) == want);
    RETURN_UNLESS(check::receive_one(*p, 0) == Bytes(54, 3));
    return "";
  });
}

TEST(DpdkPort, NothingLeaksOverManyFramesAndReopenings) {
  NEEDS_PLUGIN();
  expect_in_child([]() -> std::string {
    for (int round = 0; round < 5; ++round) {
      auto p = Port::open("dpdk:vdev=net_ring0");
      if (!p.ok()) return p.error();
      auto other = Port::open("dpdk:vdev=net_ring1");
      if (!other.ok()) return other.error();
      auto again = Port::open("dpdk:vdev=net_ring0");
      RETURN_UNLESS(!again.ok() && again.error().find("in use") != std::string::npos);
      // Many more frames than buffers.
      for (std::uint32_t i = 0; i < 20000; ++i) {
        Frame f[8];
        const unsigned n = p->tx_reserve(0, 64, f, 8);
        RETURN_UNLESS(n == 8);
        if (i % 3 == 0) continue;  // reserved but never committed
        for (auto& one : f) store_be32(one.data[0], i);
        p->tx_commit(0, f, i % 5);
        const unsigned got = p->rx_burst(0, f, 8);
        RETURN_UNLESS(got == i % 5);
        p->rx_release(0, f, got);
      }
    }
    return "";
  });
}

TEST(DpdkPort, TheHostProcessIsNotAffected) {
  NEEDS_PLUGIN();
  expect_in_child([]() -> std::string {
    // Nothing may be printed: both streams go to a pipe that must stay empty.
    int out[2];
    RETURN_UNLESS(pipe(out) == 0);
    fflush(nullptr);
    dup2(out[1], 1);
    dup2(out[1], 2);
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    CPU_CLR(1, &before);  // this thread is pinned by its owner
    sched_setaffinity(0, sizeof before, &before);
    sigset_t mask, now;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    struct sigaction actions[NSIG], action;
    for (int s = 1; s < NSIG; ++s) sigaction(s, nullptr, &actions[s]);
    const std::string cwd = std::filesystem::current_path();
    openlog("the-host", LOG_PERROR, LOG_USER);

    auto p = Port::open("dpdk:vdev=net_ring0");
    if (!p.ok()) return p.error();
    check::send_one(*p, 0, check::pattern(64, 1));
    auto wrong = Port::open("dpdk:vdev=net_af_packet0,iface=doesnotexist");
    RETURN_UNLESS(!wrong.ok());

    sched_getaffinity(0, sizeof after, &after);
    RETURN_UNLESS(CPU_EQUAL(&before, &after));
    sigprocmask(SIG_SETMASK, nullptr, &now);
    for (int s = 1; s < NSIG; ++s) RETURN_UNLESS(sigismember(&mask, s) == sigismember(&now, s));
    for (int s = 1; s < NSIG; ++s) {
      if (sigaction(s, nullptr, &action) != 0) continue;
      RETURN_UNLESS(action.sa_handler == actions[s].sa_handler);
    }
    RETURN_UNLESS(std::filesystem::current_path() == cwd);
    fflush(nullptr);
    pollfd readable{out[0], POLLIN, 0};
    if (poll(&readable, 1, 0) != 0) {
      char text[300] = {};
      if (read(out[0], text, sizeof text - 1) < 0) return "?";
      return std::string("printed: ") + text;
    }
    // Its name in syslog must be unchanged.
    syslog(LOG_DEBUG, "hello");
    char line[100] = {};
    RETURN_UNLESS(poll(&readable, 1, 1000) == 1 && read(out[0], line, sizeof line - 1) > 0);
    RETURN_UNLESS(std::string(line).find("the-host: hello") != std::string::npos);
    // EAL's threads must not receive signals: a signal to the process waits for the thread that
    // blocked it.
    kill(getpid(), SIGUSR2);
    timespec wait{1, 0};
    RETURN_UNLESS(sigtimedwait(&mask, nullptr, &wait) == SIGUSR2);
    return "";
  });
}

TEST(DpdkPort, AfterForkItIsRefusedWithOneLine) {
  NEEDS_PLUGIN();
  expect_in_child([]() -> std::string {
    auto p = Port::open("dpdk:vdev=net_ring0");
    if (!p.ok()) return p.error();
    std::string said;
    check::in_child(
        [&]() -> std::string {
          auto q = Port::open("dpdk:vdev=net_ring1");
          *p = Port();  // must not disturb the parent's device
          return q.ok() ? "opened" : q.error();
        },
        &said);
    RETURN_UNLESS(said.find("before fork") != std::string::npos);
    RETURN_UNLESS(said.find('\n') == std::string::npos);
    RETURN_UNLESS(check::send_one(*p, 0, check::pattern(64, 1)));
    RETURN_UNLESS(check::receive_one(*p, 0) == check::pattern(64, 1));
    return "";
  });
}

TEST(DpdkPort, ErrorsAreOneClearLine) {
  NEEDS_PLUGIN();
  expect_in_child([]() -> std::string {
    const auto error = [](const std::string& spec) {
      auto p = Port::open(spec);
      return p.ok() ? "(opened)" : p.error();
    };
    const std::pair<const char*, const char*> cases[] = {
        {"dpdk:", "vdev=<driver>"},
        {"dpdk:vdev=net_ring0,pci=0000:00:01.0", "vdev=<driver>"},
        {"dpdk:vdev=net_nosuchdriver0", "cannot attach"},
        {"dpdk:vdev=net_af_packet0,iface=doesnotexist", "cannot attach"},
        {"dpdk:vdev=net_ring7,queues=40", "queues=40"},
        {"dpdk:vdef=x", "unknown key 'vdef'"}};
    for (const auto& [spec, want] : cases) {
      const std::string e = error(spec);
      if (e.find(want) == std::string::npos || e.find('\n') != std::string::npos) {
        return std::string(spec) + ": " + e;
      }
    }
    // EAL was started without PCI, so PCI is not available later.
    RETURN_UNLESS(error("dpdk:pci=0000:00:01.0").find("first") != std::string::npos);
    return "";
  });
}

TEST(DpdkPort, ADeviceWithoutDescriptorsIsPolledWithIncreasingIntervals) {
  NEEDS_PLUGIN();
  expect_in_child([]() -> std::string {
    auto p = Port::open("dpdk:vdev=net_ring0");
    if (!p.ok()) return p.error();
    rusage before{}, after{};
    getrusage(RUSAGE_THREAD, &before);
    const std::uint64_t end = check::monotonic_ms() + 1000;
    while (check::monotonic_ms() < end) {
      check::idle_turn(*p);
      check::sleep_on(*p, 0, 1000);
    }
    getrusage(RUSAGE_THREAD, &after);
    RETURN_UNLESS(after.ru_nvcsw - before.ru_nvcsw < 24);  // 50 us doubled up to one second
    return "";
  });
}

TEST(DpdkPort, TelemetryShowsItsCountersWhenAskedFor) {
  NEEDS_PLUGIN();
  expect_in_child([]() -> std::string {
    auto p = Port::open("dpdk:vdev=net_ring0,eal=--telemetry");
    if (!p.ok()) return p.error();
    for (std::uint32_t i = 0; i < 3; ++i) check::send_one(*p, 0, check::pattern(64, i));
    const char* user = getenv("XDG_RUNTIME_DIR");
    const std::string base = geteuid() == 0 ? "/var/run" : user != nullptr ? user : "/tmp";
    const std::string folder = base + "/dpdk/urnic-" + std::to_string(getpid());
    const auto at = UnixAddress::parse(folder + "/dpdk_telemetry.v2", "telemetry");
    const Fd s = connect_to(at.value(), SOCK_SEQPACKET).fd;
    RETURN_UNLESS(s);
    std::string answer;
    for (const char* ask : {"", "/urnic/ports"}) {  // it sends a greeting first
      if (*ask != 0) RETURN_UNLESS(send(s.get(), ask, strlen(ask), 0) > 0);
      pollfd ready{s.get(), POLLIN, 0};
      char text[4096] = {};
      RETURN_UNLESS(poll(&ready, 1, 2000) == 1 && recv(s.get(), text, sizeof text - 1, 0) > 0);
      answer = text;
    }
    std::filesystem::remove_all(folder);
    if (answer.find("\"net_ring0\"") == std::string::npos ||
        answer.find("\"tx_frames\":3") == std::string::npos) {
      return answer;
    }
    return "";
  });
}

// ---- the kernel's interfaces ----

bool set_forwarding(const std::string& name, const std::string& family, const char* value) {
  return check::write_file(("/proc/sys/net/" + family + "/conf/" + name + "/forwarding").c_str(),
                           value);
}

std::string make_veth() {
  RETURN_UNLESS(system("ip link add va type veth peer name vb && ip link set va up && "
                       "ip link set vb up") == 0);
  // A new namespace inherits the forwarding setting.
  for (const char* name : {"va", "vb"}) set_forwarding(name, "ipv4", "0");
  return "";
}

std::string two_devices(const std::string& driver) {
  if (std::string wrong = make_veth(); !wrong.empty()) return wrong;
  auto a = Port::open("dpdk:vdev=" + driver + "0,iface=va");
  if (!a.ok()) return a.error();
  auto b = Port::open("dpdk:vdev=" + driver + "1,iface=vb");
  if (!b.ok()) return b.error();
  RETURN_UNLESS(b->info().mac[0] % 2 == 0);
  // The kernel sends its own frames on a new interface; ours have an unused EtherType.
  const auto ours = [](std::uint32_t len, std::uint32_t seed) {
    Bytes bytes = check::pattern(len, seed);
    bytes[0] &= 0xfe;
    store_be16(&bytes[12], 0x88b5);
    return bytes;
  };
  const auto next = [](Port& p, int ms) {
    const std::uint64_t end = check::monotonic_ms() + static_cast<std::uint64_t>(ms);
    do {
      const Bytes bytes = check::receive_one(p, 0, 0);
      if (bytes.size() > 14 && load_be16(&bytes[12]) == 0x88b5) return bytes;
      if (bytes.empty()) check::sleep_on(p, 0, 20);
    } while (check::monotonic_ms() < end);
    return Bytes();
  };
  for (std::uint32_t len : {60u, 100u, 1000u, 1514u}) {
    for (std::uint32_t i = 0; i < 200; ++i) {
      RETURN_UNLESS(check::send_one(*a, 0, ours(len, i)));
      if (next(*b, 1000) != ours(len, i)) {
        return "frame " + std::to_string(i) + " of " + std::to_string(len) + " a->b";
      }
      RETURN_UNLESS(check::send_one(*b, 0, ours(len, i + 1)));
      if (next(*a, 1000) != ours(len, i + 1)) {
        return "frame " + std::to_string(i) + " of " + std::to_string(len) + " b->a";
      }
    }
  }
  // Sleeping: a frame wakes it at once, not at the end of a poll interval.
  while (!next(*b, 0).empty()) {
  }
  int fds[4];
  RETURN_UNLESS(b->wait_fds(0, fds, 4) == 2);
  std::uint64_t slow = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {
    if (!b->arm(0)) {
      std::thread later([&] {
        usleep(2000);
        check::send_one(*a, 0, ours(64, i));
      });
      pollfd p[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
      slow += poll(p, 2, 500) == 0;
      later.join();
    }
    b->disarm(0);
    if (next(*b, 1000) != ours(64, i)) return "no frame after sleep " + std::to_string(i);
  }
  RETURN_UNLESS(slow == 0);
  return "";
}

TEST(DpdkPort, AfPacketOnVeth) {
  NEEDS_PLUGIN();
  RUN_IN_NETWORK_NAMESPACE([] { return two_devices("net_af_packet"); });
}

// docs/ports.md: a kernel that forwards would send every frame for us a second time.
TEST(DpdkPort, AfPacketRefusesAnInterfaceOfARouter) {
  NEEDS_PLUGIN();
  RUN_IN_NETWORK_NAMESPACE([]() -> std::string {
    if (std::string wrong = make_veth(); !wrong.empty()) return wrong;
    const auto said = [](const std::string& spec) {
      auto p = Port::open("dpdk:vdev=net_af_packet" + spec);
      return p.ok() ? "" : p.error();
    };
    for (const std::string family : {"ipv4", "ipv6"}) {
      if (!set_forwarding("va", family, "1")) {
        if (family == "ipv6") continue;  // there is no IPv6
        return "forwarding cannot be set";
      }
      const std::string complaint =
          "IP forwarding is on (net." + family + ".conf.va.forwarding = 1)";
      RETURN_UNLESS(said("0,iface=va").find(complaint) != std::string::npos);
      RETURN_UNLESS(said("0;iface=va").find(complaint) !=
                    std::string::npos);  // the driver's own message
      RETURN_UNLESS(said("0,iface=vb").empty());
      RETURN_UNLESS(said("1,iface=va,drop_rule=on").empty());
      RETURN_UNLESS(set_forwarding("va", family, "0"));
      RETURN_UNLESS(said("1,iface=va").empty());
    }
    return "";
  });
}

TEST(DpdkPort, AfXdpOnVeth) {
  NEEDS_PLUGIN();
  if (geteuid() != 0) GTEST_SKIP() << "AF_XDP takes root (BPF)";
  const auto result =
      check::in_network_namespace([] { return two_devices("net_af_xdp"); }, /*as_root=*/true);
  if (result.skipped || result.text.find("cannot attach") != std::string::npos) {
    GTEST_SKIP() << "AF_XDP does not work here: " << result.text;
  }
  EXPECT_EQ(result.text, "");
}

}  // namespace
}  // namespace urnic::port
