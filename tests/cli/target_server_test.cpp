// A target and its clients in one process, over the kernel's TCP.
#include "cli/transfer/target_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/transfer/incoming_file.h"
#include "cli/transfer/initiator.h"

namespace urnic::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class TargetServerTest : public ::testing::Test {
 protected:
  TargetServerTest() {
    char name[] = "/tmp/urnic-target-XXXXXX";
    root_ = mkdtemp(name);
    std::filesystem::create_directory(root_ + "/export");
    std::ofstream(root_ + "/f") << std::string(5000, 'x');
    folder_ = std::move(*open_folder(root_ + "/export"));
  }
  ~TargetServerTest() override {
    if (thread_.joinable()) {
      server_->stop();
      thread_.join();
    }
    server_.reset();
    std::filesystem::remove_all(root_);
  }
  // All clients here have the same address.
  Config config(const std::string& peer_connections = "0", bool server = false) const {
    Config c;
    const std::string roce = server ? "udp:bind=127.77.1.1" : "udp:bind=127.77.1.2";
    EXPECT_TRUE(c.set("port", roce_ ? roce : "tcp:bind=127.0.0.1").ok());
    EXPECT_TRUE(c.set("transport", roce_ ? "roce" : "iwarp").ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    if (!peer_connections.empty()) {
      EXPECT_TRUE(c.set("peer_connections", peer_connections).ok());
    }
    return c;
  }
  void serve(TargetServer::Options o, const std::string& peer_connections = "0") {
    o.session.folder = folder_.get();
    o.tcp_port = 0;
    auto opened = TargetServer::open(config(peer_connections, true), o);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    server_ = std::move(*opened);
    thread_ = std::thread([this] { server_->run(); });
  }
  Result<std::unique_ptr<Initiator>> connect(const std::optional<StorageToken>& token = {}) {
    InitiatorOptions o;
    o.token = token;
    return Initiator::connect(
        config(), {(roce_ ? "127.77.1.1:" : "127.0.0.1:") + std::to_string(server_->tcp_port())},
        o);
  }
  std::string put(Initiator& client, const std::string& name) {
    auto from = LocalSource::open(root_ + "/f");
    EXPECT_TRUE(from.ok());
    const auto done = client.put(*from, name, {}, [](std::uint64_t, std::uint64_t) {});
    return done.ok() ? "" : done.error().message;
  }
  // Retries after a refusal until there is a place: the target may need a moment to detect that a
  // client has left.
  bool connects_soon() {
    const double until = now_seconds() + 60;
    while (!connect().ok()) {
      if (now_seconds() > until) return false;
      usleep(20'000);
    }
    return true;
  }
  std::size_t files() const { return folder_usage(folder_.get()).files; }

  bool roce_ = false;  // over the kernel's UDP; otherwise iWARP over its TCP
  std::string root_;
  FileDescriptor folder_;
  std::unique_ptr<TargetServer> server_;
  std::thread thread_;
};

TEST_F(TargetServerTest, ClientsAreLimitedAndAPlaceIsReused) {
  TargetServer::Options o;
  o.max_clients = 2;
  o.session.idle_grace = o.session.stall_limit = 1e6;
  serve(std::move(o));
  auto one = connect(), two = connect();
  ASSERT_TRUE(one.ok() && two.ok());
  const auto third = connect();
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, Errc::rejected) << third.error().message;
  EXPECT_EQ(put(**two, "there"), "");
  one->reset();
  EXPECT_TRUE(connects_soon());
}

TEST_F(TargetServerTest, OneAddressHasAQuarterOfThePlaces) {
  TargetServer::Options o;
  o.max_clients = 8;
  o.session.idle_grace = o.session.stall_limit = 1e6;
  serve(std::move(o), "");
  auto one = connect(), two = connect();
  ASSERT_TRUE(one.ok() && two.ok());
  const auto third = connect();
  ASSERT_FALSE(third.ok());
  EXPECT_THAT(third.error().message, EndsWith("(--peer-connections)"));
  EXPECT_EQ(put(**two, "there"), "");
}

TEST_F(TargetServerTest, AnOptionGivesOneAddressMoreThanAQuarter) {
  TargetServer::Options o;
  o.max_clients = 8;
  o.session.idle_grace = o.session.stall_limit = 1e6;
  serve(std::move(o), "3");
  auto one = connect(), two = connect(), three = connect();
  EXPECT_TRUE(one.ok() && two.ok() && three.ok());
  EXPECT_FALSE(connect().ok());
}

TEST_F(TargetServerTest, AtTheLimitTheLongestIdleClientIsReplaced) {
  for (const char* of_peer : {"0", ""}) {  // for all clients, and per address
    TargetServer::Options o;
    o.max_clients = *of_peer == '\0' ? 8 : 2;
    o.session.idle_grace = 0;
    o.session.stall_limit = 1e6;
    serve(std::move(o), of_peer);
    auto one = connect(), two = connect();
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_EQ(put(**one, "there"), "");  // now the other client has been idle for longer
    auto third = connect();
    ASSERT_TRUE(third.ok()) << third.error().message;
    EXPECT_EQ(put(**third, "there"), "");
    EXPECT_EQ(put(**one, "there"), "");
    EXPECT_NE(put(**two, "there"), "");
    server_->stop();
    thread_.join();
  }
}

TEST_F(TargetServerTest, AClientWithoutAFileIsDroppedAfterTheTimeout) {
  for (const bool roce : {false, true}) {
    roce_ = roce;
    TargetServer::Options o;
    o.session.stall_limit = 0.3;
    serve(std::move(o));
    const auto client = connect();  // may take longer than its timeout; then it is dropped too
    const double until = now_seconds() + 60;
    while (server_->clients_served() == 0 && now_seconds() < until) usleep(20'000);
    EXPECT_EQ(server_->clients_served(), 1u) << roce;
    server_->stop();
    thread_.join();
  }
}

TEST(WindowBudget, OneAddressGetsOnlyItsShareOfTheMemory) {
  constexpr std::uint64_t kMiB = 1 << 20;
  WindowBudget b(128 * kMiB, 32 * kMiB);
  unsigned clients = 0;
  for (; clients < 64; ++clients) {
    const std::uint64_t bytes = b.offer("10.0.0.1", 32 * kMiB);
    if (bytes < WindowBudget::kLeast) break;
    b.take("10.0.0.1", bytes);
  }
  EXPECT_GE(clients, 8u) << "who comes first leaves something";
  EXPECT_EQ(b.left(), 96 * kMiB);
  EXPECT_TRUE(b.is_used_up_by("10.0.0.1"));
  EXPECT_FALSE(b.is_used_up_by("10.0.0.2"));
  EXPECT_EQ(b.offer("10.0.0.2", 4 * kMiB), 4 * kMiB);
  b.give_back("10.0.0.1", kMiB);
  EXPECT_EQ(b.offer("10.0.0.1", 4 * kMiB), kMiB);
}

TEST_F(TargetServerTest, WindowMemoryIsLimitedAndReleasedWhenAClientLeaves) {
  TargetServer::Options o;
  o.memory = 5 << 20;
  o.session.idle_grace = o.session.stall_limit = 1e6;
  serve(std::move(o));
  std::vector<std::unique_ptr<Initiator>> clients;
  for (auto c = connect(); c.ok(); c = connect()) {
    clients.push_back(std::move(*c));
    ASSERT_LT(clients.size(), 64u);
  }
  ASSERT_FALSE(clients.empty());
  EXPECT_EQ(put(*clients.back(), "there"), "");
  clients.pop_back();
  EXPECT_TRUE(connects_soon());
}

// proves: E-38
TEST_F(TargetServerTest, OldPartsAreDeletedAtTheStartAndWithALaterClient) {
  const std::string part = root_ + "/export/" + temporary_name("x");
  const auto make_old = [&] {
    std::ofstream(part) << "half";
    const timespec times[2] = {{0, UTIME_OMIT}, {std::time(nullptr) - 8 * 24 * 3600, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, part.c_str(), times, 0), 0);
  };
  make_old();
  TargetServer::Options o;
  o.parts_every = 0;
  serve(o);
  EXPECT_FALSE(std::filesystem::exists(part));
  make_old();
  auto client = connect();
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(put(**client, "y"), "");
  EXPECT_FALSE(std::filesystem::exists(part));
}

TEST_F(TargetServerTest, AReadOnlyTargetDeletesNothing) {
  const std::string part = root_ + "/export/" + temporary_name("x");
  std::ofstream(part) << "half";
  const timespec times[2] = {{0, UTIME_OMIT}, {1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, part.c_str(), times, 0), 0);
  TargetServer::Options o;
  o.session.read_only = true;
  serve(o);
  EXPECT_TRUE(std::filesystem::exists(part));
}

// proves: AC-8
TEST_F(TargetServerTest, AClientWithoutTheTokenIsRefusedInOneLine) {
  TargetServer::Options o;
  o.token = StorageToken::of("0123456789abcdef");
  serve(o);
  auto none = connect(), other = connect(StorageToken::of("0123456789abcdeg"));
  ASSERT_FALSE(none.ok() || other.ok());
  EXPECT_EQ(none.error().code, Errc::rejected);
  EXPECT_THAT(none.error().message,
              EndsWith(": the target refuses: a token is required (--token-file)"));
  EXPECT_THAT(other.error().message, EndsWith(": the target refuses: wrong token (--token-file)"));
  auto right = connect(o.token);
  ASSERT_TRUE(right.ok()) << right.error().message;
  EXPECT_EQ(put(**right, "f"), "");
}

// proves: AC-6
TEST_F(TargetServerTest, APutOverTheQuotaFailsWithOneLineAndLeavesNothing) {
  std::ofstream(root_ + "/export/old") << std::string(4000, 'o');
  TargetServer::Options o;
  o.quota = std::make_shared<Quota>(folder_.get(), QuotaLimits{.bytes = 10000});
  serve(o);
  auto client = connect();
  ASSERT_TRUE(client.ok()) << client.error().message;
  EXPECT_EQ(put(**client, "a"), "");
  EXPECT_THAT(put(**client, "b"), HasSubstr("target: b: exceeds the target's quota of 9.77 KiB"));
  EXPECT_EQ(files(), 2u);
  EXPECT_EQ(put(**client, "a"), "") << "the connection goes on, and what is replaced makes room";
  auto to = LocalDestination::open(root_ + "/back");
  ASSERT_TRUE(to.ok());
  EXPECT_TRUE((*client)->get("old", *to, {}, [](std::uint64_t, std::uint64_t) {}).ok());
}

}  // namespace
}  // namespace urnic::cli
