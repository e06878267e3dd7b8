// A call that gets no memory returns no_memory, or works; and everything that it had started is
// undone (docs/decisions/out-of-memory.md). Each allocation of each call is refused once.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "iwarp/stream_ends.h"
#include "tests/support/allocator.h"

namespace urnic::stream_test {
namespace {

// Repeats the call with its first allocation refused, then its second, and so on, until no
// allocation is refused; returns the result of that last call.
template <class F>
auto refused_in_turn(const char* what, F&& call) -> decltype(call()) {
  for (std::uint64_t k = 0;; ++k) {
    std::optional<decltype(call())> result;
    std::uint64_t failed = 0;
    {
      const testing::NoMemory plan(k);
      result.emplace(call());
      failed = plan.failed();
    }
    if (failed == 0 || k == 1000) {
      EXPECT_TRUE(result->ok()) << what << ": " << (result->ok() ? "" : result->error().message);
      return std::move(*result);
    }
    if (!result->ok()) {
      EXPECT_EQ(result->error().code, Errc::no_memory)
          << what << ", allocation " << k << ": " << result->error().message;
    }
  }
}

TEST(OutOfMemoryCalls, EachReturnsNoMemoryOrWorks) {
  Config config;
  ASSERT_TRUE(config.set("port", "tcp").ok());
  ASSERT_TRUE(config.set("stat", "off").ok());
  // so that the refused allocations are this thread's
  ASSERT_TRUE(config.set("progress", "thread").ok());
  auto device = refused_in_turn("open", [&] { return Device::open(config); });
  ASSERT_TRUE(device.ok());
  auto pd = refused_in_turn("alloc_pd", [&] { return device->alloc_pd(); });
  auto cq = refused_in_turn("create_cq", [&] { return device->create_cq(64); });
  auto events = refused_in_turn("events", [&] { return device->create_event_queue(); });
  auto srq = refused_in_turn("create_srq", [&] { return device->create_srq(*pd); });
  std::vector<std::uint8_t> memory(4096);
  auto mr = refused_in_turn(
      "register", [&] { return device->register_memory(*pd, memory.data(), memory.size(), kAll); });
  auto window = refused_in_turn("create_window",
                                [&] { return device->create_window(*pd, WindowType::type2); });
  ASSERT_TRUE(pd.ok() && cq.ok() && events.ok() && srq.ok() && mr.ok() && window.ok());
  QpOptions o;
  o.send_cq = o.receive_cq = *cq;
  o.events = *events;
  auto qp = refused_in_turn("create_qp", [&] { return device->create_qp(*pd, o); });
  auto listener = refused_in_turn("listen", [&] { return device->listen(0, 8, *events); });
  ASSERT_TRUE(qp.ok() && listener.ok());
  const Sge sge{reinterpret_cast<std::uint64_t>(memory.data()), 64, mr->lkey()};
  EXPECT_TRUE(refused_in_turn("post_receive", [&] {
                return qp->post_receive({1, {&sge, 1}});
              }).ok());
  EXPECT_TRUE(refused_in_turn("post_receive (shared)", [&] {
                return srq->post_receive({1, {&sge, 1}});
              }).ok());
  EXPECT_TRUE(refused_in_turn("set_limit", [&] { return srq->set_limit(1); }).ok());
  EXPECT_TRUE(refused_in_turn("modify", [&] { return qp->modify(QpState::init); }).ok());
  EXPECT_TRUE(refused_in_turn("deliver", [&] { return device->deliver_events(*events); }).ok());
}

// A refusing call must not throw either, if there is no memory for its reason.
TEST(OutOfMemoryCalls, ARefusalWithoutMemoryForItsReasonIsStillARefusal) {
  Device device = open({{"progress", "thread"}}), other = open({{"progress", "thread"}});
  End end(device, 64), foreign(other, 64);
  const auto refused = [](const char* what, const auto& call) {
    SCOPED_TRACE(what);
    const testing::NoMemory plan(0, testing::NoMemory::kForEver);
    EXPECT_NO_THROW(EXPECT_FALSE(call().ok()));
  };
  ProtectionDomain no_pd;
  QueuePair no_qp;
  SharedReceiveQueue no_srq;
  Listener no_listener;
  ConnectRequest no_request;
  Device no_device;
  refused("alloc_pd", [&] { return no_device.alloc_pd(); });
  refused("register", [&] { return device.register_memory(no_pd, nullptr, 1, 0); });
  refused("create_cq", [&] { return device.create_cq(0); });
  refused("create_event_queue", [&] { return no_device.create_event_queue(); });
  refused("create_srq", [&] { return device.create_srq(no_pd); });
  refused("create_qp", [&] { return device.create_qp(no_pd, {}); });
  refused("listen", [&] { return device.listen(0, 8, foreign.events); });
  refused("deliver_events", [&] { return device.deliver_events(foreign.events); });
  refused("connect", [&] { return end.qp.connect("an address that is none at all"); });
  refused("connect_start", [&] { return end.qp.connect_start("an address that is none at all"); });
  refused("accept", [&] { return no_request.accept(end.qp); });
  refused("next", [&] { return no_listener.next(0); });
  refused("modify", [&] { return end.qp.modify(QpState::rts); });
  refused("post_send", [&] { return end.qp.post_send(SendRequest{}); });
  refused("post_receive", [&] { return no_qp.post_receive(ReceiveRequest{}); });
  refused("post_receive (shared)", [&] { return no_srq.post_receive(ReceiveRequest{}); });
  refused("set_limit", [&] { return no_srq.set_limit(1); });
  const testing::NoMemory plan(0, testing::NoMemory::kForEver);
  EXPECT_NO_THROW({
    std::ignore = device.info();
    std::ignore = device.stats();
    std::ignore = end.qp.stats();
    std::ignore = end.qp.peer_private_data();
    std::ignore = no_request.peer();
    end.qp.disconnect();
    end.qp.abort();
  });
}

// Posting several at once has no Result; requests posted before the error are sent.
TEST(OutOfMemoryCalls, PostingSeveralPostsThoseThatGetMemory) {
  Device server = open({{"progress", "thread"}}), client = open({{"progress", "thread"}});
  End s(server, 64), c(client, 64);
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  ASSERT_TRUE(c.qp.connect_start("127.0.0.1:" + std::to_string(listener->port())).ok());
  auto request = listener->next(5000);
  ASSERT_TRUE(request.ok() && request->accept(s.qp).ok());
  Event e;
  ASSERT_TRUE(c.events.wait(&e, 10000));
  ASSERT_EQ(e.kind, EventKind::established);
  // A plain request needs the queue, an atomic one also its operands.
  SendRequest requests[2];
  const Sge sge{reinterpret_cast<std::uint64_t>(c.memory.data()), 8, c.mr.lkey()};
  requests[1].opcode = Opcode::fetch_add;
  requests[1].sges = {&sge, 1};
  requests[1].remote_address = s.mr.remote_address();
  requests[1].rkey = s.mr.rkey();
  ASSERT_TRUE(s.qp.post_receive(ReceiveRequest{}).ok());
  for (std::uint64_t k = 0; k < 2; ++k) {
    Error why;
    std::size_t taken = 2;
    {
      const testing::NoMemory plan(k, testing::NoMemory::kForEver);
      EXPECT_NO_THROW(taken = c.qp.post_send(requests, &why));
    }
    EXPECT_EQ(taken, k);
    EXPECT_EQ(why.code, Errc::no_memory);
  }
  Completion done[1];
  for (int i = 0; i < 10000 && c.cq.poll(done) == 0; ++i) c.cq.wait(10);
  EXPECT_EQ(done[0].status, WcStatus::success);
  EXPECT_EQ(done[0].opcode, Opcode::send);
}

// If connecting got no memory, the queue pair can connect later; if the peer got none for its
// answer, the queue pair gets an event.
TEST(OutOfMemoryCalls, AFailedConnectLeavesTheQueuePairUnchanged) {
  Device server = open({{"progress", "thread"}}), client = open({{"progress", "thread"}});
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  const std::string to = "127.0.0.1:" + std::to_string(listener->port());
  for (std::uint64_t k = 0;; ++k) {
    SCOPED_TRACE("allocation " + std::to_string(k));
    End s(server, 64), c(client, 64);
    std::uint64_t failed = 0;
    Result<void> begun;
    {
      const testing::NoMemory plan(k);
      begun = c.qp.connect_start(to);
      failed = plan.failed();
    }
    if (!begun) {
      EXPECT_EQ(begun.error().code, Errc::no_memory) << begun.error().message;
      begun = c.qp.connect_start(to);
    }
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    // Connections that an attempt without memory left in the kernel end by themselves.
    Result<void> accepted = Error{};
    for (int i = 0; i < 50 && !accepted; ++i) {
      auto request = listener->next(5000);
      ASSERT_TRUE(request.ok()) << request.error().message;
      accepted = request->accept(s.qp);
    }
    EXPECT_TRUE(accepted.ok());
    Event e;
    ASSERT_TRUE(c.events.wait(&e, 10000));
    EXPECT_EQ(e.kind, EventKind::established) << e.error.message;
    if (failed == 0 || HasFailure()) break;
  }
}

// proves: E-50
TEST(OutOfMemoryCalls, AcceptEndsTheRequestOrWorks) {
  Device server = open({{"progress", "thread"}}), client = open({{"progress", "thread"}});
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  const std::string to = "127.0.0.1:" + std::to_string(listener->port());
  ConnectionOptions options;
  const std::vector<std::uint8_t> hello(32, 7);
  options.private_data = hello;
  for (std::uint64_t k = 0;; ++k) {
    SCOPED_TRACE("allocation " + std::to_string(k));
    End s(server, 64), c(client, 64);
    ASSERT_TRUE(c.qp.connect_start(to).ok());
    auto request = listener->next(5000);
    ASSERT_TRUE(request.ok());
    std::uint64_t failed = 0;
    Result<void> accepted;
    {
      const testing::NoMemory plan(k);
      accepted = request->accept(s.qp, options);
      failed = plan.failed();
    }
    // A peer that is reset tries once more, with MPA revision 1: that request is dropped.
    Event e;
    bool told = false;
    for (int i = 0; i < 100 && !told; ++i) {
      told = c.events.wait(&e, accepted ? 10000 : 20);
      if (!told) std::ignore = listener->next(0);
    }
    ASSERT_TRUE(told);
    if (accepted) {
      EXPECT_EQ(e.kind, EventKind::established);
    } else {
      EXPECT_EQ(accepted.error().code, Errc::no_memory) << accepted.error().message;
      EXPECT_NE(e.kind, EventKind::established);
    }
    if (failed == 0 || HasFailure()) break;
  }
}

}  // namespace
}  // namespace urnic::stream_test
