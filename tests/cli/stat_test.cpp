#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "cli/stat_client.h"

namespace urnic::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class StatSocketTest : public testing::Test {
 protected:
  StatSocketTest() {
    char name[] = "/tmp/urnic-stat-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~StatSocketTest() override {
    [[maybe_unused]] const int r = system(("rm -rf " + folder_).c_str());
  }

  int listen_at(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    std::memcpy(a.sun_path, path.c_str(), path.size() + 1);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
    EXPECT_EQ(listen(fd, 4), 0);
    return fd;
  }
  std::string folder_;
};

TEST_F(StatSocketTest, FindsSocketsOfLivingProcessesAndRemovesTheOthers) {
  const std::string me = std::to_string(getpid());
  for (const std::string& name : {me + ".sock", me + "-1.sock", std::string("4194305.sock"),
                                  std::string("x.sock"), std::string("7"), me + "x.sock"}) {
    std::ofstream(folder_ + "/" + name) << "";
  }
  auto found = find_stat_sockets(folder_);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].pid, static_cast<std::uint64_t>(getpid()));
  EXPECT_NE(access((folder_ + "/4194305.sock").c_str(), F_OK), 0) << "left by a dead process";
  EXPECT_EQ(access((folder_ + "/x.sock").c_str(), F_OK), 0) << "not ours to remove";
  EXPECT_TRUE(find_stat_sockets(folder_, 1).empty());
  EXPECT_TRUE(find_stat_sockets(folder_ + "/none").empty());
}

TEST_F(StatSocketTest, ReadsUntilTheEnd) {
  const std::string path = folder_ + "/1.sock";
  const int fd = listen_at(path);
  const std::string document(300'000, 'x');
  std::thread server([&] {
    const int c = accept(fd, nullptr, nullptr);
    for (std::size_t at = 0; at < document.size();) {
      const ssize_t n = write(c, document.data() + at, document.size() - at);
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    close(c);
  });
  auto text = read_stat_socket(path);
  server.join();
  close(fd);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, document);
}

TEST_F(StatSocketTest, AProcessThatDoesNotAnswerIsGivenUp) {
  const std::string path = folder_ + "/1.sock";
  const int fd = listen_at(path);
  const auto text = read_stat_socket(path, 100);
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.error().message, HasSubstr("does not answer"));
  close(fd);
  EXPECT_FALSE(read_stat_socket(path, 100).ok());
  EXPECT_FALSE(read_stat_socket(std::string(200, 'x'), 100).ok());
}

// It writes as long as it is read; the next process, which does not, is read in full.
TEST_F(StatSocketTest, AnAnswerThatDoesNotEndIsGivenUp) {
  const std::string path = folder_ + "/3.sock";
  const int fd = listen_at(path);
  std::uint64_t written = 0;
  std::thread process([&] {
    const std::vector<char> much(1 << 20, 'x');
    for (const bool endless : {true, false}) {
      const int one = accept(fd, nullptr, nullptr);
      for (ssize_t n = 0; endless; written += static_cast<std::uint64_t>(n)) {
        n = send(one, much.data(), much.size(), MSG_NOSIGNAL);
        if (n <= 0) break;
      }
      if (!endless) {
        EXPECT_EQ(send(one, "{}", 2, MSG_NOSIGNAL), 2);
      }
      close(one);
    }
  });
  auto endless = read_stat_socket(path, 2000);
  auto next = read_stat_socket(path, 2000);
  process.join();
  close(fd);
  ASSERT_FALSE(endless.ok());
  EXPECT_THAT(endless.error().message, HasSubstr("too long"));
  EXPECT_GE(written, std::uint64_t{256} << 20);
  EXPECT_LT(written, std::uint64_t{258} << 20);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(*next, "{}");
}

EngineStats sample() {
  EngineStats s;
  s.name = "urnic \"target\"";
  s.pid = 4711;
  s.port.spec = "memif:socket=/tmp/x";
  s.port.link_up = true;
  s.port.rx_frames = 1234567;
  s.ended.iwarp.bytes_fast = 600;
  ConnectionStats c;
  c.local = "10.77.0.1:18515";
  c.peer = "10.77.0.2:4";
  c.state = "established";
  c.iwarp.slow_reason = "downgraded";
  c.iwarp.bytes_fast = 300;
  c.iwarp.bytes_slow = 100;
  c.iwarp.downgrades = 2;
  c.iwarp.reasons[1] = 9;
  s.connections = {c};
  return s;
}

TEST(StatText, TableSumsConnectionsThatAreAndThatWere) {
  const std::string text = stat_table(sample());
  EXPECT_THAT(text, HasSubstr("1 234 567"));
  EXPECT_THAT(text, HasSubstr("90.00 % of 1000 B on the FAST path"));
  EXPECT_THAT(text, HasSubstr("2 downgrades"));
  EXPECT_THAT(text, HasSubstr("SLOW: downgraded"));
  EXPECT_THAT(text, HasSubstr("75.00 %"));
  EXPECT_THAT(text, HasSubstr(std::string(reason_label(1)) + " 9"));
}

TEST(StatText, CongestionOfRoceIsARowOfItsOwnWhereTheNetworkSaidAnything) {
  EngineStats s = sample();
  EXPECT_THAT(stat_table(s), Not(HasSubstr("windows closed")));
  RoceStats& r = s.ended.roce;
  r.window_cuts = 3;
  r.cnps_received = 4;
  r.cnps_ignored = 1;
  r.cnps_sent = 5;
  r.marks_received = 6;
  const std::string said =
      "windows closed 3 times; CNPs 4 in, of these 1 ignored, 5 out; 6 packets came with a CE mark";
  EXPECT_THAT(stat_table(s), HasSubstr("RoCE congestion"));
  EXPECT_THAT(stat_table(s), HasSubstr(said));
  // Each alone is enough.
  for (std::uint64_t RoceStats::*one : {&RoceStats::window_cuts, &RoceStats::cnps_received,
                                        &RoceStats::cnps_sent, &RoceStats::marks_received}) {
    EngineStats t = sample();
    t.ended.roce.*one = 1;
    EXPECT_THAT(stat_table(t), HasSubstr("windows closed"));
  }
}

// proves: E-48
TEST(StatText, EveryCounterIsShownInEveryForm) {
  EngineStats none = sample();
  none.ended.verbs.payload_placed = 1000;  // the copies are shown as a ratio to it
  const auto expect_shown = [&](const char* name, const std::string& metric, const EngineStats& s) {
    EXPECT_NE(stat_table(s), stat_table(none)) << name;
    EXPECT_THAT(stats_to_json(s), HasSubstr("\"" + std::string(name) + "\": 987654321")) << name;
    EXPECT_THAT(stat_prometheus({s}), HasSubstr("\nurnic_" + metric + "{")) << name;
    EXPECT_THAT(stat_prometheus({s}), HasSubstr("} 987654321\n")) << name;
  };
  for (const auto& c : connection_counters()) {
    EngineStats s = none;
    c.of(s.ended) = 0;
    c.of(s.connections[0]) = 987654321;
    expect_shown(c.name, std::string(c.name) + "_total", s);
  }
  for (const auto& c : engine_counters()) {
    EngineStats s = none;
    c.of(s) = 987654321;
    expect_shown(c.name, std::string(c.name) + "_total", s);
  }
  for (const auto& c : engine_gauges()) {
    EngineStats s = none;
    c.of(s) = 987654321;
    expect_shown(c.name, c.name, s);
  }
}

TEST(StatText, PrometheusNamesEachMetricOnceAndEscapesLabels) {
  const std::string text = stat_prometheus({sample(), sample()});
  EXPECT_THAT(text,
              HasSubstr("urnic_rx_frames_total{pid=\"4711\",name=\"urnic \\\"target\\\"\",port="
                        "\"memif:socket=/tmp/x\"} 1234567\n"));
  EXPECT_THAT(text, HasSubstr("urnic_connections{"));
  std::size_t types = 0;
  for (std::size_t at = 0;
       (at = text.find("# TYPE urnic_bytes_fast_total", at)) != std::string::npos; ++at)
    ++types;
  EXPECT_EQ(types, 1u);
  EXPECT_THAT(text, HasSubstr("} 900\n"));
}

}  // namespace
}  // namespace urnic::cli
