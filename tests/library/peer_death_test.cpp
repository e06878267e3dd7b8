// Killing a process ends its connections for the peer (E-43): over a wire that reports it, within
// link_timeout_ms, whatever the peer does meanwhile.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include "support/device_end.h"
#include "support/quiet_fork.h"

namespace urnic {
namespace {

using Clock = std::chrono::steady_clock;

using End = test::DeviceEnd;

// Longer than a busy machine can keep the server from serving its end of the link.
constexpr const char* kLinkTimeout = "2000";

struct PeerDeath : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/urnic-death-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
  }
  void TearDown() override {
    stop(SIGKILL);
    std::filesystem::remove_all(directory);
  }
  static Config config(const std::string& port, const char* timeout_ms,
                       const std::string& address = "auto") {
    Config c;
    EXPECT_TRUE(c.set("address", address).ok());
    EXPECT_TRUE(c.set("port", port).ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    EXPECT_TRUE(c.set("link_timeout_ms", timeout_ms).ok());
    return c;
  }
  // A server that accepts one connection and then does nothing. Writes its port to a pipe.
  std::string start(const std::string& port, const std::string& at) {
    int told[2];
    if (pipe(told) != 0) return "";
    server = test::quiet_fork();
    if (server == 0) {
      alarm(120);
      End s(config(port, "5000", port.starts_with("dgram") ? at + "/24" : "auto"));
      if (!s.device) _exit(1);
      auto listener = s.device.listen(0);
      const std::uint16_t number = listener.ok() ? listener->port() : 0;
      if (write(told[1], &number, sizeof number) != sizeof number) _exit(1);
      auto request = listener->next(60000);
      if (!request.ok() || !request->accept(s.qp).ok()) _exit(1);
      for (;;) pause();
    }
    std::uint16_t number = 0;
    EXPECT_EQ(read(told[0], &number, sizeof number), ssize_t{sizeof number});
    close(told[0]);
    close(told[1]);
    return at + ":" + std::to_string(number);
  }
  void stop(int signal) {
    if (server <= 0) return;
    kill(server, signal);
    waitpid(server, nullptr, 0);
    server = -1;
  }
  // The events at the client, which sleeps in cq.wait with a receive posted.
  void expect_told(End& client, const std::string& to, EventKind kind, const std::string& why) {
    ASSERT_TRUE(client.device.wait_link(20000));
    const auto connected = client.qp.connect(to);
    ASSERT_TRUE(connected.ok()) << connected.error().message;
    const Sge sge{reinterpret_cast<std::uint64_t>(client.memory.data()), 64, client.mr.lkey()};
    ASSERT_TRUE(client.qp.post_receive({7, {&sge, 1}}).ok());
    Completion c[1];
    while (client.cq.poll(c) > 0) {
    }
    ASSERT_FALSE(client.cq.wait(300));  // idle
    const auto before = Clock::now();
    stop(SIGKILL);
    ASSERT_TRUE(client.cq.wait(30000));
    // Detected by the end of the link. Keepalive would take a minute.
    EXPECT_LT(Clock::now() - before, std::chrono::seconds(20));
    ASSERT_EQ(client.cq.poll(c), 1);
    EXPECT_EQ(c[0].wr_id, 7u);
    EXPECT_EQ(c[0].status, WcStatus::flushed);
    EXPECT_EQ(client.qp.state(), QpState::error);
    Event e;
    do {
      ASSERT_TRUE(client.events.wait(&e, 5000));
    } while (e.kind == EventKind::established);
    EXPECT_EQ(e.kind, kind);
    EXPECT_NE(e.error.message.find(why), std::string::npos) << e.error.message;
  }

  std::string directory;
  pid_t server = -1;
};

// proves: E-43
TEST_F(PeerDeath, AKilledMemifServerIsDetected) {
  const std::string wire = "memif:socket=" + directory + "/w.sock";
  const std::string to = start(wire + ",role=server", "10.77.0.1");
  End client(config(wire + ",role=client", kLinkTimeout));
  ASSERT_TRUE(client.device);
  expect_told(client, to, EventKind::failed, "the link has been down for 2000 ms: ");
}

// proves: E-43
TEST_F(PeerDeath, AKilledDatagramPeerIsDetected) {
  const std::string a = directory + "/a", b = directory + "/b";
  const std::string to = start("dgram:path=" + b + ",peer=" + a, "10.77.0.1");
  End client(config("dgram:path=" + a + ",peer=" + b, kLinkTimeout));
  ASSERT_TRUE(client.device);
  expect_told(client, to, EventKind::failed, "the link has been down for 2000 ms: ");
}

// The kernel closes the connections of a process that has ended; without data in flight that is an
// orderly end.
TEST_F(PeerDeath, AKilledServerOverKernelTcpIsDetected) {
  const std::string to = start("tcp:bind=127.0.0.1", "127.0.0.1");
  End client(config("tcp", kLinkTimeout));
  ASSERT_TRUE(client.device);
  expect_told(client, to, EventKind::disconnected, "");
}

// A new server at the same socket does not know the connection, and resets it when it gets a
// packet.
// proves: E-43
TEST_F(PeerDeath, ARestartedServerEndsTheConnectionToo) {
  const std::string wire = "memif:socket=" + directory + "/w.sock";
  const std::string to = start(wire + ",role=server", "10.77.0.1");
  End client(config(wire + ",role=client", "60000"));
  ASSERT_TRUE(client.device && client.device.wait_link(20000));
  ASSERT_TRUE(client.qp.connect(to).ok());
  const Sge sge{reinterpret_cast<std::uint64_t>(client.memory.data()), 64, client.mr.lkey()};
  ASSERT_TRUE(client.qp.post_receive({7, {&sge, 1}}).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // everything is acknowledged
  stop(SIGKILL);
  start(wire + ",role=server", "10.77.0.1");
  ASSERT_TRUE(client.cq.wait(20000));
  EXPECT_EQ(client.qp.state(), QpState::error);
}

}  // namespace
}  // namespace urnic
