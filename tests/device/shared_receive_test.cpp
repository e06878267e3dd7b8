// Shared receive queues through the public API, in real time over a memif.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "urnic/urnic.h"

namespace urnic {
namespace {

class SharedReceiveApi : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/urnic-srq-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    server = open("server");
    client = open("client");
    ASSERT_TRUE(server && client);
    ASSERT_TRUE(server.wait_link(10000));
    pd = *server.alloc_pd();
    memory.resize(64 * 256);
    mr = *server.register_memory(pd, memory.data(), memory.size(), access_local_write);
    cq = *server.create_cq(512);
    events = *server.create_event_queue();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Device open(const char* role) {
    Config c;
    EXPECT_TRUE(c.set("port", "memif:socket=" + directory_ + "/wire.sock,role=" + role).ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    auto d = Device::open(c);
    EXPECT_TRUE(d.ok()) << (d.ok() ? "" : d.error().message);
    return d.ok() ? *d : Device();
  }
  Result<void> post(SharedReceiveQueue& srq, std::uint64_t id) {
    const Sge sge{reinterpret_cast<std::uint64_t>(memory.data()) + id % 256 * 64, 64, mr.lkey()};
    return srq.post_receive({id, {&sge, 1}});
  }

  std::string directory_;
  Device server, client;
  ProtectionDomain pd;
  std::vector<std::uint8_t> memory;
  MemoryRegion mr;
  CompletionQueue cq;
  EventQueue events;
};

TEST_F(SharedReceiveApi, WrongUseIsRefusedWithAMessage) {
  EXPECT_FALSE(server.create_srq(pd, {.max_receive = 0}).ok());
  EXPECT_FALSE(server.create_srq(pd, {.max_receive = 4, .limit = 5}).ok());
  EXPECT_FALSE(server.create_srq({}, {}).ok());
  auto srq = server.create_srq(pd, {.max_receive = 2, .max_receive_sge = 1});
  ASSERT_TRUE(srq.ok());
  const Sge two[2] = {};
  EXPECT_EQ(srq->post_receive({1, two}).error().code, Errc::invalid_argument);
  ASSERT_TRUE(post(*srq, 1).ok());
  ASSERT_TRUE(post(*srq, 2).ok());
  EXPECT_EQ(post(*srq, 3).error().code, Errc::queue_full);
  EXPECT_FALSE(srq->set_limit(3).ok());
  EXPECT_EQ(srq->query().posted, 2u);
  EXPECT_EQ(srq->query().max_receive, 2u);
  QpOptions o;
  o.send_cq = o.receive_cq = cq;
  o.srq = *srq;
  auto qp = server.create_qp(pd, o);
  ASSERT_TRUE(qp.ok());
  EXPECT_EQ(qp->post_receive({4, {}}).error().code, Errc::invalid_argument);
  auto other = client.alloc_pd();
  QpOptions foreign;
  auto client_cq = *client.create_cq(4);
  foreign.send_cq = foreign.receive_cq = client_cq;
  foreign.srq = *srq;
  EXPECT_FALSE(client.create_qp(*other, foreign).ok());
  o.iwarp.completion_method = 3;
  EXPECT_FALSE(server.create_qp(pd, o).ok());
  o.iwarp.completion_method = 1;
  o.iwarp.completion_threshold = 4;
  EXPECT_FALSE(server.create_qp(pd, o).ok());
}

TEST_F(SharedReceiveApi, TheLimitEventArrivesAtOnceIfItIsReachedAlready) {
  int mark = 0;
  SrqOptions so;
  so.max_receive = 4;
  so.limit = 2;
  so.events = events;
  so.context = &mark;
  auto srq = server.create_srq(pd, so);
  ASSERT_TRUE(srq.ok());
  Event e;
  ASSERT_TRUE(events.wait(&e, 1000));
  EXPECT_EQ(e.kind, EventKind::receive_limit);
  EXPECT_EQ(e.context, &mark);
  EXPECT_EQ(srq->query().limit, 0u);
}

// Four clients send to one queue; it is refilled at each limit event.
TEST_F(SharedReceiveApi, ManyQueuePairsUseOneQueueRefilledByItsLimit) {
  constexpr int kClients = 4;
  constexpr std::uint32_t kSends = 200;
  int mark = 0;
  SrqOptions so;
  so.max_receive = 128;
  so.events = events;
  so.context = &mark;
  auto srq = *server.create_srq(pd, so);
  std::uint64_t posted = 0;
  for (; posted < 128; ++posted) ASSERT_TRUE(post(srq, posted).ok());
  ASSERT_TRUE(srq.set_limit(64).ok());

  auto listener = *server.listen(0);
  std::vector<QueuePair> ends;
  std::thread accepting([&] {
    for (int i = 0; i < kClients; ++i) {
      auto request = listener.next(10000);
      ASSERT_TRUE(request.ok()) << request.error().message;
      QpOptions o;
      o.send_cq = o.receive_cq = cq;
      o.srq = srq;
      o.events = events;
      o.iwarp.completion_threshold = 0;
      auto qp = server.create_qp(pd, o);
      ASSERT_TRUE(qp.ok());
      ASSERT_TRUE(request->accept(*qp).ok());
      ends.push_back(std::move(*qp));
    }
  });
  auto client_pd = *client.alloc_pd();
  auto client_cq = *client.create_cq(1024);
  std::vector<QueuePair> senders;
  for (int i = 0; i < kClients; ++i) {
    QpOptions o;
    o.send_cq = o.receive_cq = client_cq;
    auto qp = *client.create_qp(client_pd, o);
    const std::string address = "10.77.0.1:" + std::to_string(listener.port());
    ASSERT_TRUE(qp.connect(address).ok());
    senders.push_back(std::move(qp));
  }
  accepting.join();

  std::map<std::uint32_t, std::uint32_t> next;  // by queue pair
  std::vector<std::uint32_t> sent(kClients, 0);
  std::uint32_t received = 0;
  int limits = 0;
  for (int idle = 0; received < kClients * kSends && idle < 2000;) {
    for (std::size_t i = 0; i < senders.size(); ++i) {
      if (sent[i] == kSends) continue;
      Sge sge{reinterpret_cast<std::uint64_t>(&sent[i]), 4, 0};
      SendRequest r;
      r.flags = send_signaled | send_inline;
      r.sges = {&sge, 1};
      if (senders[i].post_send(r).ok()) ++sent[i];
    }
    Completion done[32];
    while (client_cq.poll(done) > 0) {
    }
    const int n = cq.poll(done);
    ASSERT_GE(n, 0);
    for (int i = 0; i < n; ++i) {
      ASSERT_EQ(done[i].status, WcStatus::success);
      std::uint32_t value = 0;
      std::memcpy(&value, memory.data() + done[i].wr_id % 256 * 64, 4);
      ASSERT_EQ(value, next[done[i].qp_number]++) << "each sender's order is kept";
      ++received;
    }
    Event e;
    while (events.poll(&e)) {
      if (e.kind != EventKind::receive_limit) continue;
      EXPECT_EQ(e.context, &mark);
      ++limits;
    }
    if (limits != 0 && srq.query().limit == 0) {
      while (post(srq, posted).ok()) ++posted;
      if (srq.query().posted >= 64) {
        ASSERT_TRUE(srq.set_limit(64).ok());
      }
    }
    if (n == 0) {
      ++idle;
      cq.wait(5);
    }
  }
  EXPECT_EQ(received, kClients * kSends);
  EXPECT_GE(limits, 3);
  ends[0].abort();
  bool told = false;
  Event e;
  while (!told && events.wait(&e, 1000)) told = e.kind == EventKind::last_receive;
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace urnic
