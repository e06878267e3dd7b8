// E-47: a completion queue that is too small fails, together with everything that completes on it;
// its completions are not overwritten.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "urnic/urnic.h"

namespace urnic {
namespace {

struct Half {
  explicit Half(std::uint32_t depth) {
    Config c;
    EXPECT_TRUE(c.set("port", "mem:name=cq-overrun").ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    device = *Device::open(c);
    events = *device.create_event_queue();
    EXPECT_TRUE(device.deliver_events(events).ok());
    pd = *device.alloc_pd();
    cq = *device.create_cq(depth, &cq);
    mr = *device.register_memory(pd, memory, sizeof memory, access_local_write);
    for (QueuePair* q : {&qp, &idle}) {
      QpOptions o;
      o.send_cq = o.receive_cq = cq;
      o.events = events;
      o.context = q;
      *q = *device.create_qp(pd, o);
    }
  }
  Device device;
  EventQueue events;
  ProtectionDomain pd;
  CompletionQueue cq;
  char memory[4096] = {};
  MemoryRegion mr;
  QueuePair qp, idle;
};

// proves: E-47
TEST(CqOverrun, TheQueueAndEveryQueuePairOnItFailWithAnEvent) {
  Half a(4), b(256);  // the first one opened is 10.77.0.1
  auto listener = *a.device.listen(0);
  ASSERT_TRUE(a.device.wait_link(10000) && b.device.wait_link(10000));
  std::thread accepting([&] {
    auto r = listener.next(10000);
    ASSERT_TRUE(r.ok());
    EXPECT_TRUE(r->accept(a.qp).ok());
  });
  ASSERT_TRUE(b.qp.connect("10.77.0.1:" + std::to_string(listener.port())).ok());
  accepting.join();
  const Sge to{reinterpret_cast<std::uint64_t>(a.memory), 64, a.mr.lkey()};
  const Sge from{reinterpret_cast<std::uint64_t>(b.memory), 64, b.mr.lkey()};
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(a.qp.post_receive({i, {&to, 1}}).ok());
  for (std::uint64_t i = 0; i < 10; ++i) {
    SendRequest r;
    r.wr_id = i;
    r.sges = {&from, 1};
    ASSERT_TRUE(b.qp.post_send(r).ok());
  }
  // a.cq is not polled. Its events arrive all the same.
  bool overrun = false, failed = false, idle_failed = false;
  Event e;
  while (!(overrun && failed && idle_failed) && a.events.wait(&e, 10000)) {
    if (e.kind == EventKind::cq_overrun) {
      EXPECT_EQ(e.context, &a.cq);
      overrun = true;
    }
    if (e.kind != EventKind::failed) continue;
    EXPECT_EQ(e.error.code, Errc::queue_full);
    EXPECT_NE(e.error.message.find("completion queue"), std::string::npos) << e.error.message;
    (e.context == &a.qp ? failed : idle_failed) = true;
  }
  EXPECT_TRUE(overrun);
  EXPECT_TRUE(failed);
  EXPECT_TRUE(idle_failed);
  EXPECT_EQ(a.qp.state(), QpState::error);
  EXPECT_EQ(a.idle.state(), QpState::error);
  // The completions that fitted are there, in order; then the queue reports the end.
  EXPECT_TRUE(a.cq.wait(0));
  Completion c[8];
  std::uint64_t next = 0;
  int n;
  while ((n = a.cq.poll(c)) > 0) {
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(c[i].status, WcStatus::success);
      EXPECT_EQ(c[i].wr_id, next++);
    }
  }
  EXPECT_EQ(n, -1);
  EXPECT_GE(next, 4u);
  EXPECT_LT(next, 10u);
  EXPECT_EQ(a.cq.poll(c), -1);
  EXPECT_TRUE(a.cq.wait(0));  // never sleeps on a queue that has overrun
  EXPECT_FALSE(a.qp.post_receive({1, {&to, 1}}).ok() && a.cq.poll(c) >= 0);
}

}  // namespace
}  // namespace urnic
