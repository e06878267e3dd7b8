// A target and its clients in one process, over the kernel's TCP.
#include "cli/target_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/incoming_file.h"
#include "cli/initiator.h"

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
  static Config config() {
    Config c;
    EXPECT_TRUE(c.set("port", "tcp:bind=127.0.0.1").ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    return c;
  }
  void serve(TargetServer::Options o) {
    o.session.folder = folder_.get();
    o.tcp_port = 0;
    auto opened = TargetServer::open(config(), o);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    server_ = std::move(*opened);
    thread_ = std::thread([this] { server_->run(); });
  }
  Result<std::unique_ptr<Initiator>> connect(const std::optional<StorageToken>& token = {}) {
    InitiatorOptions o;
    o.token = token;
    return Initiator::connect(config(), {"127.0.0.1:" + std::to_string(server_->tcp_port())}, o);
  }
  std::string put(Initiator& client, const std::string& name) {
    auto from = LocalSource::open(root_ + "/f");
    EXPECT_TRUE(from.ok());
    const auto done = client.put(*from, name, {}, [](std::uint64_t, std::uint64_t) {});
    return done.ok() ? "" : done.error().message;
  }
  // Once it is refused, until there is room again: who has gone may take a moment to be noticed.
  bool connects_soon() {
    const double until = now_seconds() + 60;
    while (!connect().ok()) {
      if (now_seconds() > until) return false;
      usleep(20'000);
    }
    return true;
  }
  std::size_t files() const { return folder_usage(folder_.get()).files; }

  std::string root_;
  FileDescriptor folder_;
  std::unique_ptr<TargetServer> server_;
  std::thread thread_;
};

TEST_F(TargetServerTest, SoManyClientsAndOneMoreWhenOneHasGone) {
  TargetServer::Options o;
  o.max_clients = 2;
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

TEST_F(TargetServerTest, WindowsOfAllClientsHaveABoundAndAreFreeWhenOneGoes) {
  TargetServer::Options o;
  o.memory = 5 << 20;
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
TEST_F(TargetServerTest, OldPartsGoWhenItStartsAndWithALaterClient) {
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

TEST_F(TargetServerTest, OneThatOnlyReadsTakesNothingAway) {
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
TEST_F(TargetServerTest, WhoDoesNotSayTheTokenIsRefusedInOneLine) {
  TargetServer::Options o;
  o.token = StorageToken::of("0123456789abcdef");
  serve(o);
  auto none = connect(), other = connect(StorageToken::of("0123456789abcdeg"));
  ASSERT_FALSE(none.ok() || other.ok());
  EXPECT_EQ(none.error().code, Errc::rejected);
  EXPECT_THAT(none.error().message,
              EndsWith(": the target refuses: it asks for a token (--token-file)"));
  EXPECT_THAT(other.error().message,
              EndsWith(": the target refuses: the token is not its own (--token-file)"));
  auto right = connect(o.token);
  ASSERT_TRUE(right.ok()) << right.error().message;
  EXPECT_EQ(put(**right, "f"), "");
}

// proves: AC-6
TEST_F(TargetServerTest, APutOverTheQuotaIsOneLineAndLeavesNothing) {
  std::ofstream(root_ + "/export/old") << std::string(4000, 'o');
  TargetServer::Options o;
  o.quota = std::make_shared<Quota>(folder_.get(), QuotaLimits{.octets = 10000});
  serve(o);
  auto client = connect();
  ASSERT_TRUE(client.ok()) << client.error().message;
  EXPECT_EQ(put(**client, "a"), "");
  EXPECT_THAT(put(**client, "b"), HasSubstr("target: b: over the target's quota of 9.77 KiB"));
  EXPECT_EQ(files(), 2u);
  EXPECT_EQ(put(**client, "a"), "") << "the connection goes on, and what is replaced makes room";
  auto to = LocalDestination::open(root_ + "/back");
  ASSERT_TRUE(to.ok());
  EXPECT_TRUE((*client)->get("old", *to, {}, [](std::uint64_t, std::uint64_t) {}).ok());
}

}  // namespace
}  // namespace urnic::cli
