// How a memif connection begins and ends: addresses, roles, secrets, a peer that leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <thread>

#include "port/memif_check.h"

namespace urnic::port {
namespace {

using check::Both;
using check::Child;
using check::Folder;
using check::link_both;
using check::must_open;
using check::receive_one;
using check::send_one;
using check::turn_until;
using ::testing::HasSubstr;

std::string error_of(const std::string& spec) {
  auto p = Port::open(spec);
  return p.ok() ? "(opened)" : p.error();
}

// ---- addresses ----

TEST(MemifPort, AbstractSocketsWork) {
  const std::string at = "memif:socket=@urnic-test-" + std::to_string(getpid());
  Port server = must_open(at + ",role=server");
  EXPECT_THAT(error_of(at + ",role=server"), HasSubstr("another server"));
  Port client = must_open(at + ",role=client");
  ASSERT_TRUE(link_both(server, client));
  ASSERT_TRUE(send_one(client, 0, check::pattern(64, 1)));
  EXPECT_EQ(receive_one(server, 0), check::pattern(64, 1));
}

TEST(MemifPort, ALiveServerIsNotReplaced) {
  Folder f;
  const std::string at = "memif:socket=" + f.file("s");
  Port server = must_open(at + ",role=server");
  EXPECT_THAT(error_of(at + ",role=server"), HasSubstr("another server is listening"));
  Port client = must_open(at + ",role=client");
  EXPECT_TRUE(link_both(server, client));
}

TEST(MemifPort, ADeadServersSocketIsReplaced) {
  Folder f;
  const std::string at = "memif:socket=" + f.file("s") + ",role=server";
  {
    Child server([&] {
      auto p = Port::open(at);
      if (!p.ok()) return 1;
      for (;;) pause();
    });
    ASSERT_TRUE(check::appears(f.file("s")));
    server.kill_now();
  }
  ASSERT_EQ(access(f.file("s").c_str(), F_OK), 0) << "the file stays behind";
  Port server = must_open(at);
  EXPECT_TRUE(server);
  server = Port();
  EXPECT_NE(access(f.file("s").c_str(), F_OK), 0) << "an orderly end removes it";
  EXPECT_NE(access((f.file("s") + ".lock").c_str(), F_OK), 0);
}

TEST(MemifPort, OnlySocketFilesAreReplaced) {
  Folder f;
  FILE* file = fopen(f.file("s").c_str(), "w");
  fputs("precious", file);
  fclose(file);
  EXPECT_THAT(error_of("memif:socket=" + f.file("s") + ",role=server"),
              HasSubstr("exists but is not a socket; use another path"));
  EXPECT_EQ(std::filesystem::file_size(f.file("s")), 8u);
}

TEST(MemifPort, AutoTakesTheRoleThatIsFree) {
  Folder f;
  const std::string at = "memif:socket=" + f.file("s");
  Port first = must_open(at);
  Port second = must_open(at + ",role=auto");
  EXPECT_EQ(first.info().server_side, 1);
  EXPECT_EQ(second.info().server_side, 0);
  EXPECT_TRUE(link_both(first, second));
}

TEST(MemifPort, ManyServersStartedAtOnceLeaveExactlyOne) {
  Folder f;
  const std::string at = "memif:socket=" + f.file("s") + ",role=server";
  for (int round = 0; round < 3; ++round) {
    int tried[2], over[2];
    ASSERT_TRUE(pipe(tried) == 0 && pipe(over) == 0);
    std::vector<std::unique_ptr<Child>> children;
    children.reserve(6);
    for (int i = 0; i < 6; ++i) {
      children.push_back(std::make_unique<Child>([&] {
        alarm(60);
        close(over[1]);
        auto p = Port::open(at);
        if (!p.ok()) return p.error().find("another server") != std::string::npos ? 10 : 20;
        close(tried[1]);  // like the other processes
        char none;
        return read(over[0], &none, 1) == 0 ? 0 : 30;  // keeps the socket until all have tried
      }));
    }
    close(tried[1]);
    close(over[0]);
    char none;
    EXPECT_EQ(read(tried[0], &none, 1), 0);
    close(tried[0]);
    close(over[1]);
    int won = 0, told = 0;
    for (auto& c : children) {
      const int r = c->wait();
      won += r == 0;
      told += r == 10;
    }
    EXPECT_EQ(won, 1);
    EXPECT_EQ(told, 5);
  }
}

TEST(MemifPort, WrongKeysAreExplained) {
  EXPECT_THAT(error_of("memif:"), HasSubstr("socket="));
  EXPECT_THAT(error_of("memif:socket=/tmp/x,role=master"), HasSubstr("server, client or auto"));
  EXPECT_THAT(error_of("memif:socket=/tmp/x,mtu=9000,bsize=2048"), HasSubstr("at least 9018"));
  EXPECT_THAT(error_of("memif:socket=/tmp/x,rsize=20"), HasSubstr("3 to 14"));
  EXPECT_THAT(error_of("memif:socket=/tmp/x,queues=200,rsize=14,bsize=65600"), HasSubstr("4 GiB"));
  EXPECT_THAT(error_of("memif:socket=/tmp/x,secret=1234567890123456789012345"), HasSubstr("24"));
  EXPECT_THAT(error_of("memif:socket=/tmp/" + std::string(120, 'x')), HasSubstr("107"));
  EXPECT_THAT(error_of("memif:role=server,socket=/nonexistent/folder/s"),
              HasSubstr("No such file"));
}

TEST(MemifPort, TheSecretMustMatch) {
  struct {
    const char *server, *client;
    bool links;
  } const cases[] = {{",secret=abc", ",secret=abc", true},
                     {",secret=123456789012345678901234", ",secret=123456789012345678901234", true},
                     {",secret=abc", ",secret=abd", false},
                     {",secret=abc", ",secret=abcd", false},
                     {",secret=abc", "", false},
                     {"", ",secret=abc", true}};
  for (const auto& c : cases) {
    Folder f;
    Port server = must_open("memif:role=server,socket=" + f.file("s") + c.server);
    Port client = must_open("memif:role=client,socket=" + f.file("s") + c.client);
    EXPECT_EQ(turn_until([&] { return client.info().link_up && server.info().link_up; },
                         {&server, &client}, c.links ? 5000 : 150),
              c.links)
        << c.server << " " << c.client;
  }
}

TEST(MemifPort, AnotherIdIsRefused) {
  Folder f;
  Port server = must_open("memif:role=server,id=3,socket=" + f.file("s"));
  Port wrong = must_open("memif:role=client,id=4,socket=" + f.file("s"));
  EXPECT_FALSE(turn_until([&] { return wrong.info().link_up == 1; }, {&server, &wrong}, 150));
  Port right = must_open("memif:role=client,id=3,socket=" + f.file("s"));
  EXPECT_TRUE(link_both(server, right));
}

TEST(MemifPort, ASecondClientWaitsUntilTheFirstLeaves) {
  Folder f;
  const std::string at = "memif:socket=" + f.file("s");
  Port server = must_open(at + ",role=server");
  Port first = must_open(at + ",role=client");
  ASSERT_TRUE(link_both(server, first));
  Port second = must_open(at + ",role=client");
  EXPECT_FALSE(
      turn_until([&] { return second.info().link_up == 1; }, {&server, &first, &second}, 150));
  EXPECT_EQ(first.info().link_up, 1);
  first = Port();
  EXPECT_TRUE(turn_until([&] { return second.info().link_up == 1; }, {&server, &second}));
}

// ---- the peer leaves ----

TEST(MemifPort, FramesSentBeforeTheEndAreStillReceived) {
  Both b;
  ASSERT_TRUE(b.link());
  check::idle_turn(b.server);
  for (std::uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(send_one(b.client, 0, check::pattern(99, i)));
  b.client = Port();
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(receive_one(b.server, 0), check::pattern(99, i));
  EXPECT_TRUE(turn_until([&] { return b.server.info().link_up == 0; }, {&b.server}));
}

// proves: E-32
TEST(MemifPort, BorrowedFramesOutliveThePeer) {
  Both b;
  ASSERT_TRUE(b.link());
  ASSERT_TRUE(send_one(b.client, 0, check::pattern(500, 7)));
  Frame f;
  ASSERT_TRUE(turn_until([&] { return b.server.rx_burst(0, &f, 1) == 1; }, {}));
  b.client = Port();
  Frame none;
  for (int i = 0; i < 5000; ++i) b.server.tx_reserve(0, 64, &none, 1);
  EXPECT_EQ(check::joined(f), check::pattern(500, 7));
  b.server.rx_release(0, &f, 1);
  EXPECT_TRUE(turn_until([&] { return b.server.info().link_up == 0; }, {&b.server}));
  EXPECT_EQ(b.server.tx_reserve(0, 64, &none, 1), 0u);
}

TEST(MemifPort, ASleeperIsWokenWhenThePeerLeaves) {
  Both b;
  ASSERT_TRUE(b.link());
  while (b.server.arm(0)) check::idle_turn(b.server);
  int fd = -1;
  b.server.wait_fds(0, &fd, 1);
  pollfd p{fd, POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, 0), 0);
  b.client = Port();
  EXPECT_EQ(poll(&p, 1, 1000), 1);
  b.server.disarm(0);
  check::idle_turn(b.server);
  EXPECT_EQ(b.server.info().link_up, 0);
}

TEST(MemifPort, TheLinkComesBackAndTheEpochRises) {
  Both b;
  ASSERT_TRUE(b.link());
  const std::string at = "memif:socket=" + b.folder.file("m.sock");
  const auto epoch = b.client.info().link_epoch;
  b.server = Port();
  ASSERT_TRUE(turn_until([&] { return b.client.info().link_up == 0; }, {&b.client}));
  b.server = must_open(at + ",role=server");
  ASSERT_TRUE(b.link());
  EXPECT_EQ(b.client.info().link_epoch, epoch + 1);
  ASSERT_TRUE(send_one(b.client, 0, check::pattern(64, 5)));
  EXPECT_EQ(receive_one(b.server, 0), check::pattern(64, 5));
}

TEST(MemifPort, AForkedChildMayCloseItsCopy) {
  Both b;
  ASSERT_TRUE(b.link());
  Child child([&] {
    b.server = Port();
    b.client = Port();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  for (int i = 0; i < 5000; ++i) check::idle_turn(b.server);
  EXPECT_EQ(b.server.info().link_up, 1);
  EXPECT_EQ(access(b.folder.file("m.sock").c_str(), F_OK), 0);
  ASSERT_TRUE(send_one(b.client, 0, check::pattern(64, 5)));
  EXPECT_EQ(receive_one(b.server, 0), check::pattern(64, 5));
}

// Frames in both directions until the time is over or the peer is gone.
void exchange(Port& p, std::uint64_t ms) {
  const std::uint64_t end = check::monotonic_ms() + ms;
  std::uint32_t x = 1;
  for (std::uint32_t i = 0; check::monotonic_ms() < end; ++i) {
    Frame f[kBurst];
    unsigned n = p.rx_burst(0, f, kBurst);
    p.rx_release(0, f, n);
    x = x * 1664525 + 1013904223;
    n = p.tx_reserve(0, 60 + (x >> 20) % 1400, f, 1 + (x >> 27));
    for (unsigned k = 0; k < n; ++k) std::memset(f[k].data[0], static_cast<int>(k), f[k].len[0]);
    p.tx_commit(0, f, n);
    if (x % 7 == 0) check::sleep_on(p, 0, 1);
  }
}

void survive_killed_peers(const char* own_role, const char* peer_role) {
  srand(1);
  Folder f;
  const std::string at = "memif:socket=" + f.file("s");
  std::unique_ptr<Child> peer;
  const auto start_peer = [&] {
    peer = std::make_unique<Child>([&] {
      auto p = Port::open(at + peer_role);
      if (!p.ok()) return 1;
      exchange(*p, 60'000);
      return 0;
    });
  };
  start_peer();  // before our port exists, so that the child inherits none of it
  Port own;
  std::uint64_t moved = 0;
  for (int round = 0; round < 24; ++round) {
    if (round != 0) start_peer();
    if (!own) own = must_open(at + own_role);
    ASSERT_TRUE(turn_until([&] { return own.info().link_up == 1; }, {&own})) << round;
    const auto before = own.stats();
    exchange(own, static_cast<std::uint64_t>(rand() % 25));
    peer->kill_now();
    exchange(own, 20);
    const auto after = own.stats();
    moved += after.rx_frames - before.rx_frames;
    ASSERT_TRUE(turn_until([&] { return own.info().link_up == 0; }, {&own})) << round;
    EXPECT_EQ(after.rx_bad, 0u);
  }
  EXPECT_GT(moved, 0u);
  EXPECT_EQ(own.info().link_epoch, 24u);
}

TEST(MemifPort, AServerSurvivesClientsKilledUnderLoad) {
  survive_killed_peers(",role=server", ",role=client");
}
TEST(MemifPort, AClientSurvivesServersKilledUnderLoad) {
  survive_killed_peers(",role=client", ",role=server");
}

}  // namespace
}  // namespace urnic::port
