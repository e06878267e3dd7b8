// Sends posted one after the other leave together over the kernel's TCP, and none stays behind.
#include "device/gathering.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/wired_ends.h"

namespace urnic {
namespace {

using engine::Gathering;
const Instant kStart = Instant() + Duration::ms(7);

TEST(Gathering, TheFirstBehindAPollGoesAtOnceThoseBehindItAreKept) {
  Gathering g;
  EXPECT_FALSE(g.keeps(1, 64, kStart));
  g.sent();
  EXPECT_FALSE(g.any());
  EXPECT_TRUE(g.keeps(1, 64, kStart));
  EXPECT_TRUE(g.any());
  EXPECT_TRUE(g.keeps(2, 64, kStart));
  g.sent();
  EXPECT_FALSE(g.any());
  g.polled();
  EXPECT_FALSE(g.keeps(1, 64, kStart));
}

TEST(Gathering, ALargeOneIsNotKept) {
  Gathering g;
  g.sent();
  EXPECT_TRUE(g.keeps(1, Gathering::kLarge - 1, kStart));
  EXPECT_FALSE(g.keeps(2, Gathering::kLarge, kStart));
}

TEST(Gathering, ManyAreNotKept) {
  Gathering g;
  g.sent();
  EXPECT_TRUE(g.keeps(Gathering::kMost - 1, 64, kStart));
  EXPECT_FALSE(g.keeps(Gathering::kMost, 64, kStart));
  for (unsigned i = 1; i < Gathering::kDoorbells; ++i) EXPECT_TRUE(g.keeps(1, 64, kStart)) << i;
  EXPECT_FALSE(g.keeps(1, 64, kStart));  // of other queue pairs
}

TEST(Gathering, NoneIsKeptForLong) {
  Gathering g;
  g.sent();
  EXPECT_TRUE(g.keeps(1, 64, kStart));
  EXPECT_TRUE(g.keeps(2, 64, kStart + Gathering::kLongest));
  EXPECT_FALSE(g.keeps(3, 64, kStart + Gathering::kLongest + Duration::ns(1)));
  g.sent();
  EXPECT_TRUE(g.keeps(1, 64, kStart + Duration::ms(5)));
}

class Gathered : public test::WiredEnds {
 protected:
  void SetUp() override {
    WiredEnds::SetUp();
    sink_ = server.add(test::kAllRights);
    source_ = client.add(access_local_write);
  }
  // Long enough to be believed.
  void poll_all_the_time() {
    Completion none[1];
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
    while (std::chrono::steady_clock::now() < end) EXPECT_EQ(client.cq.poll(none), 0u);
  }
  void post(Opcode op, std::uint64_t at) {
    const Sge from{reinterpret_cast<std::uintptr_t>(client.memory.data()) + at, 8, source_.lkey()};
    SendRequest r;
    r.opcode = op;
    r.sges = {&from, 1};
    r.remote_address = sink_.remote_address() + at;
    r.rkey = sink_.rkey();
    ASSERT_TRUE(client.qp.post_send(r).ok());
  }
  void collect(unsigned n) {
    while (n-- != 0) ASSERT_EQ(client.wait().status, WcStatus::success);
  }
  // By polls alone, which never hand over to the thread.
  void poll_for(unsigned n) {
    const auto begin = std::chrono::steady_clock::now();
    Completion c[16];
    for (unsigned got = 0; got < n; got += client.cq.poll(c)) {
      ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    }
  }
  std::uint64_t system_calls() { return client.device.stats().port.syscalls; }

  MemoryRegion sink_, source_;
};

// Nothing but the data says here that a Write has come.
#ifdef __SANITIZE_THREAD__
#define SKIP_WITH_THREADS() \
  GTEST_SKIP() << "the sanitizer takes memory that a peer writes, and is looked at, for a race"
#else
#define SKIP_WITH_THREADS() static_cast<void>(0)
#endif

// proves: E-51
TEST_P(Gathered, ManyLeaveInFewSystemCalls) {
  SKIP_WITH_THREADS();
  constexpr unsigned kSends = 128, kRounds = 400, kEnough = 10;
  unsigned good = 0;
  for (unsigned round = 0; round < kRounds && good < kEnough; ++round) {
    const std::uint64_t before = system_calls();
    poll_all_the_time();
    for (unsigned i = 0; i < kSends; ++i) post(Opcode::write, i * 8);
    // The poll sends what was kept; nobody waits for the thread, which may take long to see.
    Completion c[kSends];
    const unsigned at_once = client.cq.poll(c) + client.cq.poll(c) + client.cq.poll(c);
    if (at_once < kSends) poll_for(kSends - at_once);
    if (at_once == kSends && system_calls() - before <= kSends / 8) ++good;
  }
  // On a busy machine it does not poll all the time in every round.
#ifdef __SANITIZE_ADDRESS__
  if (good < kEnough) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
#endif
  EXPECT_EQ(good, kEnough);
}

// Nobody polls behind the posts: the thread sends what was kept.
// proves: E-51
TEST_P(Gathered, WhatIsKeptLeavesWithoutAPoll) {
  SKIP_WITH_THREADS();
  constexpr unsigned kSends = 7;
  for (int round = 0; round < 50; ++round) {
    client.fill(static_cast<std::uint8_t>(round));
    poll_all_the_time();
    for (unsigned i = 0; i < kSends; ++i) post(Opcode::write, i * 8);
    const auto begin = std::chrono::steady_clock::now();
    while (std::atomic_ref(server.memory[kSends * 8 - 1]).load() != client.memory[kSends * 8 - 1]) {
      ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << round;
    }
    collect(kSends);
  }
}

// Nor is anything overtaken by the end.
TEST_P(Gathered, TheEndComesBehindWhatIsKept) {
  constexpr unsigned kSends = 7;
  for (int round = 0; round < 10; ++round) {
    std::vector<Sge> rooms;
    for (unsigned i = 0; i < kSends; ++i) {
      rooms.push_back(
          {reinterpret_cast<std::uintptr_t>(server.memory.data()) + i * 8, 8, sink_.lkey()});
      ReceiveRequest r;
      r.sges = {&rooms.back(), 1};
      ASSERT_TRUE(server.qp.post_receive(r).ok());
    }
    poll_all_the_time();
    for (unsigned i = 0; i < kSends; ++i) post(Opcode::send, i * 8);
    client.qp.disconnect();
    for (unsigned i = 0; i < kSends; ++i) EXPECT_EQ(server.wait().status, WcStatus::success) << i;
    collect(kSends);
    server.qp = server.another();
    client.qp = client.another();
    join(server.qp, client.qp);
  }
}

// Whatever else is asked of the device was asked for behind them.
TEST_P(Gathered, WhoAsksOfTheDeviceFindsThemSent) {
  constexpr unsigned kSends = 7;
  for (unsigned round = 1; round <= 30; ++round) {
    poll_all_the_time();
    for (unsigned i = 0; i < kSends; ++i) post(Opcode::write, i * 8);
    const EngineStats s = client.device.stats();
    ASSERT_EQ(s.connections.size(), 1u);
    ASSERT_EQ(s.connections[0].verbs.writes_sent, round * kSends);
    collect(kSends);
  }
}

// Each has its turn when the application polls, whichever queue pair it belongs to.
TEST_P(Gathered, OfSeveralQueuePairsNoneStaysBehind) {
  QueuePair there = server.another(), here = client.another();
  join(there, here);
  for (int round = 0; round < 50; ++round) {
    poll_all_the_time();
    for (unsigned i = 0; i < 10; ++i) {
      post(Opcode::write, i * 8);
      std::swap(here, client.qp);
    }
    poll_for(10);
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, Gathered, ::testing::Values("tcp"),
                         [](const auto& wire) { return std::string(wire.param); });

}  // namespace
}  // namespace urnic
