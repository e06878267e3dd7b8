// Connect requests whose consumer is faster than the device's thread.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "support/device_end.h"
#include "urnic/urnic.h"

namespace urnic {
namespace {

Config kernel_tcp() {
  Config c;
  EXPECT_TRUE(c.set("port", "tcp:bind=127.0.0.1").ok());
  EXPECT_TRUE(c.set("stat", "off").ok());
  EXPECT_TRUE(c.set("progress", "thread").ok());
  return c;
}

// Destroying the last reference to a request refuses it, which needs the ownership of the engine.
// If the thread that owns the engine did this, because the consumer was done first, it would
// deadlock.
TEST(ConnectRequests, DestroyingARequestAtOnceRefusesItWithoutADeadlock) {
  test::DeviceEnd server(kernel_tcp()), client(kernel_tcp());
  ASSERT_TRUE(server.device && client.device);
  auto listener = server.device.listen(0);
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  const std::string address = "127.0.0.1:" + std::to_string(listener->port());
  constexpr int kConnections = 300;
  std::atomic<int> refused{0}, failed{0};
  std::thread consumer([&] {
    for (int i = 0; i < kConnections; ++i) refused += listener->next(10000).ok();
  });
  for (int i = 0; i < kConnections; ++i) {
    QpOptions o;
    o.send_cq = o.receive_cq = client.cq;
    QueuePair qp = *client.device.create_qp(client.pd, o);
    const auto connected = qp.connect(address);
    failed += !connected.ok() && connected.error().code == Errc::rejected;
  }
  consumer.join();
  EXPECT_EQ(refused, kConnections);
  EXPECT_EQ(failed, kConnections);
}

// Each program sees how many Reads the other end offers, with the two numbers exchanged.
TEST(ConnectRequests, ARequestReportsTheReadsThatThePeerServesAndWants) {
  test::DeviceEnd server(kernel_tcp()), client(kernel_tcp());
  ASSERT_TRUE(server.device && client.device);
  auto listener = server.device.listen(0);
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  ConnectionOptions o;
  o.ird = 3;
  o.ord = 2;
  ASSERT_TRUE(client.qp.connect_start("127.0.0.1:" + std::to_string(listener->port()), o).ok());
  auto request = listener->next(60000);
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request->ord(), 3);
  EXPECT_EQ(request->ird(), 2);
}

}  // namespace
}  // namespace urnic
