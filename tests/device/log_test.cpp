// Settings `log` and `log_file` (E-48): the lines, where they go, and what happens when they cannot
// be written.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "device/log.h"
#include "port/fd.h"
#include "support/quiet_fork.h"
#include "tests/support/soon.h"
#include "urnic/urnic.h"

namespace urnic {
namespace {

using testing::HasSubstr;
using testing::Not;

struct LogTest : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/urnic-log-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  Config config(const char* role, const std::string& level, const std::string& file) const {
    Config c;
    EXPECT_TRUE(c.set("port", "memif:socket=" + directory + "/w.sock,role=" + role).ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    EXPECT_TRUE(c.set("name", role).ok());
    EXPECT_TRUE(c.set("log", level).ok());
    EXPECT_TRUE(c.set("log_file", file).ok());
    return c;
  }
  // Makes and ends one connection between two devices.
  void run(const Config& server_config, const Config& client_config, std::uint64_t writes = 0) {
    auto server = Device::open(server_config), client = Device::open(client_config);
    ASSERT_TRUE(server.ok() && client.ok());
    ASSERT_TRUE(server->wait_link(10000) && client->wait_link(10000));
    auto listener = server->listen(4321);
    ASSERT_TRUE(listener.ok());
    auto spd = *server->alloc_pd(), cpd = *client->alloc_pd();
    QpOptions so, co;
    so.send_cq = so.receive_cq = *server->create_cq(8);
    co.send_cq = co.receive_cq = *client->create_cq(8);
    auto sq = *server->create_qp(spd, so), cq = *client->create_qp(cpd, co);
    std::thread accepting([&] {
      auto r = listener->next(10000);
      ASSERT_TRUE(r.ok());
      EXPECT_TRUE(r->accept(sq).ok());
    });
    EXPECT_TRUE(cq.connect("10.77.0.1:4321").ok());
    accepting.join();
    // Packets that are refused, if the configuration injects faults.
    char from[64] = {}, to[64] = {};  // the two devices' threads read and write at the same time
    auto smr =
        *server->register_memory(spd, to, sizeof to, access_local_write | access_remote_write);
    auto cmr = *client->register_memory(cpd, from, sizeof from, 0);
    const Sge sge{reinterpret_cast<std::uint64_t>(from), sizeof from, cmr.lkey()};
    for (std::uint64_t i = 0; i < writes; ++i) {
      SendRequest w;
      w.opcode = Opcode::write;
      w.sges = {&sge, 1};
      w.remote_address = smr.remote_address();
      w.rkey = smr.rkey();
      EXPECT_TRUE(cq.post_send(w).ok());
      Completion c[1];
      EXPECT_TRUE(test::soon([&] { return co.send_cq.poll(c) != 0; }));
    }
    cq.abort();
    EXPECT_TRUE(test::soon([&] {
      server->progress();
      return sq.state() == QpState::error;
    }));
    counted = sq.stats();
  }
  std::string read(const std::string& name) const {
    std::ifstream in(directory + "/" + name);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static std::size_t times(const std::string& log, const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = log.find(what, at)) != std::string::npos; ++at) ++n;
    return n;
  }
  std::string directory;
  ConnectionStats counted;  // at the server
};

// proves: E-48
TEST_F(LogTest, OneLineForEachEventOfAConnectionAtInfo) {
  run(config("server", "info", directory + "/s.log"),
      config("client", "error", directory + "/c.log"));
  const std::string log = read("s.log");
  EXPECT_THAT(log, HasSubstr(" info server["));
  EXPECT_THAT(log, HasSubstr("opened memif:"));
  EXPECT_THAT(log, HasSubstr("link up"));
  EXPECT_THAT(log, HasSubstr("10.77.0.1:4321 - 10.77.0.2:"));
  EXPECT_THAT(log, HasSubstr(": connect request (iWARP)\n"));
  EXPECT_THAT(log, HasSubstr(": established\n"));
  EXPECT_THAT(log, HasSubstr(": failed: "));
  EXPECT_EQ(read("c.log"), "");  // no error occurred there
}

// A reader that does not read blocks no thread: the oldest lines are dropped, and the latest are
// there when it reads again.
TEST_F(LogTest, AFullQueueDropsTheOldestAndBlocksNoThread) {
  const std::string pipe = directory + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const port::Fd reader(open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  // Full from the start, whenever the writing thread runs.
  const port::Fd filler(open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  const std::string zeroes(4096, '0');
  while (write(filler.get(), zeroes.data(), zeroes.size()) > 0) {
  }
  auto log = device::Log::open(config("server", "info", pipe));
  ASSERT_TRUE(log.ok() && *log != nullptr);
  const std::string padding(200, '.');
  for (int i = 0; i < 20'000; ++i) {
    (*log)->line(device::LogLevel::Info, "line " + std::to_string(i) + padding);
  }
  std::string text;
  std::thread reading([&] {
    char buffer[65536];
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (text.find("line 19999.") == std::string::npos &&
           std::chrono::steady_clock::now() < until) {
      pollfd p{reader.get(), POLLIN, 0};
      if (poll(&p, 1, 100) <= 0) continue;
      const ssize_t n = ::read(reader.get(), buffer, sizeof buffer);
      if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
    }
  });
  reading.join();
  EXPECT_THAT(text, HasSubstr("line 19000."));
  EXPECT_THAT(text, HasSubstr("line 19999."));
  EXPECT_LE(times(text, ": line "), 1024u + 1)
      << "those that wait, and the one that was being written";
}

// proves: E-48
TEST_F(LogTest, OneLineForEachRefusalAtDebug) {
  Config client = config("client", "off", "");
  ASSERT_TRUE(client.set("faults", "corrupt=0.5,seed=3").ok());
  run(config("server", "debug", directory + "/s.log"), client, 20);
  const std::string log = read("s.log");
  EXPECT_THAT(log, HasSubstr(" debug server["));
  EXPECT_THAT(log, HasSubstr("10.77.0.1:4321 - 10.77.0.2:"));
  EXPECT_THAT(log, HasSubstr(": segment dropped: "));
}

// proves: E-48
TEST_F(LogTest, OneLineForEachDowngradeAndUpgradeAtDebugAndNoneAtInfo) {
  Config client = config("client", "off", "");
  ASSERT_TRUE(client.set("faults", "reseg=0.3,skip_handshake=on,seed=5").ok());
  for (const char* level : {"debug", "info"}) {
    Config server = config("server", level, directory + "/" + level);
    ASSERT_TRUE(server.set("max_recovery_attempts", "1").ok());
    ASSERT_TRUE(server.set("upgrade_after", "1").ok());
    run(server, client, 300);
    const std::string log = read(level);
    const bool all = std::string(level) == "debug";
    EXPECT_GE(counted.iwarp.downgrades, 1u);
    EXPECT_GE(counted.iwarp.upgrades, 1u);
    EXPECT_EQ(times(log, ": downgraded to SLOW: "), all ? counted.iwarp.downgrades : 0);
    EXPECT_EQ(times(log, ": upgraded to FAST: "), all ? counted.iwarp.upgrades : 0);
    EXPECT_GE(times(log, ": segment dropped: "), all ? counted.iwarp.recovery_attempts : 0);
    EXPECT_EQ(times(log, ": segment dropped: ") != 0, all);
  }
}

// proves: E-48
TEST_F(LogTest, ARefusedConnectionIsOneLineAtDebug) {
  Config s = config("server", "debug", directory + "/s.log"), c = config("client", "off", "");
  ASSERT_TRUE(s.set("max_connections", "1").ok());
  auto server = Device::open(s), client = Device::open(c);
  ASSERT_TRUE(server.ok() && client.ok());
  ASSERT_TRUE(server->wait_link(10000) && client->wait_link(10000));
  auto listener = server->listen(4321);
  ASSERT_TRUE(listener.ok());
  auto pd = *client->alloc_pd();
  QpOptions o;
  o.send_cq = o.receive_cq = *client->create_cq(8);
  auto first = *client->create_qp(pd, o), second = *client->create_qp(pd, o);
  ASSERT_TRUE(first.connect_start("10.77.0.1:4321").ok());
  auto request = listener->next(10000);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(second.connect("10.77.0.1:4321").error().code, Errc::refused);
  request = Error{};
  listener = Error{};
  server = Error{};  // closed: its log is written
  EXPECT_THAT(read("s.log"), HasSubstr(": connection rejected: max_connections\n"));
}

// proves: E-48
TEST_F(LogTest, AFileThatCannotBeOpenedIsAnErrorOfTheDevice) {
  auto d = Device::open(config("server", "info", directory + "/no/such/folder"));
  ASSERT_FALSE(d.ok());
  EXPECT_THAT(d.error().message,
              HasSubstr("log_file " + directory + "/no/such/folder: No such file"));
}

// proves: E-48
TEST_F(LogTest, AFullDiskIsReportedOnce) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "/dev/full is not there";
  testing::internal::CaptureStderr();
  run(config("server", "info", "/dev/full"), config("client", "off", ""));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "urnic: log_file /dev/full: No space left on device; logging stopped\n");
}

TEST_F(LogTest, WithoutAFileItGoesToStandardErrorAndOffWritesNothing) {
  testing::internal::CaptureStderr();
  run(config("server", "info", ""), config("client", "off", ""));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr(" info server["));
  EXPECT_THAT(said, Not(HasSubstr("client[")));
}

// A forked child inherits neither the thread nor its lines.
TEST_F(LogTest, AForkDoesNotDisturbIt_D11) {
  auto d = std::make_unique<Device>(*Device::open(config("server", "debug", directory + "/s.log")));
  const pid_t pid = test::quiet_fork();
  if (pid == 0) {
    alarm(20);
    d.reset();
    _exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  d.reset();
  const std::string log = read("s.log");
  EXPECT_EQ(log.find("opened"), log.rfind("opened")) << log;
}

}  // namespace
}  // namespace urnic
