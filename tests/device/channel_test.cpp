// Completion channels: the events of many completion queues on one descriptor.
// proves: E-28
#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "support/quiet_fork.h"
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

struct Channels : testing::Test {
  Channels() {
    Config c;
    EXPECT_TRUE(c.set("port", "mem:name=channels").ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    device = *Device::open(c);
    pd = *device.alloc_pd();
    channel = *device.create_completion_channel();
  }
  // A queue that is in the channel with that context.
  CompletionQueue queue(void* context) {
    CompletionQueue cq = *device.create_cq(16);
    EXPECT_TRUE(cq.deliver_events(channel, context).ok());
    return cq;
  }
  // Causes an event: the queue is armed, and a receive is flushed.
  void tell(CompletionQueue& cq) {
    QpOptions o;
    o.send_cq = o.receive_cq = cq;
    auto qp = *device.create_qp(pd, o);
    ASSERT_TRUE(qp.post_receive({1, {}}).ok());
    cq.arm();
    ASSERT_TRUE(qp.modify(QpState::error).ok());
    Completion c[1];
    ASSERT_TRUE(cq.poll(c) == 1 || (cq.wait(5000) && cq.poll(c) == 1));
  }
  bool readable(int within_ms = 0) {
    pollfd p{channel.fd(), POLLIN, 0};
    return poll(&p, 1, within_ms) == 1;
  }
  void* next() {
    void* context = nullptr;
    return channel.poll(&context) ? context : nullptr;
  }
  Device device;
  ProtectionDomain pd;
  CompletionChannel channel;
  int places[4] = {};
};

TEST_F(Channels, OneDescriptorForAllQueues) {
  const std::size_t before = descriptors();
  std::vector<CompletionQueue> cqs;
  cqs.reserve(100);
  for (int i = 0; i < 100; ++i) cqs.push_back(queue(places));
  EXPECT_EQ(descriptors(), before);
  EXPECT_FALSE(readable());
  EXPECT_EQ(next(), nullptr);
}

// proves: E-28
TEST_F(Channels, EventsAreTakenOldestFirstAndOnce) {
  auto a = queue(&places[0]), b = queue(&places[1]), c = queue(&places[2]);
  tell(b);
  EXPECT_TRUE(readable(5000));
  tell(c);
  tell(a);
  tell(c);  // signalled again: still one event
  EXPECT_EQ(next(), &places[1]);
  EXPECT_EQ(next(), &places[2]);
  EXPECT_TRUE(readable());
  EXPECT_EQ(next(), &places[0]);
  EXPECT_FALSE(readable());
  EXPECT_EQ(next(), nullptr);
  tell(b);
  EXPECT_EQ(next(), &places[1]);
}

// proves: E-28
TEST_F(Channels, ARemovedQueueTakesItsEventsWithIt) {
  auto a = queue(&places[0]), b = queue(&places[1]), c = queue(&places[2]), d = queue(&places[3]);
  for (CompletionQueue* cq : {&a, &b, &c, &d}) tell(*cq);
  b = CompletionQueue();                            // from the middle
  ASSERT_TRUE(d.deliver_events({}, nullptr).ok());  // the last one
  tell(b = queue(&places[1]));                      // after the present last one
  ASSERT_TRUE(a.deliver_events(channel, &a).ok());  // the first one
  EXPECT_EQ(next(), &places[2]);
  EXPECT_EQ(next(), &places[1]);
  EXPECT_FALSE(readable());
  tell(d);
  EXPECT_FALSE(readable());
  tell(a);
  EXPECT_EQ(next(), &a);
  tell(c);
  c = CompletionQueue();  // the only one
  EXPECT_FALSE(readable());
  EXPECT_EQ(next(), nullptr);
}

TEST_F(Channels, AWaitingThreadIsWoken) {
  auto a = queue(&places[0]);
  void* context = nullptr;
  EXPECT_FALSE(channel.wait(&context, 1));
  std::thread tells([&] {
    usleep(20000);
    tell(a);
  });
  EXPECT_TRUE(channel.wait(&context, -1));
  EXPECT_EQ(context, &places[0]);
  tells.join();
}

// proves: E-28
TEST_F(Channels, AForkedChildDoesNotChangeTheParentsChannel) {
  auto a = queue(&places[0]);
  tell(a);
  const pid_t child = test::quiet_fork();
  if (child == 0) {
    alarm(20);
    void* context = nullptr;
    if (channel.poll(&context) || channel.wait(&context, -1)) _exit(1);
    a = CompletionQueue();
    _exit(0);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(readable());
  EXPECT_EQ(next(), &places[0]);
}

TEST_F(Channels, WrongUseIsRefused) {
  Config c;
  ASSERT_TRUE(c.set("port", "mem:name=channels").ok());
  ASSERT_TRUE(c.set("stat", "off").ok());
  Device other = *Device::open(c);
  auto foreign = *other.create_cq(16);
  EXPECT_EQ(foreign.deliver_events(channel, nullptr).error().code, Errc::invalid_argument);
  EXPECT_EQ(CompletionQueue().deliver_events(channel, nullptr).error().code,
            Errc::invalid_argument);
  CompletionChannel none;
  void* context = nullptr;
  EXPECT_FALSE(none || none.poll(&context) || none.wait(&context, -1));
  EXPECT_EQ(none.fd(), -1);
  EXPECT_EQ(Device().create_completion_channel().error().code, Errc::invalid_argument);
}

}  // namespace
}  // namespace urnic
