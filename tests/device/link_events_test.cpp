// The link and the peer behind it (E-43): events, failures when the link is down too long,
// keepalive.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "support/device_end.h"
#include "tests/support/soon.h"

namespace urnic {
namespace {

using Clock = std::chrono::steady_clock;

using Side = test::DeviceEnd;

struct LinkTest : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/urnic-link-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  Side make(const std::string& role, const std::string& timeout_ms) {
    Config c;
    EXPECT_TRUE(c.set("port", "memif:socket=" + directory + "/l.sock,role=" + role).ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    EXPECT_TRUE(c.set("link_timeout_ms", timeout_ms).ok());
    EXPECT_TRUE(c.set("keepalive", "off").ok());
    EXPECT_TRUE(c.set("keepalive_s", "1").ok());
    Side s(c);
    EXPECT_TRUE(s.device);
    EXPECT_TRUE(s.device.deliver_events(s.events, this).ok());
    return s;
  }
  static void connect(Side& server, Side& client, const ConnectionOptions& o = {}) {
    auto listener = server.device.listen(0);
    ASSERT_TRUE(listener.ok());
    ASSERT_TRUE(client.device.wait_link(10000) && server.device.wait_link(10000));
    std::thread accepting([&] {
      auto request = listener->next(10000);
      ASSERT_TRUE(request.ok());
      EXPECT_TRUE(request->accept(server.qp).ok());
    });
    const auto done = client.qp.connect("10.77.0.1:" + std::to_string(listener->port()), o);
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
    accepting.join();
  }
  // The next event of `kind`; other events are skipped.
  static Event next(Side& s, EventKind kind, int ms = 10000) {
    const auto until = Clock::now() + std::chrono::milliseconds(ms);
    Event e;
    while (Clock::now() < until) {
      if (s.events.wait(&e, 100) && e.kind == kind) return e;
    }
    ADD_FAILURE() << "no event " << static_cast<int>(kind);
    return {};
  }
  std::string directory;
};

// A link that comes back in time has no effect on connections.
// proves: E-43
TEST_F(LinkTest, DownAndUpAreEventsOfTheDevice) {
  Side client = make("client", "60000");
  {
    Side server = make("server", "60000");
    EXPECT_EQ(next(client, EventKind::link_up).context, this);
  }
  const Event down = next(client, EventKind::link_down);
  EXPECT_NE(down.error.message.find("the peer"), std::string::npos) << down.error.message;
  EXPECT_FALSE(client.device.info().link_reason.empty());
  EXPECT_FALSE(client.device.stats().port.link_reason.empty());
  EXPECT_EQ(client.device.stats().port.link_losses, 1u);
  Side again = make("server", "60000");
  next(client, EventKind::link_up);
  EXPECT_EQ(client.device.info().link_reason, "");
  EXPECT_EQ(client.device.stats().port.link_losses, 1u);
}

// proves: E-43
TEST_F(LinkTest, ProbesCanBeSetForEachConnection) {
  for (const bool on : {false, true}) {
    Side server = make("server", "60000"), client = make("client", "60000");
    ConnectionOptions o;
    o.iwarp.keepalive = on;
    connect(server, client, o);
    const auto sent = [&] { return client.qp.stats().iwarp.tcp.segments_out; };
    if (on) {
      // More than the start-up may still send.
      const auto before = sent();
      EXPECT_TRUE(test::soon([&] { return sent() >= before + 4; }));
    } else {
      // The start-up's last ACK, or packets that a busy machine has retransmitted, may come first.
      EXPECT_TRUE(test::soon([&] {
        const auto before = sent();
        std::this_thread::sleep_for(std::chrono::milliseconds(2500));
        return sent() == before;
      }));
    }
    EXPECT_EQ(client.qp.state(), QpState::rts);
  }
}

}  // namespace
}  // namespace urnic
