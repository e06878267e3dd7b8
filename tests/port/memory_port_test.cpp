#include "port/memory_port.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "port/port_check.h"

namespace urnic::port {
namespace {

using check::receive_one;
using check::send_one;

unsigned open_descriptors() {
  unsigned n = 0;
  DIR* d = opendir("/proc/self/fd");
  while (readdir(d) != nullptr) ++n;
  closedir(d);
  return n;
}

TEST(MemoryPort, EachEndReceivesFramesOfTheOther) {
  auto [a, b] = make_memory_pair();
  ASSERT_TRUE(a && b);
  for (std::uint32_t len : {60u, 1514u, 9014u, 65535u}) {
    const auto sent = check::pattern(len, len);
    ASSERT_TRUE(send_one(a, 0, sent));
    EXPECT_EQ(receive_one(b, 0), sent);
    ASSERT_TRUE(send_one(b, 0, sent));
    EXPECT_EQ(receive_one(a, 0), sent);
  }
  EXPECT_EQ(a.stats().tx_frames, 4u);
  EXPECT_EQ(a.stats().rx_bytes, 60u + 1514 + 9014 + 65535);
}

TEST(MemoryPort, ForeignPayloadIsReadBeforeCommitReturns) {
  auto [a, b] = make_memory_pair();
  Frame f;
  ASSERT_EQ(a.tx_reserve(0, 54, &f, 1), 1u);
  std::memset(f.data[0], 0x11, 54);
  std::vector<std::uint8_t> payload(1000, 0x22);
  f.data[1] = payload.data();
  f.len[1] = 1000;
  a.tx_commit(0, &f, 1);
  payload.assign(1000, 0x33);
  std::vector<std::uint8_t> want(54, 0x11);
  want.insert(want.end(), 1000, 0x22);
  EXPECT_EQ(receive_one(b, 0), want);
}

TEST(MemoryPort, AFullRingGivesLessAndRecovers) {
  auto [a, b] = make_memory_pair({.max_frame = 1514, .ring = 8});
  std::array<Frame, 16> f;
  ASSERT_EQ(a.tx_reserve(0, 100, f.data(), 16), 8u);
  a.tx_commit(0, f.data(), 8);
  EXPECT_EQ(a.tx_reserve(0, 100, f.data(), 1), 0u);
  EXPECT_EQ(a.stats().tx_full, 2u);
  const unsigned got = b.rx_burst(0, f.data(), 3);
  ASSERT_EQ(got, 3u);
  Frame g;
  EXPECT_EQ(a.tx_reserve(0, 100, &g, 1), 0u) << "borrowed frames must not be overwritten";
  b.rx_release(0, f.data(), got);
  EXPECT_EQ(a.tx_reserve(0, 100, f.data(), 16), 3u);
}

TEST(MemoryPort, FramesReturnedUnsentLeaveNoGap) {
  auto [a, b] = make_memory_pair();
  std::array<Frame, 5> f;
  ASSERT_EQ(a.tx_reserve(0, 64, f.data(), 5), 5u);
  for (unsigned i = 0; i < 5; ++i) {
    std::memset(f[i].data[0], static_cast<int>(i), 64);
    if (i == 0 || i == 2) f[i].len[0] = 0;
  }
  a.tx_commit(0, f.data(), 5);
  for (std::uint8_t want : {1, 3, 4}) {
    EXPECT_EQ(receive_one(b, 0), std::vector<std::uint8_t>(64, want));
  }
  EXPECT_EQ(b.rx_burst(0, f.data(), 5), 0u);
}

TEST(MemoryPort, ABurstMayBeCommittedInPieces) {
  auto [a, b] = make_memory_pair();
  std::array<Frame, 4> f;
  ASSERT_EQ(a.tx_reserve(0, 64, f.data(), 4), 4u);
  for (unsigned i = 0; i < 4; ++i) std::memset(f[i].data[0], static_cast<int>(i), 64);
  a.tx_commit(0, f.data(), 1);
  a.tx_commit(0, f.data() + 1, 3);
  for (std::uint8_t want : {0, 1, 2, 3}) {
    EXPECT_EQ(receive_one(b, 0), std::vector<std::uint8_t>(64, want));
  }
}

TEST(MemoryPort, EitherEndMayCloseFirst) {
  for (int first = 0; first < 2; ++first) {
    auto pair = make_memory_pair();
    Port& gone = first == 0 ? pair.first : pair.second;
    Port& left = first == 0 ? pair.second : pair.first;
    EXPECT_EQ(left.info().link_up, 1);
    ASSERT_TRUE(send_one(gone, 0, check::pattern(100, 1)));
    gone = Port();
    EXPECT_EQ(left.info().link_up, 0);
    EXPECT_EQ(receive_one(left, 0), check::pattern(100, 1));
    Frame f;
    EXPECT_EQ(left.tx_reserve(0, 100, &f, 1), 0u);
  }
}

TEST(MemoryPort, NoDescriptorIsCreatedBeforeTheFirstSleep) {
  const unsigned before = open_descriptors();
  auto [a, b] = make_memory_pair();
  ASSERT_TRUE(send_one(a, 0, check::pattern(100, 1)));
  receive_one(b, 0);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_FALSE(b.arm(0));
  EXPECT_EQ(open_descriptors(), before + 1);
  b.disarm(0);
}

// proves: E-32
TEST(MemoryPort, ASleeperIsWokenByAFrameAndByRoom) {
  auto [a, b] = make_memory_pair({.max_frame = 1514, .ring = 4});
  int fd = -1;
  ASSERT_FALSE(b.arm(0));
  ASSERT_EQ(b.wait_fds(0, &fd, 1), 1u);
  pollfd p{fd, POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 0), 0);
  ASSERT_TRUE(send_one(a, 0, check::pattern(100, 1)));
  EXPECT_EQ(poll(&p, 1, 0), 1);
  b.disarm(0);
  EXPECT_EQ(poll(&p, 1, 0), 0);
  EXPECT_EQ(b.stats().wakeups, 1u);
  EXPECT_TRUE(b.arm(0)) << "a frame is waiting";
  receive_one(b, 0);

  Frame f[8];
  ASSERT_EQ(a.tx_reserve(0, 100, f, 8), 4u);
  a.tx_commit(0, f, 4);
  ASSERT_FALSE(a.arm(0));
  ASSERT_EQ(a.wait_fds(0, &fd, 1), 1u);
  p.fd = fd;
  EXPECT_EQ(poll(&p, 1, 0), 0);
  receive_one(b, 0);
  EXPECT_EQ(poll(&p, 1, 0), 1) << "room to transmit";
  a.disarm(0);
}

TEST(MemoryPort, TwoSleepingThreadsLoseNothing) {
  auto [a, b] = make_memory_pair({.max_frame = 1514, .ring = 16});
  constexpr std::uint32_t kFrames = 100000;
  std::thread sender([&a = a] { check::send_numbered(a, 0, kFrames, 64); });
  EXPECT_EQ(check::receive_numbered(b, 0, kFrames, 64), "");
  sender.join();
}

TEST(MemoryPort, EndsMeetByName) {
  auto a = Port::open("mem:name=meet,mtu=1500");
  ASSERT_TRUE(a.ok()) << a.error();
  EXPECT_EQ(a->info().link_up, 0);
  EXPECT_FALSE(Port::open("mem:name=meet,mtu=9000").ok());
  auto b = Port::open("mem:name=meet,mtu=1500");
  ASSERT_TRUE(b.ok()) << b.error();
  EXPECT_EQ(a->info().link_up, 1);
  EXPECT_EQ(a->info().max_frame, 1514u);
  ASSERT_TRUE(send_one(*a, 0, check::pattern(1514, 3)));
  EXPECT_EQ(receive_one(*b, 0), check::pattern(1514, 3));
  // The name is free again: a third end opens a new pair, and may close before the second end
  // exists.
  {
    auto c = Port::open("mem:name=meet,mtu=1500");
    ASSERT_TRUE(c.ok());
  }
}

TEST(MemoryPort, QueuesAreIndependent) {
  auto [a, b] = make_memory_pair({.max_frame = 1514, .ring = 4, .queues = 2});
  EXPECT_EQ(a.info().queues, 2u);
  ASSERT_TRUE(send_one(a, 1, check::pattern(70, 1)));
  Frame f;
  EXPECT_EQ(b.rx_burst(0, &f, 1), 0u);
  EXPECT_EQ(receive_one(b, 1), check::pattern(70, 1));
}

}  // namespace
}  // namespace urnic::port
