// Objects that are destroyed while they are still in use: connections end as requested, and no
// event of a destroyed object is delivered. Over a memif and the kernel's TCP.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/soon.h"
#include "urnic/urnic.h"

namespace urnic {
namespace {

constexpr std::uint32_t kPiece = 1 << 20;
constexpr std::size_t kPieces = 16;

struct Destroy : ::testing::TestWithParam<const char*> {
  struct End {
    Device device;
    EventQueue events;
    ProtectionDomain pd;
    CompletionQueue cq;
    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kPiece * kPieces);
    MemoryRegion mr;
    QueuePair qp;
    int tag = 0;  // its address is the context

    explicit End(const Config& c) {
      auto opened = Device::open(c);
      EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
      device = *opened;
      events = *device.create_event_queue();
      pd = *device.alloc_pd();
      cq = *device.create_cq(64);
      mr = *device.register_memory(pd, memory.data(), memory.size(),
                                   access_local_write | access_remote_write);
      make_qp();
    }
    void make_qp(bool asynchronous_events = false) {
      QpOptions o;
      o.send_cq = o.receive_cq = cq;
      o.events = events;
      o.context = &tag;
      o.asynchronous_events = asynchronous_events;
      qp = *device.create_qp(pd, o);
    }
    std::optional<Event> next(int ms = 10000) {
      Event e;
      if (!events.wait(&e, ms)) return std::nullopt;
      return e;
    }
  };
  void SetUp() override {
    char name[] = "/tmp/urnic-destroy-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
    server.emplace(config("server"));
    client.emplace(config("client"));
    ASSERT_TRUE(server->device.wait_link(10000) && client->device.wait_link(10000));
    auto l = server->device.listen(0);
    ASSERT_TRUE(l.ok()) << l.error().message;
    listener = std::move(*l);
  }
  void TearDown() override {
    listener = Listener();
    client.reset();
    server.reset();
    std::filesystem::remove_all(directory);
  }
  bool memif() const { return std::string(GetParam()) == "memif"; }
  Config config(const std::string& role) const {
    Config c;
    EXPECT_TRUE(c.set("port", memif() ? "memif:socket=" + directory + "/d.sock,role=" + role
                                      : "tcp:bind=127.0.0.1")
                    .ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    return c;
  }
  void connect() {
    std::thread accepting([&] {
      auto request = listener.next(10000);
      ASSERT_TRUE(request.ok());
      EXPECT_TRUE(request->accept(server->qp).ok());
    });
    const std::string to = memif() ? "10.77.0.1:" : "127.0.0.1:";
    const auto done = client->qp.connect(to + std::to_string(listener.port()));
    accepting.join();
    ASSERT_TRUE(done.ok()) << done.error().message;
    for (End* end : {&*server, &*client}) {
      const auto e = end->next();
      ASSERT_TRUE(e && e->kind == EventKind::established);
    }
  }
  // Writes all of the client's memory into the server's.
  void write_all() {
    for (std::size_t i = 0; i < client->memory.size(); ++i) {
      client->memory[i] = static_cast<std::uint8_t>(i * 7 + i / 4096);
    }
    for (std::size_t i = 0; i < kPieces; ++i) {
      const Sge sge{reinterpret_cast<std::uintptr_t>(client->memory.data() + i * kPiece), kPiece,
                    client->mr.lkey()};
      SendRequest r;
      r.wr_id = i;
      r.opcode = Opcode::write;
      r.sges = {&sge, 1};
      r.remote_address = server->mr.remote_address() + i * kPiece;
      r.rkey = server->mr.rkey();
      ASSERT_TRUE(client->qp.post_send(r).ok());
    }
  }
  void reopen_client_with(const char* key, const char* value) {
    client.reset();
    auto c = config("client");
    ASSERT_TRUE(c.set(key, value).ok());
    client.emplace(c);
    ASSERT_TRUE(client->device.wait_link(10000));
  }
  // Destroys the client's queue pair and memory after a disconnect.
  void leave() {
    client->qp.disconnect();
    client->qp = QueuePair();
    EXPECT_TRUE(client->mr.deregister().ok());
    std::fill(client->memory.begin(), client->memory.end(), 0xee);
  }
  // Destroys a client with that setting after everything was posted but not everything sent. `*end`
  // is the server's last event.
  void the_last_handle_goes_with(const char* key, const char* value, Event* end) {
    client.reset();
    Config c = config("client");
    ASSERT_TRUE(c.set(key, value).ok());
    client.emplace(c);
    ASSERT_TRUE(client->device.wait_link(10000));
    connect();
    write_all();
    const auto expected = client->memory;
    client->qp.disconnect();
    client.reset();
    const auto e = server->next();
    ASSERT_TRUE(e);
    *end = *e;
    EXPECT_TRUE(server->memory == expected);
  }

  std::string directory;
  std::optional<End> server, client;
  Listener listener;
};

// The client's engine does not run until queue pair and memory are destroyed, so nothing has been
// sent before.
// proves: E-50
TEST_P(Destroy, PostedDataIsSentAfterADisconnectEvenIfItsMemoryIsGone) {
  reopen_client_with("progress", "poll");
  connect();
  write_all();
  const auto expected = client->memory;
  leave();
  std::optional<Event> end;
  for (int i = 0; i < 5000 && !end; ++i) {
    EXPECT_FALSE(client->next(1)) << "its context may be gone";
    end = server->next(1);
  }
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, EventKind::disconnected) << end->error.message;
  EXPECT_TRUE(server->memory == expected);
}

TEST_P(Destroy, PostedDataIsSentAfterADisconnectWhileAThreadDrives) {
  connect();
  write_all();
  const auto expected = client->memory;
  leave();
  const auto end = server->next();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, EventKind::disconnected) << end->error.message;
  EXPECT_TRUE(server->memory == expected);
  EXPECT_FALSE(server->next(100)) << "once";
  EXPECT_FALSE(client->next(0)) << "its context may be gone";
}

// proves: E-50
TEST_P(Destroy, TheLastHandleOfTheDeviceWaitsForTheEnd) {
  Event end;
  the_last_handle_goes_with("progress", "poll", &end);  // no other thread drives it
  EXPECT_EQ(end.kind, EventKind::disconnected) << end.error.message;
}

// More than a second, as on a busy machine.
struct DestroySlowly : Destroy {};
// proves: E-50
TEST_P(DestroySlowly, TheLastHandleOfTheDeviceWaitsAsLongAsThereIsProgress) {
  Event end;
  the_last_handle_goes_with("faults", "rate=64mbit", &end);
  EXPECT_EQ(end.kind, EventKind::disconnected) << end.error.message;
}

// On a real network it would be under way: here the RST.
// proves: E-50
TEST_P(Destroy, WhatAPlanOfFaultsHoldsBackLeavesBeforeTheDeviceEnds) {
  reopen_client_with("faults", "delay=100ms");
  connect();
  client.reset();
  const auto end = server->next();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, EventKind::failed);
  EXPECT_EQ(end->error.code, Errc::reset) << end->error.message;
}

// proves: E-50
TEST_P(Destroy, DestroyingWithoutADisconnectAborts) {
  connect();
  client->qp = QueuePair();
  const auto end = server->next();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, EventKind::failed);
  EXPECT_EQ(end->error.code, Errc::reset);
}

// The engine has seen the end, and its event is queued.
// proves: E-50
TEST_P(Destroy, ADestroyedQueuePairDeliversNoEvent) {
  connect();
  server->qp.abort();
  ASSERT_TRUE(test::soon([&] {
    client->device.progress();
    return client->qp.state() == QpState::error;
  }));
  client->qp = QueuePair();
  EXPECT_FALSE(client->next(50));
}

// For a completion queue, whose events go to the device's queue.
// proves: E-47
TEST_P(Destroy, ADestroyedCompletionQueueDeliversNoEvent) {
  ASSERT_TRUE(client->device.deliver_events(client->events, this).ok());
  int mine = 0;
  auto small = client->device.create_cq(1, &mine);
  ASSERT_TRUE(small.ok());
  QpOptions o;
  o.send_cq = o.receive_cq = *small;
  auto qp = client->device.create_qp(client->pd, o);
  ASSERT_TRUE(qp.ok());
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(qp->post_receive({1, {}}).ok());
  ASSERT_TRUE(qp->modify(QpState::error).ok());
  o = {};
  *qp = QueuePair();
  *small = CompletionQueue();
  while (const auto e = client->next(50)) {
    EXPECT_NE(e->kind, EventKind::cq_overrun);
    EXPECT_NE(e->context, &mine);
  }
}

// The same when the device's event queue is destroyed.
TEST_P(Destroy, TheDeviceDeliversNoEventsAfterItsQueueIsDestroyed) {
  EventQueue gone = *client->device.create_event_queue();
  ASSERT_TRUE(client->device.deliver_events(gone, this).ok());
  gone = EventQueue();
  EventQueue next = *client->device.create_event_queue();  // possibly at the same address
  auto small = client->device.create_cq(1);
  ASSERT_TRUE(small.ok());
  QpOptions o;
  o.send_cq = o.receive_cq = *small;
  auto qp = client->device.create_qp(client->pd, o);
  ASSERT_TRUE(qp.ok());
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(qp->post_receive({1, {}}).ok());
  ASSERT_TRUE(qp->modify(QpState::error).ok());
  Event e;
  EXPECT_FALSE(next.wait(&e, 50));
}

// discard() also removes completions that were not polled; the destructor keeps them.
TEST_P(Destroy, CompletionsStayUnlessTheyAreDiscarded) {
  for (const bool discard : {false, true}) {
    client->make_qp();
    ASSERT_TRUE(client->qp.post_receive({7, {}}).ok());
    ASSERT_TRUE(client->qp.modify(QpState::error).ok());
    if (discard) client->qp.discard();
    client->qp = QueuePair();
    Completion c[2];
    EXPECT_EQ(client->cq.poll(c), discard ? 0 : 1);
  }
}

// Requests reset, also right after creation and after the end of a connection, and starts again.
// proves: IB-106
TEST_P(Destroy, AQueuePairRepeatsResetInitConnectedError) {
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    for (End* end : {&*server, &*client}) {
      ASSERT_TRUE(end->qp.modify(QpState::reset).ok());
      EXPECT_EQ(end->qp.state(), QpState::reset);
      EXPECT_EQ(end->qp.post_receive({1, {}}).error().code, Errc::wrong_state);
      ASSERT_TRUE(end->qp.modify(QpState::init).ok());
    }
    ASSERT_TRUE(server->qp.post_receive({7, {}}).ok());
    ASSERT_TRUE(server->qp.post_receive({8, {}}).ok());
    connect();
    ASSERT_TRUE(client->qp.post_send(SendRequest{}).ok());
    Completion c[2];
    ASSERT_TRUE(server->cq.wait(10000));
    for (int i = 0; i < 1000 && server->cq.poll({c, 1}) == 0; ++i) server->cq.wait(10);
    EXPECT_EQ(c[0].wr_id, 7u);
    EXPECT_EQ(c[0].status, WcStatus::success);
    ASSERT_TRUE(server->qp.modify(QpState::error).ok());
    for (int i = 0; i < 1000 && server->cq.poll({c, 1}) == 0; ++i) server->cq.wait(10);
    EXPECT_EQ(c[0].wr_id, 8u);
    EXPECT_EQ(c[0].status, WcStatus::flushed);
    for (End* end : {&*server, &*client}) {
      const auto e = end->next();
      ASSERT_TRUE(e);
      EXPECT_EQ(e->kind, EventKind::failed);
      EXPECT_EQ(e->context, &end->tag);
      EXPECT_EQ(end->qp.state(), QpState::error);
      while (end->cq.poll(c) > 0) {
      }
    }
  }
}

// Programs treat every event other than `established` and an orderly end as a lost connection.
// Other events are only for programs that request them.
// proves: E-50
TEST_P(Destroy, AsynchronousEventsArriveOnlyIfRequested) {
  for (const bool asked : {false, true}) {
    server->make_qp(asked);
    client->make_qp();
    connect();
    const Sge sge{reinterpret_cast<std::uintptr_t>(client->memory.data()), 8, client->mr.lkey()};
    SendRequest r;
    r.opcode = Opcode::write;
    r.sges = {&sge, 1};
    r.remote_address = server->mr.remote_address();
    r.rkey = server->mr.rkey() + 1;
    ASSERT_TRUE(client->qp.post_send(r).ok());
    std::vector<EventKind> told;
    do {
      const auto e = server->next();
      ASSERT_TRUE(e);
      told.push_back(e->kind);
    } while (told.back() != EventKind::disconnected);
    EXPECT_NE(std::find(told.begin(), told.end(), EventKind::failed), told.end());
    EXPECT_EQ(std::count(told.begin(), told.end(), EventKind::access_error), asked ? 1 : 0);
    const auto there = client->next();
    ASSERT_TRUE(there);
    EXPECT_EQ(there->kind, EventKind::failed);
  }
}

// Over the kernel's TCP the kernel does it when the process ends.
TEST_P(Destroy, DisconnectAllEndsConnectionsOfLivingQueuePairs) {
  client->make_qp();
  server->make_qp();
  connect();
  const auto begun = std::chrono::steady_clock::now();
  client->device.disconnect_all(60000);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(40));
  if (!memif()) {
    EXPECT_EQ(server->device.stats().connections.size(), 1u);
    return;
  }
  const auto e = server->next();
  ASSERT_TRUE(e);
  EXPECT_EQ(e->kind, EventKind::disconnected);
}

INSTANTIATE_TEST_SUITE_P(Wires, DestroySlowly, ::testing::Values("memif", "tcp"),
                         [](const auto& wire) { return std::string(wire.param); });
INSTANTIATE_TEST_SUITE_P(Wires, Destroy, ::testing::Values("memif", "tcp"),
                         [](const auto& wire) { return std::string(wire.param); });

}  // namespace
}  // namespace urnic
