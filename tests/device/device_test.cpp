// The public API in real time: two devices joined by memif in one process, each with its own
// background thread. No test here measures speed.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/soon.h"
#include "urnic/urnic.h"

namespace urnic {
namespace {

struct Pair : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/urnic-device-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
  }
  void TearDown() override {
    server = Device();
    client = Device();
    std::filesystem::remove_all(directory);
  }
  Device open(const char* role, const char* progress) {
    Config c;
    EXPECT_TRUE(c.set("port", "memif:socket=" + directory + "/wire.sock,role=" + role).ok());
    EXPECT_TRUE(c.set("progress", progress).ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    auto d = Device::open(c);
    EXPECT_TRUE(d.ok()) << (d.ok() ? "" : d.error().message);
    return d.ok() ? *d : Device();
  }
  void up(const char* progress = "auto") {
    server = Device();
    client = Device();
    server = open("server", progress);
    client = open("client", progress);
    ASSERT_TRUE(server.wait_link(10000));
    ASSERT_TRUE(client.wait_link(10000));
  }
  std::string directory;
  Device server, client;
};

struct End {
  End(Device& d, std::uint32_t access, std::uint32_t cq_depth = 256) : device(&d) {
    pd = *d.alloc_pd();
    cq = *d.create_cq(cq_depth);
    memory.resize(1 << 20);
    mr = *d.register_memory(pd, memory.data(), memory.size(), access);
    QpOptions o;
    o.send_cq = o.receive_cq = cq;
    qp = *d.create_qp(pd, o);
  }
  Sge sge(std::size_t at, std::uint32_t n) const {
    return {reinterpret_cast<std::uint64_t>(memory.data()) + at, n, mr.lkey()};
  }
  Completion wait() {
    Completion c[1];
    for (int i = 0; i < 1000; ++i) {
      if (cq.poll(c) == 1) return c[0];
      cq.wait(100);
    }
    ADD_FAILURE() << "no completion";
    return {};
  }
  Device* device;
  ProtectionDomain pd;
  CompletionQueue cq;
  std::vector<std::uint8_t> memory;
  MemoryRegion mr;
  QueuePair qp;
};

constexpr std::uint32_t kAll = access_local_write | access_remote_write | access_remote_read;

void connect(Device& server, Device& client, End& s, End& c, Listener* keep) {
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  *keep = std::move(*listener);
  std::thread accepting([&] {
    auto request = keep->next(10000);
    ASSERT_TRUE(request.ok()) << request.error().message;
    const auto accepted = request->accept(s.qp);
    EXPECT_TRUE(accepted.ok());
  });
  const auto connected = c.qp.connect("10.77.0.1:" + std::to_string(keep->port()));
  EXPECT_TRUE(connected.ok()) << (connected.ok() ? "" : connected.error().message);
  accepting.join();
  (void)client;
}

TEST_F(Pair, WriteSendReadBetweenTwoDevices) {
  for (const char* progress : {"auto", "thread"}) {
    up(progress);
    End s(server, kAll), c(client, kAll);
    Listener l;
    connect(server, client, s, c, &l);
    for (std::size_t i = 0; i < c.memory.size(); ++i)
      c.memory[i] = static_cast<std::uint8_t>(i * 7 + 1);
    const Sge receive = s.sge(1 << 19, 64);
    ASSERT_TRUE(s.qp.post_receive({77, {&receive, 1}}).ok());
    const Sge data = c.sge(0, 300000), note = c.sge(0, 16);
    SendRequest write;
    write.opcode = Opcode::write;
    write.sges = {&data, 1};
    write.remote_address = s.mr.remote_address();
    write.rkey = s.mr.rkey();
    write.wr_id = 1;
    ASSERT_TRUE(c.qp.post_send(write).ok());
    SendRequest send;
    send.sges = {&note, 1};
    send.wr_id = 2;
    ASSERT_TRUE(c.qp.post_send(send).ok());
    EXPECT_EQ(c.wait().wr_id, 1u);
    EXPECT_EQ(c.wait().wr_id, 2u);
    const Completion got = s.wait();
    EXPECT_EQ(got.wr_id, 77u);
    EXPECT_EQ(got.byte_len, 16u);
    EXPECT_EQ(std::memcmp(s.memory.data(), c.memory.data(), 300000), 0);
    // and back, by Read
    const Sge back = c.sge(1 << 19, 200000);
    SendRequest read;
    read.opcode = Opcode::read;
    read.sges = {&back, 1};
    read.remote_address = s.mr.remote_address();
    read.rkey = s.mr.rkey();
    read.wr_id = 3;
    ASSERT_TRUE(c.qp.post_send(read).ok());
    EXPECT_EQ(c.wait().wr_id, 3u);
    EXPECT_EQ(std::memcmp(c.memory.data() + (1 << 19), s.memory.data(), 200000), 0);
    EXPECT_EQ(s.qp.stats().iwarp.bytes_slow, 0u);
    c.qp.disconnect();
    EXPECT_TRUE(test::soon(
        [&] { return s.qp.state() == QpState::error && c.qp.state() == QpState::error; }));
  }
}

TEST_F(Pair, RefusedUnreachableAndMalformedAddressesFailWithTheirError) {
  up();
  End c(client, kAll), d(client, kAll), e(client, kAll);
  ConnectionOptions quick;
  quick.timeout_ms = 3000;
  auto r = c.qp.connect("10.77.0.1:9", quick);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, Errc::refused) << r.error().message;
  r = d.qp.connect("192.0.2.1:9", quick);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, Errc::unreachable) << r.error().message;
  r = e.qp.connect("somewhere", quick);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, Errc::invalid_argument);
}

// The last request takes the place in the table, and finally the number, of those that gave up.
TEST_F(Pair, ARequestWhosePeerGaveUpDoesNotAcceptAnotherPeer) {
  up("auto");
  End s(server, kAll), c(client, kAll);
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  const std::string to = "10.77.0.1:" + std::to_string(listener->port());
  const auto new_qp = [](End& e) {
    QpOptions o;
    o.send_cq = o.receive_cq = e.cq;
    return *e.device->create_qp(e.pd, o);
  };
  std::vector<ConnectRequest> held;
  for (int i = 0; i < 300; ++i) {
    QueuePair gives_up = new_qp(c);
    ASSERT_TRUE(gives_up.connect_start(to).ok());
    auto request = listener->next(60000);
    ASSERT_TRUE(request.ok()) << request.error().message;
    held.push_back(std::move(*request));
    gives_up.abort();
    ASSERT_TRUE(test::soon([&] { return server.stats().connections.empty(); }));
  }
  std::thread asks([&] { EXPECT_TRUE(c.qp.connect(to).ok()); });
  auto live = listener->next(10000);
  EXPECT_TRUE(live.ok());
  for (ConnectRequest& r : held) {
    QueuePair qp = new_qp(s);
    const auto accepted = r.accept(qp);
    EXPECT_FALSE(accepted.ok());
  }
  held.clear();
  if (live.ok()) {
    EXPECT_TRUE(live->accept(s.qp).ok());
  }
  asks.join();
}

// proves: E-39
TEST_F(Pair, IdleConnectionUsesNoCpu) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has a thread of its own that wakes";
#endif
  up();
  End s(server, kAll), c(client, kAll);
  Listener l;
  connect(server, client, s, c, &l);
  usleep(500000);
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  usleep(3000000);
  getrusage(RUSAGE_SELF, &after);
  // Two devices in this process: E-39 allows each 20 voluntary switches in 10 s.
  EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 12 + 2);
}

TEST_F(Pair, DeregisteredMemoryIsRefusedRemotely) {
  up();
  End s(server, kAll), c(client, kAll);
  Listener l;
  connect(server, client, s, c, &l);
  const std::uint32_t rkey = s.mr.rkey();
  const std::uint64_t address = s.mr.remote_address();
  EXPECT_TRUE(s.mr.deregister().ok());
  const Sge data = c.sge(0, 100);
  SendRequest write;
  write.opcode = Opcode::write;
  write.sges = {&data, 1};
  write.remote_address = address;
  write.rkey = rkey;
  write.wr_id = 1;
  ASSERT_TRUE(c.qp.post_send(write).ok());
  // The Write itself may complete (reliably sent) or not; the connection ends.
  EXPECT_TRUE(test::soon([&] { return c.qp.state() != QpState::rts; }));
  EXPECT_EQ(s.qp.stats().iwarp.ddp.terminates_sent, 1u);
}

// Four threads post Sends to one queue pair and two post the receives, while others poll and a
// background thread may drive: every request completes exactly once, each thread's in its order.
// proves: E-28
TEST_F(Pair, ThreadsShareAQueuePair) {
  for (const char* progress : {"auto", "thread", "poll"}) {
    server = Device();
    client = Device();
    server = open("server", progress);
    client = open("client", progress);
    std::atomic<bool> stop{false};
    // With progress "poll" a program must drive: one thread polls each device.
    std::thread drivers[2];
    if (std::string(progress) == "poll") {
      int i = 0;
      for (Device* d : {&server, &client}) {
        drivers[i++] = std::thread([&stop, d] {
          while (!stop) {
            if (!d->progress()) usleep(100);  // on a busy machine a yield takes far longer
          }
        });
      }
    }
    const bool linked = server.wait_link(60000) && client.wait_link(60000);
    EXPECT_TRUE(linked);
    if (!linked) {
      stop = true;
      for (std::thread& t : drivers) {
        if (t.joinable()) t.join();
      }
      return;
    }
    End s(server, kAll, 8192), c(client, kAll, 8192);  // room for every completion
    Listener l;
    connect(server, client, s, c, &l);
    constexpr int kSenders = 4, kEach = 1500, kAllSends = kSenders * kEach;
    std::vector<std::thread> threads;
    std::atomic<int> receives{0};
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        const Sge into = s.sge(0, 64);
        while (receives.fetch_add(1) < kAllSends) {
          while (!s.qp.post_receive({1, {&into, 1}}).ok()) std::this_thread::yield();
        }
      });
    }
    for (int t = 0; t < kSenders; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          const std::uint64_t id = static_cast<std::uint64_t>(t) << 32 | static_cast<unsigned>(i);
          const Sge from{reinterpret_cast<std::uint64_t>(&id), 8, 0};
          SendRequest r;
          r.wr_id = id;
          r.flags = send_signaled | send_inline;
          r.sges = {&from, 1};
          while (!c.qp.post_send(r).ok()) std::this_thread::yield();
        }
      });
    }
    int next[kSenders] = {};
    threads.emplace_back([&] {
      for (int i = 0; i < kAllSends; ++i) {
        const Completion done = c.wait();
        const auto t = done.wr_id >> 32;
        ASSERT_EQ(done.status, WcStatus::success);
        ASSERT_LT(t, std::size_t{kSenders});
        ASSERT_EQ(static_cast<std::uint32_t>(done.wr_id), static_cast<unsigned>(next[t]++));
      }
    });
    for (int i = 0; i < kAllSends; ++i) {
      const Completion got = s.wait();
      ASSERT_EQ(got.status, WcStatus::success) << to_string(got.status);
      ASSERT_EQ(got.byte_len, 8u);
    }
    for (std::thread& t : threads) t.join();
    stop = true;
    for (std::thread& t : drivers) {
      if (t.joinable()) t.join();
    }
  }
}

}  // namespace
}  // namespace urnic
