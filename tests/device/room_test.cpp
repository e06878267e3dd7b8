// A sender that finds no room sleeps until there is some, and continues at once. Only its
// application drives the receiver (progress = poll), and it stops.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/soon.h"
#include "urnic/urnic.h"

namespace urnic {
namespace {

constexpr std::size_t kBytes = 32 << 20;

struct Room : testing::TestWithParam<std::tuple<const char*, const char*>> {
  void SetUp() override {
    char name[] = "/tmp/urnic-room-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
  }
  void TearDown() override {
    client_qp = {};
    server_qp = {};
    std::filesystem::remove_all(directory);
  }
  bool kernel_tcp() const { return std::strcmp(std::get<0>(GetParam()), "tcp") == 0; }
  Device open(const char* role, const char* progress) {
    Config c;
    const std::string memif = "memif:socket=" + directory + "/wire.sock,role=" + role;
    EXPECT_TRUE(c.set("port", kernel_tcp() ? "tcp:bind=127.0.0.1" : memif).ok());
    EXPECT_TRUE(c.set("progress", progress).ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    auto d = Device::open(c);
    EXPECT_TRUE(d.ok()) << (d.ok() ? "" : d.error().message);
    return d.ok() ? *d : Device();
  }
  std::string directory;
  QueuePair server_qp, client_qp;
};

TEST_P(Room, ASenderSleepsUntilThereIsRoomAndContinuesAtOnce) {
  Device server = open("server", "poll"), client = open("client", std::get<1>(GetParam()));
  std::vector<std::uint8_t> from(kBytes, 7), to(kBytes);
  auto server_pd = *server.alloc_pd(), client_pd = *client.alloc_pd();
  auto target = *server.register_memory(server_pd, to.data(), to.size(),
                                        access_local_write | access_remote_write);
  auto source = *client.register_memory(client_pd, from.data(), from.size(), access_local_write);
  auto server_cq = *server.create_cq(16), client_cq = *client.create_cq(16);
  QpOptions o;
  o.send_cq = o.receive_cq = server_cq;
  server_qp = *server.create_qp(server_pd, o);
  o.send_cq = o.receive_cq = client_cq;
  client_qp = *client.create_qp(client_pd, o);
  auto listener = *server.listen(0);
  auto both = [&](auto&& until) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (int i = 0; std::chrono::steady_clock::now() < end; ++i) {
      if (until()) return true;
      server.progress();
      if (i % 64 == 63) std::this_thread::yield();
    }
    return false;
  };
  if (!kernel_tcp()) {
    ASSERT_TRUE(both([&] { return client.wait_link(0); }));
  }
  const std::string address = kernel_tcp() ? "127.0.0.1:" : "10.77.0.1:";
  ASSERT_TRUE(client_qp.connect_start(address + std::to_string(listener.port())).ok());
  ConnectRequest request;
  ASSERT_TRUE(both([&] {
    if (!request) {
      if (auto got = listener.next(0); got.ok()) request = std::move(*got);
    }
    return bool(request);
  }));
  ASSERT_TRUE(request.accept(server_qp).ok());
  ASSERT_TRUE(both([&] { return client_qp.state() == QpState::rts; }));

  // From here on the server receives nothing.
  const Sge sge{reinterpret_cast<std::uint64_t>(from.data()), kBytes, source.lkey()};
  SendRequest w;
  w.opcode = Opcode::write;
  w.flags = send_signaled;
  w.sges = {&sge, 1};
  w.remote_address = target.remote_address();
  w.rkey = target.rkey();
  ASSERT_TRUE(client_qp.post_send(w).ok());
  // Waits until everything is full, and for a few timers; a spinning sender polls a million times.
  const auto polls_within = [&](int ms) {
    const std::uint64_t before = client.stats().polls;
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return client.stats().polls - before;
  };
  EXPECT_TRUE(test::soon([&] { return polls_within(300) < 200; }));

  Completion c;
  EXPECT_TRUE(both([&] { return client_cq.poll({&c, 1}) == 1; }));
  EXPECT_EQ(c.status, WcStatus::success);
  EXPECT_TRUE(both([&] { return to == from; }));
}

INSTANTIATE_TEST_SUITE_P(
    All, Room, testing::Combine(testing::Values("memif", "tcp"), testing::Values("auto", "thread")),
    [](const auto& i) { return std::string(std::get<0>(i.param)) + "_" + std::get<1>(i.param); });

}  // namespace
}  // namespace urnic
