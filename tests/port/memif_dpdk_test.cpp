// The other end is DPDK's net_memif driver in dpdk-testpmd, which returns every frame. It verifies
// our interpretation of the protocol, in both roles.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "port/memif_check.h"
#include "port/memif_port.h"

namespace urnic::port {
namespace {

using check::Folder;
using check::must_open;
using check::turn_until;

bool testpmd_present() {
  return system("command -v dpdk-testpmd >/dev/null 2>&1") == 0;
}

#define SKIP_WITHOUT_TESTPMD()                                                                  \
  if (!testpmd_present()) {                                                                     \
    GTEST_SKIP() << "dpdk-testpmd is not installed (Debian: package dpdk-dev); interoperation " \
                    "with DPDK net_memif was not tested";                                       \
  }                                                                                             \
  static_assert(true)

class Testpmd {
 public:
  Testpmd(const Folder& f, const std::string& vdev, unsigned mbuf, unsigned queues = 1) {
    int in[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    stdin_ = in[1];
    log_ = f.file("testpmd.log");
    static int serial = 0;
    prefix_ = "urnic" + std::to_string(getpid()) + "x" + std::to_string(serial++);
    const std::string prefix = "--file-prefix=" + prefix_;
    const std::string dev = "--vdev=net_memif0,id=0," + vdev;
    const std::string mbufs = "--mbuf-size=" + std::to_string(mbuf);
    const std::string rxq = "--rxq=" + std::to_string(queues);
    const std::string txq = "--txq=" + std::to_string(queues);
    pid_ = fork();
    if (pid_ != 0) {
      close(in[0]);
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log = open(log_.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    dup2(in[0], 0);
    dup2(log, 1);
    dup2(log, 2);
    execlp("dpdk-testpmd", "dpdk-testpmd", "--lcores=0,1@0-1", "--no-huge", "-m", "256", "--no-pci",
           "--no-shconf", "--no-telemetry", prefix.c_str(), dev.c_str(), "--", "--forward-mode=io",
           "--port-topology=loop", "--auto-start", "--nb-cores=1", "--total-num-mbufs=2048",
           mbufs.c_str(), rxq.c_str(), txq.c_str(), "--no-mlockall", "--no-flush-rx",
           static_cast<char*>(nullptr));
    _exit(127);
  }
  ~Testpmd() {
    kill_now();
    close(stdin_);
    // DPDK never removes its runtime folder.
    const char* user = getenv("XDG_RUNTIME_DIR");
    for (const std::string at : {"/var/run", user != nullptr ? user : "/tmp"}) {
      std::error_code ignored;
      std::filesystem::remove_all(at + "/dpdk/" + prefix_, ignored);
    }
  }
  Testpmd(const Testpmd&) = delete;
  Testpmd& operator=(const Testpmd&) = delete;

  void kill_now() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
  }
  // An orderly end: Enter at its prompt.
  void quit() {
    EXPECT_EQ(write(stdin_, "\n", 1), 1);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  std::string log() const {
    std::string text;
    if (FILE* f = fopen(log_.c_str(), "r")) {
      char line[256];
      while (fgets(line, sizeof line, f) != nullptr) text += line;
      fclose(f);
    }
    return text;
  }

 private:
  pid_t pid_ = -1;
  int stdin_ = -1;
  std::string log_, prefix_;
};

// Sends `count` numbered frames and expects each back, in order and complete; sleeps when idle.
// Empty on success.
std::string echo(Port& p, unsigned q, std::uint32_t count, std::uint32_t len) {
  const std::uint64_t end = check::monotonic_ms() + 20'000;
  std::uint32_t sent = 0, received = 0;
  check::Bytes want(len);
  while (received < count) {
    if (check::monotonic_ms() > end) {
      return "sent " + std::to_string(sent) + ", received " + std::to_string(received) +
             (p.info().link_up == 1 ? "" : ", link down");
    }
    std::array<Frame, kBurst> f;
    // Limits the frames in flight, so that none is lost because testpmd has no buffers.
    const unsigned window = 64 - std::min(64u, sent - received);
    unsigned n = p.tx_reserve(q, len, f.data(), std::min({kBurst, window, count - sent}));
    for (unsigned i = 0; i < n; ++i) {
      check::fill_pattern(f[i].data[0], len, sent);
      store_be32(f[i].data[0], sent++);
    }
    p.tx_commit(q, f.data(), n);
    n = p.rx_burst(q, f.data(), kBurst);
    std::string wrong;
    for (unsigned i = 0; i < n; ++i) {
      check::fill_pattern(want.data(), len, received);
      store_be32(want.data(), received);
      if (check::joined(f[i]) != want && wrong.empty()) {
        wrong = "frame " + std::to_string(received) + " of " + std::to_string(len) + " came back " +
                std::to_string(f[i].len[0]) + " long or changed";
      }
      ++received;
    }
    p.rx_release(q, f.data(), n);
    if (!wrong.empty()) return wrong;
    if (n == 0 && window == 0) check::sleep_on(p, q, 100);
  }
  return "";
}

// ",role=..." of ours and of theirs.
struct RolePair {
  const char *ours, *theirs;
};

class MemifDpdk : public ::testing::TestWithParam<RolePair> {
 protected:
  // Starts and connects our end and testpmd, in the order that the roles require.
  void start(const std::string& our_keys, unsigned bsize, unsigned mbuf, unsigned queues = 1) {
    const std::string socket = folder_.file("s");
    const std::string vdev = "role=" + std::string(GetParam().theirs) + ",socket=" + socket +
                             ",socket-abstract=no,rsize=8,bsize=" + std::to_string(bsize);
    spec_ = "memif:socket=" + socket + ",role=" + GetParam().ours + our_keys;
    // As a client, testpmd must find our server, because it tries only once. As the server it
    // accepts clients from the beginning, and sometimes exits if one connects while it configures
    // its port. It waits for the link after that.
    if (std::string(GetParam().ours) == "server") port_ = must_open(spec_);
    peer_ = std::make_unique<Testpmd>(folder_, vdev, mbuf, queues);
    if (!port_) {
      ASSERT_TRUE(said("Checking link")) << peer_->log();
      port_ = must_open(spec_);
    }
    linked_ = turn_until([&] { return port_.info().link_up == 1; }, {&port_}, 15'000);
    ASSERT_TRUE(linked_) << peer_->log();
    // The link does not mean forwarding yet: testpmd starts its engine afterwards, and reports that
    // too late.
    usleep(100'000);
    drain();
  }
  bool said(const std::string& text) {
    const auto there = [&] { return peer_->log().find(text) != std::string::npos; };
    for (int i = 0; i < 1500 && !there(); ++i) usleep(10'000);
    return there();
  }
  void drain() {
    for (int i = 0; i < 1000; ++i) check::idle_turn(port_);
  }
  Folder folder_;
  std::string spec_;
  Port port_;
  std::unique_ptr<Testpmd> peer_;
  bool linked_ = false;
};

TEST_P(MemifDpdk, FramesOfEverySizeAreReturnedComplete) {
  SKIP_WITHOUT_TESTPMD();
  start(",mtu=9000", 9216, 9600);
  if (!linked_) return;
  for (std::uint32_t len : {60u, 61u, 64u, 127u, 1500u, 1514u, 2048u, 4097u, 9000u, 9014u}) {
    EXPECT_EQ(echo(port_, 0, 500, len), "");
  }
  EXPECT_EQ(port_.stats().rx_bad, 0u);
}

TEST_P(MemifDpdk, FramesOf65000BytesAreReturnedComplete) {
  SKIP_WITHOUT_TESTPMD();
  start(",mtu=65000,bsize=65280,rsize=6", 65280, 65500);
  if (!linked_) return;
  EXPECT_EQ(echo(port_, 0, 1000, 65014), "");
  EXPECT_EQ(echo(port_, 0, 1000, 1514), "");
}

TEST_P(MemifDpdk, SeveralQueuesWork) {
  SKIP_WITHOUT_TESTPMD();
  start(",queues=2", 2048, 2200, 2);
  if (!linked_) return;
  EXPECT_EQ(port_.info().queues, 2u);
  EXPECT_EQ(echo(port_, 0, 5000, 1514), "");
  EXPECT_EQ(echo(port_, 1, 5000, 1514), "");
}

TEST_P(MemifDpdk, NoWakeupIsLost) {
  SKIP_WITHOUT_TESTPMD();
  start("", 2048, 2200);
  if (!linked_) return;
  // One frame at a time, with a sleep before each answer: a lost wake-up would cost 100 ms.
  std::uint64_t slow = 0;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    // It may take long to provide the first buffers, which is not tested here.
    ASSERT_TRUE(check::turn_until([&] { return check::send_one(port_, 0, check::pattern(64, i)); },
                                  {&port_}));
    const std::uint64_t t0 = check::monotonic_ms();
    check::Bytes got;
    while (got.empty() && check::monotonic_ms() < t0 + 1000) {
      got = check::receive_one(port_, 0, 0);
      if (got.empty()) check::sleep_on(port_, 0, 100);
    }
    ASSERT_EQ(got, check::pattern(64, i));
    slow += check::monotonic_ms() - t0 >= 90;
  }
  EXPECT_EQ(slow, 0u);
  // While idle beside a polling peer, nothing wakes us.
  drain();
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
  const std::uint64_t end = check::monotonic_ms() + 1000;
  while (check::monotonic_ms() < end) {
    check::sleep_on(port_, 0, 1000);
    check::idle_turn(port_);
  }
  getrusage(RUSAGE_THREAD, &after);
  EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 4);
}

TEST_P(MemifDpdk, ItsDeathIsSurvivedAndItsSuccessorIsServed) {
  SKIP_WITHOUT_TESTPMD();
  start("", 2048, 2200);
  if (!linked_) return;
  EXPECT_EQ(echo(port_, 0, 1000, 1514), "");
  for (int round = 0; round < 2; ++round) {
    // Frames are in flight when it dies.
    std::array<Frame, kBurst> f;
    for (int i = 0; i < 50; ++i) {
      const unsigned n = port_.tx_reserve(0, 1000, f.data(), kBurst);
      port_.tx_commit(0, f.data(), n);
    }
    if (round == 1) {
      peer_->quit();
    } else {
      peer_->kill_now();
    }
    ASSERT_TRUE(turn_until([&] { return port_.info().link_up == 0; }, {&port_}));
    // A killed DPDK server leaves its socket file, and its successor fails because of it: delete
    // it, as an operator would.
    if (std::string(GetParam().theirs) == "server") unlink(folder_.file("s").c_str());
    peer_ = std::make_unique<Testpmd>(folder_,
                                      "role=" + std::string(GetParam().theirs) +
                                          ",socket=" + folder_.file("s") +
                                          ",socket-abstract=no,rsize=8,bsize=2048",
                                      2200);
    ASSERT_TRUE(turn_until(
        [&] {
          return port_.info().link_up == 1 &&
                 peer_->log().find("packet forwarding") != std::string::npos;
        },
        {&port_}, 15'000))
        << peer_->log();
    usleep(100'000);
    drain();
    EXPECT_EQ(echo(port_, 0, 1000, 1514), "") << round;
  }
}

INSTANTIATE_TEST_SUITE_P(, MemifDpdk,
                         ::testing::Values(RolePair{"server", "client"},
                                           RolePair{"client", "server"}),
                         [](const auto& p) { return std::string("Urnic") + p.param.ours; });

TEST(MemifDpdkAbstract, AbstractSocketsAreCompatible) {
  SKIP_WITHOUT_TESTPMD();
  Folder f;
  const std::string name = "urnic-dpdk-" + std::to_string(getpid());
  Port p = must_open("memif:role=server,socket=@" + name);
  Testpmd peer(f, "role=client,socket=" + name + ",socket-abstract=yes,rsize=8,bsize=2048", 2200);
  EXPECT_TRUE(turn_until([&] { return p.info().link_up == 1; }, {&p}, 15'000)) << peer.log();
}

TEST(MemifDpdkSecret, SecretsAreCompatible) {
  SKIP_WITHOUT_TESTPMD();
  Folder f;
  Port p = must_open("memif:role=server,secret=psst,socket=" + f.file("s"));
  Testpmd peer(f, "role=client,secret=psst,socket=" + f.file("s") + ",socket-abstract=no", 2200);
  EXPECT_TRUE(turn_until([&] { return p.info().link_up == 1; }, {&p}, 15'000)) << peer.log();
}

}  // namespace
}  // namespace urnic::port
