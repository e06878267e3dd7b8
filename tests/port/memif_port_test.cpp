#include "port/memif_port.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
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

TEST(MemifPort, BothRolesCarryFramesOfEverySize) {
  for (std::uint32_t mtu : {1500u, 4096u, 9000u, 65521u}) {
    Both b(",mtu=" + std::to_string(mtu));
    ASSERT_TRUE(b.link());
    EXPECT_EQ(b.server.info().max_frame, mtu + 14);
    EXPECT_EQ(b.server.info().server_side, 1);
    EXPECT_EQ(b.client.info().server_side, 0);
    for (std::uint32_t len = 60; len <= mtu + 14; len = len < mtu + 13 ? (len * 5 / 4) : len + 1) {
      len = std::min(len, mtu + 14);
      const auto sent = check::pattern(len, len);
      ASSERT_TRUE(send_one(b.client, 0, sent));
      ASSERT_EQ(receive_one(b.server, 0), sent) << len;
      ASSERT_TRUE(send_one(b.server, 0, sent));
      ASSERT_EQ(receive_one(b.client, 0), sent) << len;
    }
    EXPECT_EQ(b.server.stats().rx_bad, 0u);
  }
}

// Both would wait for clients: the second one reports that instead of becoming a client of the
// first.
TEST(MemifPort, AServerDoesNotJoinAnotherServer) {
  Folder f;
  const std::string spec = "memif:socket=" + f.file("s");
  Port first = must_open(spec + ",serves=target");
  ASSERT_EQ(first.info().server_side, 1);
  std::atomic<bool> stop{false};
  std::thread engine([&] {
    Frame frame;
    while (!stop) first.rx_burst(0, &frame, 1);
  });
  for (const char* role : {"", ",role=auto", ",role=client"}) {
    auto second = Port::open(spec + ",serves=perf" + role);
    ASSERT_FALSE(second.ok()) << role;
    EXPECT_NE(second.error().find("s is already served by a urnic target"), std::string::npos)
        << second.error();
  }
  stop = true;
  engine.join();
  // An end without a service joins.
  Port client = must_open(spec);
  EXPECT_TRUE(link_both(first, client));
}

TEST(MemifPort, AServerJoinsAnEndWithoutAService) {
  Folder f;
  const std::string spec = "memif:socket=" + f.file("s");
  Port first = must_open(spec);
  std::atomic<bool> stop{false};
  std::thread engine([&] {
    Frame frame;
    while (!stop) first.rx_burst(0, &frame, 1);
  });
  Port second = must_open(spec + ",serves=target");
  stop = true;
  engine.join();
  EXPECT_EQ(second.info().server_side, 0);
  EXPECT_TRUE(link_both(first, second));
}

TEST(MemifPort, TheReasonForAMissingLinkIsReported) {
  Folder f;
  const std::string spec = "memif:socket=" + f.file("s");
  Port waiting = must_open("memif:role=client,socket=" + f.file("none"));
  EXPECT_NE(waiting.why().find("no server"), std::string::npos) << waiting.why();
  Both b;
  ASSERT_TRUE(b.link());
  EXPECT_EQ(b.client.why(), "");
  Port server = must_open(spec + ",role=server");
  Port first = must_open(spec + ",role=client");
  ASSERT_TRUE(link_both(server, first));
  Port second = must_open(spec + ",role=client");
  EXPECT_TRUE(
      turn_until([&] { return second.why().find("Already connected") != std::string::npos; },
                 {&server, &second}));
}

TEST(MemifPort, FramesAreSentAndReceivedInPlace) {
  Both b;
  ASSERT_TRUE(b.link());
  Frame tx, rx;
  ASSERT_EQ(b.client.tx_reserve(0, 100, &tx, 1), 1u);
  std::memset(tx.data[0], 0x5a, 100);
  b.client.tx_commit(0, &tx, 1);
  ASSERT_EQ(b.server.rx_burst(0, &rx, 1), 1u);
  // Two mappings of the same memory: the receiver sees writes that the sender makes after sending.
  tx.data[0][0] = 0x77;
  EXPECT_EQ(rx.data[0][0], 0x77);
  b.server.rx_release(0, &rx, 1);
}

TEST(MemifPort, AStreamOfFramesBetweenThreadsIsCompleteAndInOrder) {
  for (const char* more : {",mtu=1500", ",mtu=9000,rsize=5", ",mtu=65521,rsize=4"}) {
    Both b(more);
    ASSERT_TRUE(b.link());
    const std::uint32_t len = b.server.info().max_frame;
    const std::uint32_t count = 60'000'000 / (len + 1000);
    bool sent = false;
    std::thread sender([&] { sent = check::send_numbered(b.client, 0, count, len); });
    EXPECT_EQ(check::receive_numbered(b.server, 0, count, len), "") << more;
    sender.join();
    EXPECT_TRUE(sent);
    std::thread back([&] { sent = check::send_numbered(b.server, 0, count, len); });
    EXPECT_EQ(check::receive_numbered(b.client, 0, count, len), "") << more;
    back.join();
  }
}

TEST(MemifPort, QueuesAreIndependent) {
  Both b(",queues=3");
  ASSERT_TRUE(b.link());
  EXPECT_EQ(b.server.info().queues, 3u);
  std::vector<std::thread> threads;
  std::array<std::string, 3> result{"?", "?", "?"};
  for (unsigned q = 0; q < 3; ++q) {
    threads.emplace_back([&, q] { check::send_numbered(b.client, q, 20000, 60 + q); });
    threads.emplace_back(
        [&, q] { result[q] = check::receive_numbered(b.server, q, 20000, 60 + q); });
  }
  for (auto& t : threads) t.join();
  for (const auto& r : result) EXPECT_EQ(r, "");
}

TEST(MemifPort, TheSmallerNumberOfQueuesIsUsed) {
  Folder f;
  Port server = must_open("memif:socket=" + f.file("s") + ",role=server,queues=2");
  Port client = must_open("memif:socket=" + f.file("s") + ",role=client,queues=4");
  ASSERT_TRUE(link_both(server, client));
  EXPECT_EQ(server.info().queues, 2u);
  EXPECT_EQ(client.info().queues, 2u);
}

TEST(MemifPort, FramesReturnedUnsentLeaveNoGapInEitherRole) {
  Both b;
  ASSERT_TRUE(b.link());
  for (auto [from, to] : {std::pair{&b.client, &b.server}, std::pair{&b.server, &b.client}}) {
    for (unsigned round = 0; round < 300; ++round) {  // more than one round of the ring
      Frame f[5];
      ASSERT_EQ(from->tx_reserve(0, 64, f, 5), 5u);
      for (unsigned i = 0; i < 5; ++i) {
        std::memset(f[i].data[0], static_cast<int>(i), 64);
        if (i == 0 || i == 3) f[i].len[0] = 0;
      }
      from->tx_commit(0, f, 2);
      from->tx_commit(0, f + 2, 3);
      for (std::uint8_t want : {1, 2, 4}) {
        ASSERT_EQ(receive_one(*to, 0), check::Bytes(64, want));
      }
    }
  }
}

TEST(MemifPort, PayloadInASecondSpanIsAppended) {
  Both b;
  ASSERT_TRUE(b.link());
  for (auto [from, to] : {std::pair{&b.client, &b.server}, std::pair{&b.server, &b.client}}) {
    Frame f;
    ASSERT_EQ(from->tx_reserve(0, 54, &f, 1), 1u);
    std::memset(f.data[0], 1, 54);
    check::Bytes payload(1400, 2);
    f.data[1] = payload.data();
    f.len[1] = 1400;
    from->tx_commit(0, &f, 1);
    check::Bytes want(54, 1);
    want.insert(want.end(), 1400, 2);
    EXPECT_EQ(receive_one(*to, 0), want);
  }
}

// The client's buffers hold only 1500-byte frames. The server sends 9000-byte frames in several
// buffers, and the client reassembles them.
TEST(MemifPort, FramesLargerThanThePeersBuffersAreSplit) {
  Folder f;
  Port server = must_open("memif:socket=" + f.file("s") + ",role=server,mtu=9000");
  Port client = must_open("memif:socket=" + f.file("s") + ",role=client,mtu=1500");
  ASSERT_TRUE(link_both(server, client));
  ASSERT_TRUE(send_one(server, 0, check::pattern(1514, 1)));
  EXPECT_EQ(receive_one(client, 0), check::pattern(1514, 1));
  // Larger than the receiver's largest frame: rejected and counted, and the next one passes.
  ASSERT_TRUE(send_one(server, 0, check::pattern(9014, 2)));
  ASSERT_TRUE(send_one(server, 0, check::pattern(700, 3)));
  EXPECT_EQ(receive_one(client, 0), check::pattern(700, 3));
  EXPECT_EQ(client.stats().rx_bad, 1u);
  EXPECT_EQ(client.info().link_up, 1);
}

TEST(MemifPort, AFullRingGivesLessAndRecovers) {
  Both b(",rsize=3");
  ASSERT_TRUE(b.link());
  for (auto [from, to] : {std::pair{&b.client, &b.server}, std::pair{&b.server, &b.client}}) {
    check::idle_turn(*from);
    check::idle_turn(*to);
    Frame f[16];
    ASSERT_EQ(from->tx_reserve(0, 64, f, 16), 8u);
    from->tx_commit(0, f, 8);
    EXPECT_EQ(from->tx_reserve(0, 64, f, 1), 0u);
    ASSERT_EQ(to->rx_burst(0, f, 3), 3u);
    Frame g;
    EXPECT_EQ(from->tx_reserve(0, 64, &g, 1), 0u) << "borrowed frames are not to be overwritten";
    to->rx_release(0, f, 3);
    EXPECT_EQ(from->tx_reserve(0, 64, f, 16), 3u);
    from->tx_commit(0, f, 0);
    check::idle_turn(*to);
  }
}

// ---- sleeping ----

// proves: E-32
TEST(MemifPort, ASleeperIsWokenByAFrame) {
  Both b;
  ASSERT_TRUE(b.link());
  check::idle_turn(b.server);
  for (auto [from, to] : {std::pair{&b.client, &b.server}, std::pair{&b.server, &b.client}}) {
    for (int round = 0; round < 3; ++round) {
      while (to->arm(0)) check::idle_turn(*to);
      int fd = -1;
      ASSERT_EQ(to->wait_fds(0, &fd, 1), 1u);
      pollfd p{fd, POLLIN, 0};
      ASSERT_EQ(poll(&p, 1, 0), 0);
      ASSERT_TRUE(send_one(*from, 0, check::pattern(64, 1)));
      ASSERT_EQ(poll(&p, 1, 0), 1);
      to->disarm(0);
      EXPECT_TRUE(to->arm(0)) << "the frame is there";
      EXPECT_EQ(receive_one(*to, 0), check::pattern(64, 1));
    }
    EXPECT_GE(to->stats().wakeups, 3u);
  }
}

TEST(MemifPort, SendingToAPollingReceiverNeedsNoSystemCall) {
  Both b;
  ASSERT_TRUE(b.link());
  ASSERT_TRUE(send_one(b.client, 0, check::pattern(64, 0)));
  receive_one(b.server, 0);
  const auto before = b.client.stats().syscalls;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(send_one(b.client, 0, check::pattern(64, 1)));
    receive_one(b.server, 0);
  }
  EXPECT_EQ(b.client.stats().syscalls, before);
}

TEST(MemifPort, TheReceiverWakesASenderWithoutRoom) {
  Both b(",rsize=4");
  ASSERT_TRUE(b.link());
  Frame f[32];
  ASSERT_EQ(b.client.tx_reserve(0, 64, f, 32), 16u);
  b.client.tx_commit(0, f, 16);
  ASSERT_EQ(b.client.tx_reserve(0, 64, f, 32), 0u);
  while (b.client.arm(0)) check::idle_turn(b.client);
  const unsigned n = b.server.rx_burst(0, f, 32);
  ASSERT_EQ(n, 16u);
  b.server.rx_release(0, f, n);
  int fd = -1;
  b.client.wait_fds(0, &fd, 1);
  pollfd p{fd, POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 0), 1);
  b.client.disarm(0);
}

TEST(MemifPort, ASleepingClientConnectsWhenTheServerStarts) {
  Folder f;
  const std::string at = "memif:socket=" + f.file("s");
  Child server([&] {
    usleep(300'000);
    auto s = Port::open(at + ",role=server");
    if (!s.ok()) return 1;
    return turn_until([&] { return s->stats().rx_frames != 0; }, {&*s}) ? 0 : 2;
  });
  Port client = must_open(at + ",role=client");
  const std::uint64_t end = check::monotonic_ms() + check::kSoonMs;
  while (client.info().link_up == 0 && check::monotonic_ms() < end) {
    check::idle_turn(client);
    check::sleep_on(client, 0, check::kSoonMs);
  }
  ASSERT_EQ(client.info().link_up, 1);
  check::idle_turn(client);
  ASSERT_TRUE(send_one(client, 0, check::pattern(64, 1)));
  EXPECT_EQ(server.wait(), 0);
}

TEST(MemifPort, TwoSleepingProcessesLoseNothing) {
  Folder f;
  const std::string at = "memif:socket=" + f.file("s") + ",rsize=4";
  Child peer([&] {
    auto p = Port::open(at + ",role=client");
    if (!p.ok()) return 1;
    if (!check::send_numbered(*p, 0, 50000, 200)) return 2;
    return check::receive_numbered(*p, 0, 50000, 200).empty() ? 0 : 3;
  });
  Port server = must_open(at + ",role=server");
  EXPECT_EQ(check::receive_numbered(server, 0, 50000, 200), "");
  EXPECT_TRUE(check::send_numbered(server, 0, 50000, 200));
  EXPECT_EQ(peer.wait(), 0);
}

}  // namespace
}  // namespace urnic::port
