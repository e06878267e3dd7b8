// A program whose threads connect, post, poll, sleep for events and destroy at the same time, on
// shared completion queues, as servers with a thread per connection do. Under ThreadSanitizer and
// AddressSanitizer it checks the drop-in's tables and queues; everywhere it checks that nothing is
// lost and no thread waits forever.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace {

constexpr unsigned kClients = 3, kRounds = 40, kSends = 16, kPosters = 2, kTrunkSends = 1000;
constexpr unsigned kTrunk = kClients;  // its index among the senders
// Receives that the queue pair of a peer that has gone had used, and whose completions were not
// fetched, are lost with it; so there is a receive for every message.
constexpr unsigned kAll = kPosters * kTrunkSends + kClients * kRounds * (kSends + 1);
constexpr std::uint32_t kTrunkBytes = 32;  // bytes of a message; the others have 64
constexpr std::chrono::seconds kLong{60};

ibv_qp_init_attr attributes(ibv_cq* cq, ibv_srq* srq) {
  ibv_qp_init_attr a{};
  a.qp_type = IBV_QPT_RC;
  a.send_cq = a.recv_cq = cq;
  a.srq = srq;
  a.cap.max_send_wr = 2 * kSends;
  a.cap.max_recv_wr = srq != nullptr ? 0 : 1;
  a.cap.max_send_sge = a.cap.max_recv_sge = 1;
  return a;
}

template <class F>
bool until(F&& done) {
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// The event's id; nullptr if the next event is another one or none arrives.
rdma_cm_id* take(rdma_event_channel* channel, rdma_cm_event_type wanted) {
  pollfd p{channel->fd, POLLIN, 0};
  rdma_cm_event* event = nullptr;
  if (poll(&p, 1, 60'000) != 1 || rdma_get_cm_event(channel, &event) != 0) return nullptr;
  rdma_cm_id* const id = event->event == wanted ? event->id : nullptr;
  EXPECT_EQ(event->event, wanted) << rdma_event_str(event->event);
  rdma_ack_cm_event(event);
  return id;
}

struct ThreadsTest : testing::Test {
  void SetUp() override {
    channel = rdma_create_event_channel();
    ASSERT_NE(channel, nullptr);
    ASSERT_EQ(rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&a)), 0);
    ASSERT_EQ(rdma_listen(listener, 64), 0);
    // Otherwise the first request would give both.
    ibv_context** const list = rdma_get_devices(nullptr);
    ASSERT_NE(list, nullptr);
    verbs = list[0];
    rdma_free_devices(list);
    pd = ibv_alloc_pd(verbs);
    ASSERT_NE(pd, nullptr);
    events = ibv_create_comp_channel(verbs);
    ASSERT_NE(events, nullptr);
    sent = ibv_create_cq(verbs, 4096, nullptr, events, 0);
    received = ibv_create_cq(verbs, 4096, nullptr, nullptr, 0);
    ASSERT_TRUE(sent != nullptr && received != nullptr);
    ibv_srq_init_attr s{};
    s.attr.max_wr = 4096;
    s.attr.max_sge = 1;
    receives = ibv_create_srq(pd, &s);
    ASSERT_NE(receives, nullptr);
    region = ibv_reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(region, nullptr);
    for (unsigned i = 0; i < kAll; ++i) post_receive();
  }
  void TearDown() override {
    EXPECT_EQ(rdma_destroy_id(listener), 0);
    EXPECT_EQ(ibv_dereg_mr(region), 0);
    EXPECT_EQ(ibv_destroy_srq(receives), 0);
    EXPECT_EQ(ibv_destroy_cq(sent), 0);
    EXPECT_EQ(ibv_destroy_cq(received), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(events), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    rdma_destroy_event_channel(channel);
  }

  ibv_sge bytes(unsigned place) const {
    return {reinterpret_cast<std::uintptr_t>(memory.data()) + 64 * place, 64, region->lkey};
  }
  void post_receive() {
    ibv_sge sge = bytes(0);
    ibv_recv_wr wr{}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    EXPECT_EQ(ibv_post_srq_recv(receives, &wr, &bad), 0);
  }
  bool post_send(ibv_qp* qp, unsigned who) const {
    ibv_sge sge = bytes(1 + who);
    if (who == kTrunk) sge.length = kTrunkBytes;
    ibv_send_wr wr{}, *bad;
    wr.wr_id = who;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    return ibv_post_send(qp, &wr, &bad) == 0;
  }

  // ---- the threads
  // Takes the completions of a completion queue. True if there was any.
  bool take_from(ibv_cq* cq) {
    std::array<ibv_wc, 8> wc;
    const int n = ibv_poll_cq(cq, 8, wc.data());
    EXPECT_GE(n, 0);
    for (int i = 0; i < n; ++i) {
      if (wc[i].status != IBV_WC_SUCCESS) continue;  // flushed at the end of a connection
      if (wc[i].opcode == IBV_WC_SEND) completed[wc[i].wr_id].fetch_add(1);
      if (wc[i].opcode != IBV_WC_RECV) continue;
      if (wc[i].byte_len == kTrunkBytes) arrived.fetch_add(1);
      post_receive();
    }
    return n > 0;
  }
  void spin_on(ibv_cq* cq) {
    while (!stop) {
      if (!take_from(cq)) std::this_thread::yield();
    }
  }
  void sleep_on_events() {
    while (!stop) {
      EXPECT_EQ(ibv_req_notify_cq(sent, 0), 0);
      while (take_from(sent)) {
      }
      pollfd p{events->fd, POLLIN, 0};
      if (poll(&p, 1, 20) != 1) continue;
      ibv_cq* cq = nullptr;
      void* context = nullptr;
      ASSERT_EQ(ibv_get_cq_event(events, &cq, &context), 0);
      EXPECT_EQ(cq, sent);
      ibv_ack_cq_events(cq, 1);
    }
  }
  // Accepts every request, and destroys the ends of connections that have ended.
  void serve() {
    unsigned alive = 0;
    for (unsigned gone = 0; gone < kClients * kRounds + 1;) {
      pollfd p{channel->fd, POLLIN, 0};
      rdma_cm_event* event = nullptr;
      ASSERT_EQ(poll(&p, 1, 60'000), 1) << gone << " gone, " << alive << " alive";
      ASSERT_EQ(rdma_get_cm_event(channel, &event), 0);
      rdma_cm_id* const id = event->id;
      const rdma_cm_event_type what = event->event;
      rdma_ack_cm_event(event);
      if (what == RDMA_CM_EVENT_CONNECT_REQUEST) {
        auto attr = attributes(received, receives);
        ASSERT_EQ(rdma_create_qp(id, pd, &attr), 0);
        ASSERT_EQ(rdma_accept(id, nullptr), 0);
        ++alive;
      } else if (what == RDMA_CM_EVENT_DISCONNECTED || what == RDMA_CM_EVENT_CONNECT_ERROR) {
        rdma_destroy_qp(id);
        EXPECT_EQ(rdma_destroy_id(id), 0);
        ++gone;
        --alive;
      } else {
        EXPECT_EQ(what, RDMA_CM_EVENT_ESTABLISHED) << rdma_event_str(what);
      }
    }
  }

  rdma_cm_id* connect(rdma_event_channel* own) const {
    rdma_cm_id* id = nullptr;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = rdma_get_src_port(listener);
    EXPECT_EQ(rdma_create_id(own, &id, nullptr, RDMA_PS_TCP), 0);
    EXPECT_EQ(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 60'000), 0);
    EXPECT_EQ(take(own, RDMA_CM_EVENT_ADDR_RESOLVED), id);
    EXPECT_EQ(rdma_resolve_route(id, 60'000), 0);
    EXPECT_EQ(take(own, RDMA_CM_EVENT_ROUTE_RESOLVED), id);
    auto attr = attributes(sent, nullptr);
    EXPECT_EQ(rdma_create_qp(id, pd, &attr), 0);
    rdma_conn_param p{};
    EXPECT_EQ(rdma_connect(id, &p), 0);
    EXPECT_EQ(take(own, RDMA_CM_EVENT_ESTABLISHED), id);
    return id;
  }
  static void end(rdma_cm_id* id, bool orderly) {
    if (orderly) rdma_disconnect(id);
    rdma_destroy_qp(id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
  }
  void come_and_go(unsigned who) {
    rdma_event_channel* own = rdma_create_event_channel();
    ASSERT_NE(own, nullptr);
    for (unsigned round = 0; round < kRounds; ++round) {
      const unsigned before = completed[who];
      rdma_cm_id* id = connect(own);
      for (unsigned i = 0; i < kSends; ++i) EXPECT_TRUE(post_send(id->qp, who));
      EXPECT_TRUE(until([&] { return completed[who] == before + kSends; }))
          << completed[who] - before << " of " << kSends;
      // Sometimes with work whose completion is not polled.
      if (round % 3 == 2) {
        EXPECT_TRUE(post_send(id->qp, kTrunk + 1));
      }
      end(id, round % 2 == 0);
    }
    rdma_destroy_event_channel(own);
  }
  // Several threads post to one queue pair, retrying while it is full.
  void post_to(ibv_qp* trunk) {
    for (unsigned i = 0; i < kTrunkSends; ++i) {
      EXPECT_TRUE(until([&] { return post_send(trunk, kTrunk); })) << i;
    }
  }

  rdma_event_channel* channel = nullptr;
  rdma_cm_id* listener = nullptr;
  ibv_context* verbs = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* events = nullptr;
  ibv_cq *sent = nullptr, *received = nullptr;
  ibv_srq* receives = nullptr;
  ibv_mr* region = nullptr;
  std::array<char, 4096> memory{};
  std::array<std::atomic<unsigned>, kTrunk + 2> completed{};
  std::atomic<unsigned> arrived{0};
  std::atomic<bool> stop{false};
};

TEST_F(ThreadsTest, ConnectPostPollSleepAndDestroyAtOnceOnSharedQueues) {
  std::thread server([&] { serve(); });
  std::vector<std::thread> pollers;
  pollers.emplace_back([&] { spin_on(sent); });
  pollers.emplace_back([&] { spin_on(received); });
  pollers.emplace_back([&] { spin_on(received); });
  pollers.emplace_back([&] { sleep_on_events(); });
  rdma_event_channel* own = rdma_create_event_channel();
  ASSERT_NE(own, nullptr);
  rdma_cm_id* trunk = connect(own);
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < kPosters; ++i) workers.emplace_back([&] { post_to(trunk->qp); });
  for (unsigned i = 0; i < kClients; ++i) workers.emplace_back([&, i] { come_and_go(i); });
  for (std::thread& t : workers) t.join();
  EXPECT_TRUE(until([&] { return completed[kTrunk] == kPosters * kTrunkSends; }))
      << completed[kTrunk];
  EXPECT_TRUE(until([&] { return arrived == kPosters * kTrunkSends; })) << arrived;
  end(trunk, true);
  rdma_destroy_event_channel(own);
  server.join();
  stop = true;
  for (std::thread& t : pollers) t.join();
}

}  // namespace
