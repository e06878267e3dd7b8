// An object takes a descriptor only if a thread sleeps on it.
#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <vector>

#include "urnic/urnic.h"

namespace urnic {
namespace {

std::size_t descriptors() {
  std::size_t n = 0;
  DIR* d = opendir("/proc/self/fd");
  while (readdir(d) != nullptr) ++n;
  closedir(d);
  return n;
}

Device open_device() {
  Config c;
  EXPECT_TRUE(c.set("port", "mem:name=descriptors").ok());
  EXPECT_TRUE(c.set("stat", "off").ok());
  auto d = Device::open(c);
  EXPECT_TRUE(d.ok());
  return *d;
}

TEST(Descriptors, PolledQueuesAndQueuePairsTakeNone) {
  Device d = open_device();
  auto pd = *d.alloc_pd();
  const std::size_t before = descriptors();
  std::vector<CompletionQueue> cqs;
  std::vector<QueuePair> qps;
  for (int i = 0; i < 100; ++i) {
    cqs.push_back(*d.create_cq(16));
    QpOptions o;
    o.send_cq = o.receive_cq = cqs.back();
    qps.push_back(*d.create_qp(pd, o));
    Completion c[1];
    EXPECT_EQ(cqs.back().poll(c), 0);
  }
  EXPECT_EQ(descriptors(), before);
  EXPECT_GE(cqs[0].fd(), 0);
  EXPECT_EQ(cqs[0].fd(), cqs[0].fd());
  EXPECT_EQ(descriptors(), before + 1);
}

// The queue was armed, and the event arrived, before the first call of fd().
// proves: E-28
TEST(Descriptors, AnEventBeforeTheDescriptorIsNotLost) {
  Device d = open_device();
  auto pd = *d.alloc_pd();
  auto cq = *d.create_cq(16);
  QpOptions o;
  o.send_cq = o.receive_cq = cq;
  auto qp = *d.create_qp(pd, o);
  ASSERT_TRUE(qp.post_receive({7, {}}).ok());
  cq.arm();
  ASSERT_TRUE(qp.modify(QpState::error).ok());  // flushes
  pollfd p{cq.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 10000), 1);
  Completion c[1];
  EXPECT_EQ(cq.poll(c), 1);
  EXPECT_EQ(c[0].wr_id, 7u);
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(CompletionQueueMemory, IsTakenAsTheQueueFills) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own memory is in it";
#endif
  Device d = open_device();
  const std::size_t before = resident_bytes();
  auto cq = d.create_cq(1 << 22);
  ASSERT_TRUE(cq.ok()) << cq.error().message;
  EXPECT_LT(resident_bytes() - before, std::size_t{16} << 20);
}

TEST(CompletionQueueMemory, TheDepthIsLimited) {
  Device d = open_device();
  for (const std::uint32_t depth : {0u, (1u << 24) + 1}) {
    const auto cq = d.create_cq(depth);
    ASSERT_FALSE(cq.ok());
    EXPECT_EQ(cq.error().code, Errc::invalid_argument);
    EXPECT_NE(cq.error().message.find("16777216"), std::string::npos);
  }
  EXPECT_TRUE(d.create_cq(1u << 24).ok());
}

// proves: E-47
TEST(CompletionQueueSize, ChangesWithCompletionsInIt) {
  Device d = open_device();
  auto pd = *d.alloc_pd();
  auto cq = *d.create_cq(16);
  QpOptions o;
  o.send_cq = o.receive_cq = cq;
  o.max_receive = 64;
  auto qp = *d.create_qp(pd, o);
  std::uint64_t next = 0, polled = 0;
  Completion c[64];
  const auto fill = [&](int n) {  // flushed one by one
    for (int i = 0; i < n; ++i) ASSERT_TRUE(qp.post_receive({next++, {}}).ok());
  };
  const auto poll = [&](int n) {
    int got = 0;
    for (int i = 0; i < 1000 && got < n; ++i) {
      const int k = cq.poll({c, static_cast<std::size_t>(n - got)});
      ASSERT_GE(k, 0);
      for (int j = 0; j < k; ++j) EXPECT_EQ(c[j].wr_id, polled++);
      got += k;
    }
    EXPECT_EQ(got, n);
  };
  ASSERT_TRUE(qp.modify(QpState::error).ok());
  fill(13);
  poll(9);
  fill(10);  // 14 in it, across the end of the ring
  const auto smaller = cq.resize(8);
  ASSERT_FALSE(smaller.ok());
  EXPECT_EQ(smaller.error().code, Errc::in_use);
  EXPECT_EQ(cq.depth(), 16u);
  EXPECT_EQ(cq.resize(0).error().code, Errc::invalid_argument);
  ASSERT_TRUE(cq.resize(40).ok());
  EXPECT_EQ(cq.depth(), 64u);
  fill(30);
  poll(40);
  ASSERT_TRUE(cq.resize(4).ok());
  poll(4);
  fill(4);
  poll(4);
  EXPECT_EQ(next, polled);
}

TEST(EventQueues, AWaitingThreadCanBeWoken) {
  Device d = open_device();
  auto q = *d.create_event_queue();
  std::thread wakes([&] {
    usleep(20000);
    q.wake();
  });
  Event e;
  EXPECT_FALSE(q.wait(&e, -1));
  wakes.join();
  q.wake();  // no thread waits: the next one returns at once
  EXPECT_FALSE(q.wait(&e, -1));
  pollfd p{q.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 0), 0);
}

TEST(EventQueues, EventsMoveWithTheirQueuePair) {
  Device d = open_device();
  auto pd = *d.alloc_pd();
  auto from = *d.create_event_queue(), to = *d.create_event_queue();
  int before = 0, after = 0;
  QpOptions o;
  o.send_cq = o.receive_cq = *d.create_cq(16);
  o.events = from;
  o.context = &before;
  auto moves = *d.create_qp(pd, o), stays = *d.create_qp(pd, o);
  ConnectionOptions c;
  c.timeout_ms = 1;
  for (QueuePair* qp : {&moves, &stays}) ASSERT_TRUE(qp->connect_start("10.77.0.9:1", c).ok());
  usleep(50000);  // usually the events are queued by now; in any case they arrive
  ASSERT_TRUE(moves.deliver_events(to, &after).ok());
  Event e;
  ASSERT_TRUE(to.wait(&e, 10000));
  EXPECT_EQ(e.kind, EventKind::connect_failed);
  EXPECT_EQ(e.context, &after);
  ASSERT_TRUE(from.wait(&e, 10000));
  EXPECT_EQ(e.context, &before);
  EXPECT_FALSE(from.poll(&e));
  EXPECT_EQ(moves.deliver_events({}, nullptr).error().code, Errc::invalid_argument);
}

TEST(QueueSizes, NoneAreLegal) {
  Device d = open_device();
  auto pd = *d.alloc_pd();
  QpOptions o;
  o.send_cq = o.receive_cq = *d.create_cq(1);
  o.max_send = o.max_receive = o.max_send_sge = o.max_receive_sge = o.max_inline = 0;
  auto qp = d.create_qp(pd, o);
  ASSERT_TRUE(qp.ok()) << qp.error().message;
  EXPECT_EQ(qp->post_receive({1, {}}).error().code, Errc::queue_full);
  o.max_send = o.max_receive = 1;
  auto one = d.create_qp(pd, o);
  ASSERT_TRUE(one.ok());
  EXPECT_TRUE(one->post_receive({1, {}}).ok());
  const Sge sge{};
  EXPECT_EQ(one->post_receive({1, {&sge, 1}}).error().code, Errc::invalid_argument);
}

}  // namespace
}  // namespace urnic
