// The statistics socket (D10) never holds up the engine: it may be served by the thread that drives
// it.
#include "device/stat_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>

namespace urnic::engine {
namespace {

struct StatServerTest : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/urnic-stat-XXXXXX";
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
  port::Fd connect() const {
    port::Fd s(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    for (const auto& entry : std::filesystem::directory_iterator(stat_directory())) {
      std::strncpy(a.sun_path, entry.path().c_str(), sizeof a.sun_path - 1);
    }
    EXPECT_EQ(::connect(s.get(), reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
    return s;
  }
  // An answer larger than any socket buffer.
  static EngineStats much() {
    EngineStats s;
    s.connections.resize(1200);
    return s;
  }
  std::string directory, before;
};

TEST_F(StatServerTest, AReaderThatDoesNotReadHoldsUpNobody) {
  StatServer server(much);
  ASSERT_GE(server.fd(), 0);
  std::vector<port::Fd> slow;
  for (int i = 0; i < 10; ++i) {
    slow.push_back(connect());
    server.serve();
  }
  // One that reads gets all of it meanwhile, piece by piece.
  port::Fd reader = connect();
  std::string text;
  char buffer[65536];
  for (;;) {
    server.serve();
    const ssize_t n = recv(reader.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n == 0) break;
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
  }
  EXPECT_TRUE(stats_from_json(text).ok());
  EXPECT_EQ(text, stats_to_json(much()));
}

TEST_F(StatServerTest, OneCallNeverWaits) {
  StatServer server(much);
  const port::Fd silent = connect();
  server.serve();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 50; ++i) server.serve();  // 200 ms each, were it waiting
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace urnic::engine
