// The timer for work that follows the engine's activity, and the publication of counters by it.
#include "device/activity_timer.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "counters/files.h"
#include "device/counter_report.h"
#include "support/device_end.h"
#include "tests/support/soon.h"

namespace urnic::device {
namespace {

bool is_readable(int fd, int most_ms) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, most_ms) == 1;
}

TEST(ActivityTimerTest, ExpiresOnceAfterActivity) {
  ActivityTimer t;
  ASSERT_TRUE(t.open(Duration::ms(1)));
  EXPECT_FALSE(is_readable(t.fd(), 20));  // nothing has happened
  t.active();
  EXPECT_TRUE(is_readable(t.fd(), 10000));
  t.active();
  t.stop();
  EXPECT_FALSE(is_readable(t.fd(), 20));
  t.active();
  EXPECT_TRUE(is_readable(t.fd(), 10000));
}

TEST(ActivityTimerTest, TheDistanceCanChange) {
  ActivityTimer t;
  ASSERT_TRUE(t.open(Duration::s(3600)));
  t.set_distance(Duration::ms(1500));
  t.active();
  EXPECT_FALSE(is_readable(t.fd(), 100));
  EXPECT_TRUE(is_readable(t.fd(), 10000));
}

TEST(ActivityTimerTest, WithoutADescriptorItDoesNothing) {
  ActivityTimer t;
  t.active();
  EXPECT_EQ(t.fd(), -1);
}

struct CounterReportTest : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/urnic-report-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
    const char* old = getenv("XDG_RUNTIME_DIR");
    before = old == nullptr ? "" : old;
    setenv("XDG_RUNTIME_DIR", name, 1);
  }
  void TearDown() override {
    before.empty() ? unsetenv("XDG_RUNTIME_DIR") : setenv("XDG_RUNTIME_DIR", before.c_str(), 1);
    std::filesystem::remove_all(directory);
  }
  static std::uint64_t value(const std::string& path, const std::string& port) {
    counters::DeviceName device;
    EXPECT_TRUE(counters::set_name(&device, "", port.c_str()));
    const counters::FolderLock lock(stat_directory().c_str());
    const counters::Sum sum = counters::add_up(lock.folder(), device);
    for (std::size_t i = 0; i < sum.entries; ++i) {
      if (path == sum.entry[i].path) return sum.entry[i].value;
    }
    return 0;
  }
  Config config(const std::string& role) const {
    Config c;
    EXPECT_TRUE(c.set("port", port(role)).ok());
    return c;
  }
  std::string port(const std::string& role) const {
    return "memif:socket=" + directory + "/l.sock,role=" + role;
  }
  std::string directory, before;
};

// The addresses are announced, so each end sends and receives something.
TEST_F(CounterReportTest, ADeviceIsSeenWhileItRunsAndAfterwards) {
  const auto frames = [&](const std::string& role) {
    return value("counters/port_xmit_packets", port(role));
  };
  std::uint64_t sent = 0;
  {
    test::DeviceEnd server(config("server")), client(config("client"));
    ASSERT_TRUE(client.device.wait_link(10000) && server.device.wait_link(10000));
    EXPECT_TRUE(test::soon([&] { return frames("client") != 0 && frames("server") != 0; }));
    EXPECT_TRUE(
        test::soon([&] { return frames("client") == client.device.stats().port.tx_frames; }));
    sent = frames("client");
  }
  EXPECT_GE(frames("client"), sent);
  for (const auto& e : std::filesystem::directory_iterator(stat_directory())) {
    const std::string name = e.path().filename();
    EXPECT_TRUE(!name.ends_with(counters::kEnding) || name.starts_with(counters::kTotals)) << name;
  }
}

TEST_F(CounterReportTest, AHiddenDeviceIsNotSeen) {
  Config c = config("server");
  ASSERT_TRUE(c.set("stat", "off").ok());
  {
    test::DeviceEnd server(c), client(config("client"));
    ASSERT_TRUE(client.device.wait_link(10000) && server.device.wait_link(10000));
  }
  EXPECT_NE(value("counters/port_xmit_packets", port("client")), 0u);
  EXPECT_EQ(value("counters/port_xmit_packets", port("server")), 0u);
}

// Live connections are added to those that have ended, some at a time.
TEST_F(CounterReportTest, ConnectionsAreAddedUp) {
  std::size_t asked = 0;
  ASSERT_TRUE(has_stat_directory());
  StatSource source{[] {
                      EngineStats s;
                      s.ended.roce.rnr_naks_sent = 1000;
                      return s;
                    },
                    [&](StatsPlace* place, std::size_t most, std::vector<ConnectionStats>* out) {
                      asked = most;
                      out->resize(1);
                      out->back().roce.rnr_naks_sent = ++place->roce;
                      return place->roce < 4;
                    }};
  std::string said;
  CounterReport report(source, "", "udp", [&](const std::string& why) { said += why; });
  EXPECT_GE(report.publish(), CounterReport::kDistance);
  EXPECT_EQ(value("hw_counters/send_rnr_err", "udp"), 1010u);
  EXPECT_EQ(asked, CounterReport::kPiece);
  EXPECT_EQ(said, "");
}

TEST_F(CounterReportTest, PublishingGetsAHundredthOfTheTime) {
  StatSource source{[] {
                      usleep(20000);
                      return EngineStats();
                    },
                    [](auto...) { return false; }};
  CounterReport report(source, "", "udp", [](const std::string&) {});
  EXPECT_GE(report.publish(), Duration::ms(2000));
}

TEST_F(CounterReportTest, SaysOnceThatItCannot) {
  StatSource source{[] {
                      EngineStats s;
                      s.port.tx_frames = 1;
                      return s;
                    },
                    [](auto...) { return false; }};
  std::vector<std::string> said;  // the folder does not exist
  CounterReport report(source, "", "udp", [&](const std::string& why) { said.push_back(why); });
  report.publish();
  report.publish();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find(stat_directory() + ": No such file"), std::string::npos) << said[0];
}

}  // namespace
}  // namespace urnic::device
