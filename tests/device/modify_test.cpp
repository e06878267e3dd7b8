// Moving a queue pair through the public API: which posts each state accepts, and reuse.
#include <gtest/gtest.h>
#include <unistd.h>

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

struct Modify : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/urnic-modify-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
    server = open("server");
    client = open("client");
  }
  void TearDown() override {
    server = client = Device();
    std::filesystem::remove_all(directory);
  }
  Device open(const char* role) {
    Config c;
    EXPECT_TRUE(c.set("port", "memif:socket=" + directory + "/wire.sock,role=" + role).ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    auto d = Device::open(c);
    EXPECT_TRUE(d.ok());
    return d.ok() ? *d : Device();
  }
  // The result of the client's connect; the server accepts.
  static Result<void> join(Listener& listener, QueuePair& server, QueuePair& client) {
    std::thread accepting([&] {
      auto request = listener.next(10000);
      ASSERT_TRUE(request.ok());
      EXPECT_TRUE(request->accept(server).ok());
    });
    auto up = client.connect("10.77.0.1:4000");
    accepting.join();
    return up;
  }
  struct End {
    explicit End(Device& d) {
      pd = *d.alloc_pd();
      cq = *d.create_cq(64);
      events = *d.create_event_queue();
      QpOptions o;
      o.send_cq = o.receive_cq = cq;
      o.events = events;
      qp = *d.create_qp(pd, o);
    }
    // "rs": a receive and a send are accepted; '-' if refused with wrong_state.
    std::string takes() {
      std::string out;
      const auto receive = qp.post_receive({1, {}});
      out += receive.ok() ? 'r' : receive.error().code == Errc::wrong_state ? '-' : '?';
      const auto send = qp.post_send(SendRequest{});
      out += send.ok() ? 's' : send.error().code == Errc::wrong_state ? '-' : '?';
      return out;
    }
    std::string statuses(int n) {
      std::string out;
      Completion c[1];
      for (int i = 0; i < 1000 && static_cast<int>(out.size()) < n; ++i) {
        if (cq.poll(c) == 1) {
          out += c[0].status == WcStatus::flushed   ? 'f'
                 : c[0].status == WcStatus::success ? 'o'
                                                    : '?';
        } else {
          cq.wait(10);
        }
      }
      return out;
    }
    ProtectionDomain pd;
    CompletionQueue cq;
    EventQueue events;
    QueuePair qp;
  };
  std::string directory;
  Device server, client;
};

// proves: IB-105, IB-117
TEST_F(Modify, EachStateAcceptsItsPosts) {
  End e(client);
  EXPECT_EQ(e.qp.state(), QpState::init);
  EXPECT_EQ(e.takes(), "r-");
  ASSERT_TRUE(e.qp.modify(QpState::reset).ok());
  EXPECT_EQ(e.takes(), "--");
  EXPECT_EQ(e.statuses(0), "");
  ASSERT_TRUE(e.qp.modify(QpState::init).ok());
  EXPECT_EQ(e.takes(), "r-");
  EXPECT_EQ(e.takes(), "r-");
  ASSERT_TRUE(e.qp.modify(QpState::error).ok());
  EXPECT_EQ(e.takes(), "rs");
  EXPECT_EQ(e.statuses(4), "ffff") << "outstanding and later ones, both queues";
}

// proves: IB-109, IB-118
TEST_F(Modify, ARefusedMoveFailsWithWrongStateAndChangesNothing) {
  End e(client);
  for (const QpState to : {QpState::rtr, QpState::rts, QpState::sqd, QpState::sqe}) {
    const auto moved = e.qp.modify(to);
    ASSERT_FALSE(moved.ok());
    EXPECT_EQ(moved.error().code, Errc::wrong_state);
    EXPECT_EQ(e.qp.state(), QpState::init);
  }
  ASSERT_TRUE(e.qp.modify(QpState::error).ok());
  EXPECT_FALSE(e.qp.modify(QpState::init).ok());
  EXPECT_EQ(e.qp.state(), QpState::error);
}

// Its events carry the number of the connection.
// proves: E-43
TEST_F(Modify, AQueuePairIsConnectedAgainAfterReset) {
  ASSERT_TRUE(server.wait_link(10000) && client.wait_link(10000));
  End s(server), c(client);
  auto listener = server.listen(4000);
  ASSERT_TRUE(listener.ok());
  for (int life = 0; life < 3; ++life) {
    SCOPED_TRACE(life);
    const auto up = join(*listener, s.qp, c.qp);
    ASSERT_TRUE(up.ok()) << up.error().message;
    EXPECT_EQ(c.qp.state(), QpState::rts);
    ASSERT_TRUE(s.qp.post_receive({7, {}}).ok());
    ASSERT_TRUE(c.qp.post_send(SendRequest{}).ok());
    EXPECT_EQ(s.statuses(1), "o");
    EXPECT_EQ(c.statuses(1), "o");
    for (QueuePair* qp : {&c.qp, &s.qp}) {
      ASSERT_TRUE(qp->modify(QpState::error).ok());
      ASSERT_TRUE(qp->modify(QpState::reset).ok());
      ASSERT_TRUE(qp->modify(QpState::init).ok());
    }
    EXPECT_EQ(s.qp.connections(), life + 1u);
    EXPECT_EQ(c.qp.connections(), life + 1u);
  }
  for (End* end : {&s, &c}) {
    std::uint32_t established = 0;
    for (Event e; end->events.poll(&e);) {
      if (e.kind == EventKind::established) ++established;
      EXPECT_EQ(e.connection, established);
    }
    EXPECT_EQ(established, 3u);
  }
}

// proves: E-43
TEST_F(Modify, ARefusedConnectDoesNotCountAsAConnection) {
  ASSERT_TRUE(server.wait_link(10000) && client.wait_link(10000));
  End first(client), second(client);
  auto source = client.bind("10.77.0.2:5000");
  ASSERT_TRUE(source.ok());
  ConnectionOptions from;
  from.source = &*source;
  // No host has that address, so the first connection waits; a refusal would free its port.
  const char* const nobody = "10.77.0.9:4000";
  ASSERT_TRUE(first.qp.connect_start(nobody, from).ok());
  EXPECT_EQ(first.qp.connections(), 1u);
  const auto again = second.qp.connect_start(nobody, from);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::in_use) << again.error().message;
  EXPECT_EQ(second.qp.connections(), 0u);
}

// proves: E-55
TEST_F(Modify, ThePeerHasTheRightsOfTheQueuePairUntilReset) {
  ASSERT_TRUE(server.wait_link(10000) && client.wait_link(10000));
  End s(server), c(client);
  std::vector<std::uint8_t> theirs(64), ours(64);
  auto sink = server.register_memory(
      s.pd, theirs.data(), theirs.size(),
      access_local_write | access_remote_write | access_remote_read | access_remote_atomic);
  auto local = client.register_memory(c.pd, ours.data(), ours.size(), access_local_write);
  ASSERT_TRUE(sink.ok() && local.ok());
  const auto refused = s.qp.modify(QpState::init, {.access = access_local_write});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  auto listener = server.listen(4000);
  ASSERT_TRUE(listener.ok());
  const auto after = [&](Opcode op, std::optional<std::uint32_t> connected = {}) {
    const auto up = join(*listener, s.qp, c.qp);
    EXPECT_TRUE(up.ok());
    if (connected) {
      EXPECT_TRUE(s.qp.modify(QpState::rts, {.access = connected}).ok());
    }
    const Sge sge{reinterpret_cast<std::uintptr_t>(ours.data()), 8, local->lkey()};
    SendRequest r;
    r.opcode = op;
    r.sges = {&sge, 1};
    r.remote_address = sink->remote_address();
    r.rkey = sink->rkey();
    EXPECT_TRUE(c.qp.post_send(r).ok());
    // A Write completes when TCP has it at the other end; the Terminate arrives later.
    if (op == Opcode::write) {
      EXPECT_TRUE(test::soon([&] { return c.qp.state() != QpState::rts || theirs[0] == ours[0]; }));
    }
    const bool done = op == Opcode::write ? theirs[0] == ours[0] : c.statuses(1) == "o";
    for (QueuePair* qp : {&c.qp, &s.qp}) {
      (void)qp->modify(QpState::error);  // if it has not moved there by itself
      EXPECT_TRUE(qp->modify(QpState::reset).ok());
      EXPECT_TRUE(qp->modify(QpState::init).ok());
    }
    return done;
  };
  ours[0] = 1;
  ASSERT_TRUE(s.qp.modify(QpState::init, {.access = access_remote_read}).ok());
  EXPECT_FALSE(after(Opcode::write));
  EXPECT_TRUE(after(Opcode::write)) << "reset gives all of it back";
  ASSERT_TRUE(s.qp.modify(QpState::init, {.access = access_remote_write}).ok());
  EXPECT_FALSE(after(Opcode::read));
  ASSERT_TRUE(s.qp.modify(QpState::init, {.access = access_remote_read}).ok());
  EXPECT_TRUE(after(Opcode::read));
  EXPECT_FALSE(after(Opcode::read, access_remote_write)) << "taken away while it is connected";
}

}  // namespace
}  // namespace urnic
