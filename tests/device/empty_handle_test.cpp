// A handle that was never set, or was moved from: every call returns an error.
#include <gtest/gtest.h>

#include "urnic/urnic.h"

namespace urnic {
namespace {

#define EXPECT_REFUSED(call)                                                                      \
  do {                                                                                            \
    const auto result = (call);                                                                   \
    ASSERT_FALSE(result.ok());                                                                    \
    EXPECT_EQ(result.error().code, Errc::invalid_argument);                                       \
    EXPECT_NE(result.error().message.find("empty"), std::string::npos) << result.error().message; \
  } while (false)

TEST(EmptyHandle, Device) {
  Device d;
  const ProtectionDomain pd;
  char memory[8];
  EXPECT_FALSE(d);
  EXPECT_EQ(d.info().port, "");
  EXPECT_FALSE(d.wait_link(0));
  EXPECT_FALSE(d.progress());
  EXPECT_EQ(d.stats().polls, 0u);
  EXPECT_REFUSED(d.alloc_pd());
  EXPECT_REFUSED(d.register_memory(pd, memory, sizeof memory, 0));
  EXPECT_REFUSED(d.create_window(pd, WindowType::type1));
  EXPECT_REFUSED(d.create_cq(1));
  EXPECT_REFUSED(d.create_event_queue());
  EXPECT_REFUSED(d.create_srq(pd));
  EXPECT_REFUSED(d.create_qp(pd, {}));
  EXPECT_REFUSED(d.listen(0));
  EXPECT_REFUSED(d.deliver_events({}));
}

TEST(EmptyHandle, MemoryRegionAndProtectionDomain) {
  MemoryRegion mr;
  EXPECT_FALSE(mr);
  EXPECT_EQ(mr.address(), nullptr);
  EXPECT_EQ(mr.length(), 0u);
  EXPECT_EQ(mr.lkey(), 0u);
  EXPECT_EQ(mr.rkey(), 0u);
  EXPECT_EQ(mr.remote_address(), 0u);
  EXPECT_REFUSED(mr.reregister({}));
  EXPECT_TRUE(mr.deregister().ok());
  EXPECT_FALSE(ProtectionDomain());
}

TEST(EmptyHandle, CompletionQueue) {
  CompletionQueue cq;
  Completion c[1];
  EXPECT_FALSE(cq);
  EXPECT_EQ(cq.poll(c), -1);
  cq.arm();
  EXPECT_EQ(cq.fd(), -1);
  EXPECT_FALSE(cq.wait(0));
  EXPECT_FALSE(cq.wait(-1));
  EXPECT_EQ(cq.depth(), 0u);
}

TEST(EmptyHandle, EventQueueAndListenerAndRequest) {
  EventQueue q;
  Event e;
  EXPECT_FALSE(q);
  EXPECT_FALSE(q.poll(&e));
  EXPECT_FALSE(q.wait(&e, -1));
  EXPECT_EQ(q.fd(), -1);
  Listener l;
  EXPECT_FALSE(l);
  EXPECT_EQ(l.port(), 0);
  EXPECT_REFUSED(l.next(0));
  ConnectRequest r;
  QueuePair qp;
  EXPECT_FALSE(r);
  EXPECT_EQ(r.peer() + r.local(), "");
  EXPECT_TRUE(r.private_data().empty());
  EXPECT_EQ(r.ird() + r.ord(), 0);
  EXPECT_REFUSED(r.accept(qp));
  r.reject();
}

TEST(EmptyHandle, QueuePair) {
  QueuePair qp;
  EXPECT_FALSE(qp);
  EXPECT_EQ(qp.number(), 0u);
  EXPECT_EQ(qp.state(), QpState::reset);
  EXPECT_REFUSED(qp.post_send(SendRequest{}));
  EXPECT_REFUSED(qp.post_receive({}));
  Error why;
  const SendRequest requests[2];
  EXPECT_EQ(qp.post_send(requests, &why), 0u);
  EXPECT_EQ(why.code, Errc::invalid_argument);
  EXPECT_REFUSED(qp.connect("10.77.0.1:1"));
  EXPECT_REFUSED(qp.connect_start("10.77.0.1:1"));
  EXPECT_EQ(qp.peer_private_data(), "");
  qp.disconnect();
  qp.abort();
  EXPECT_EQ(qp.stats().iwarp.tcp.segments_in, 0u);
}

TEST(EmptyHandle, SharedReceiveQueue) {
  SharedReceiveQueue srq;
  EXPECT_FALSE(srq);
  EXPECT_REFUSED(srq.post_receive(ReceiveRequest{}));
  Error why;
  const ReceiveRequest requests[2];
  EXPECT_EQ(srq.post_receive(requests, &why), 0u);
  EXPECT_EQ(why.code, Errc::invalid_argument);
  EXPECT_REFUSED(srq.set_limit(0));
  EXPECT_EQ(srq.query().max_receive, 0u);
}

TEST(EmptyHandle, AsAnArgumentOfADevice) {
  Config c;
  ASSERT_TRUE(c.set("port", "mem:name=empty-handles").ok());
  ASSERT_TRUE(c.set("stat", "off").ok());
  auto d = Device::open(c);
  ASSERT_TRUE(d.ok()) << d.error().message;
  auto pd = d->alloc_pd();
  ASSERT_TRUE(pd.ok());
  char memory[8];
  EXPECT_REFUSED(d->register_memory({}, memory, sizeof memory, 0));
  EXPECT_REFUSED(d->create_srq({}));
  EXPECT_REFUSED(d->create_qp({}, {}));
  EXPECT_FALSE(d->create_qp(*pd, {}).ok());
  Device moved = std::move(*d);
  EXPECT_REFUSED(d->create_cq(1));
}

}  // namespace
}  // namespace urnic
