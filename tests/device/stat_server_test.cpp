// The statistics socket (D10) never delays the engine: the thread that drives the engine may serve
// it.
#include "device/stat_server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace urnic::device {
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
    s.connections.resize(kConnections);
    for (std::size_t i = 0; i < kConnections; ++i) {
      s.connections[i].qp_number = static_cast<std::uint32_t>(i);
    }
    return s;
  }
  StatSource source() {
    return {[] {
              EngineStats s = much();
              s.connections.clear();
              return s;
            },
            [this](StatsPlace* place, std::size_t most, std::vector<ConnectionStats>* out) {
              asked = std::max(asked, most);
              ++pieces;
              for (; most != 0 && place->iwarp < kConnections; --most) {
                out->push_back(all.connections[place->iwarp++]);
              }
              return place->iwarp < kConnections;
            }};
  }
  static constexpr std::size_t kConnections = 1200;
  const EngineStats all = much();
  std::size_t asked = 0, pieces = 0;
  std::string directory, before;
};

// Ends like programs of the drop-in: their devices stay open.
void end_with_a_server(void (*how)(int), const StatSource& source) {
  const pid_t child = fork();
  if (child == 0) {
    static StatServer* const stays = new StatServer(source);
    how(stays->fd() < 0 ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(StatServerTest, AnExitingProcessRemovesItsSocket) {
  end_with_a_server(exit, source());
  EXPECT_TRUE(std::filesystem::is_empty(stat_directory()));
}

TEST_F(StatServerTest, SocketsOfDeadProcessesAreRemoved) {
  end_with_a_server(_exit, source());
  const std::string folder = stat_directory();
  ASSERT_FALSE(std::filesystem::is_empty(folder));
  const std::string others[] = {folder + "/notes.sock", folder + "/1.sock", folder + "/12x.sock"};
  for (const std::string& file : others) std::ofstream(file) << "not ours";
  end_with_a_server(exit, source());
  for (const std::string& file : others) EXPECT_TRUE(std::filesystem::remove(file)) << file;
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(StatServerTest, AReaderThatDoesNotReadBlocksNoOther) {
  StatServer server(source());
  ASSERT_GE(server.fd(), 0);
  std::vector<port::Fd> slow;
  for (int i = 0; i < 10; ++i) {
    slow.push_back(connect());
    for (int k = 0; k < 12; ++k) server.serve();
  }
  // Meanwhile, a client that reads gets the whole answer, piece by piece.
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
  StatServer server(source());
  const port::Fd silent = connect();
  server.serve();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) server.serve();  // 200 ms each if it waited
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

// However many connections and clients there are, a call builds one piece of one answer.
TEST_F(StatServerTest, OneCallSendsOnePieceOfOneAnswer) {
  StatServer server(source());
  std::vector<port::Fd> readers;
  for (int i = 0; i < 4; ++i) readers.push_back(connect());
  std::size_t open = readers.size();
  std::vector<std::string> texts(readers.size());
  std::vector<bool> done(readers.size());
  char buffer[65536];
  for (int calls = 0; open != 0 && calls < 10'000; ++calls) {
    const std::size_t made = pieces;
    server.serve();
    ASSERT_LE(pieces, made + 1);
    for (std::size_t i = 0; i < readers.size(); ++i) {
      const ssize_t n = recv(readers[i].get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (n > 0) texts[i].append(buffer, static_cast<std::size_t>(n));
      if (n != 0 || done[i]) continue;
      done[i] = true;
      --open;
    }
  }
  EXPECT_EQ(asked, StatServer::kPiece);
  EXPECT_EQ(pieces, 4 * kConnections / StatServer::kPiece);
  for (const std::string& text : texts) EXPECT_EQ(text, stats_to_json(much()));
}

// The descriptor itself shows that there is more to send.
TEST_F(StatServerTest, TheDescriptorStaysReadableUntilAllIsSent) {
  StatServer server(source());
  const port::Fd reader = connect();
  pollfd p{server.fd(), POLLIN, 0};
  std::string text;
  char buffer[65536];
  while (poll(&p, 1, 0) == 1) {
    server.serve();
    for (ssize_t n; (n = recv(reader.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(n));
    }
  }
  EXPECT_EQ(text, stats_to_json(much()));
}

}  // namespace
}  // namespace urnic::device
