// Repeated attempts after a refused connection (ConnectParams::refusal_retry), with a clock of the
// test, over our own TCP and the kernel's.
#include <gtest/gtest.h>
#include <poll.h>

#include <deque>
#include <memory>

#include "device/engine_options.h"
#include "device/kernel_tcp_port.h"
#include "engine/engine.h"
#include "port/memory_port.h"

namespace urnic::iwarp {
namespace {

struct Events : Hooks {
  void on_cm_event(CmEvent e) override { all.push_back(std::move(e)); }
  void on_completion(verbs::CompletionQueue*) override {}
  std::deque<CmEvent> all;
};

// An engine that connects to itself.
struct RefusalRetry : testing::TestWithParam<bool> {
  RefusalRetry() {
    engine::Options options = device::options_from(Config(), GetParam() ? "tcp" : "mem");
    options.addresses = {"10.0.0.1/24"};
    if (GetParam()) {
      Config c;
      EXPECT_TRUE(c.set("port", "tcp").ok());
      kernel = device::open_kernel_tcp(c)->transport;
      port = device::make_kernel_tcp_port(kernel);
    } else {
      auto [a, b] = port::make_memory_pair();
      port = std::move(a);
      other_end = std::move(b);
    }
    engine = std::make_unique<engine::Engine>(options, &port, 0, &hooks, kernel);
    qp = engine->iwarp_control().create_qp({}, &cq, &cq);
    other = engine->iwarp_control().create_qp({}, &cq, &cq);
    kept = engine->iwarp().bind({.at = {address(), 0}}).value();
  }
  static IpAddress address() { return *IpAddress::parse(GetParam() ? "127.0.0.1" : "10.0.0.1"); }
  Result<void> connect(Duration retry) {
    ConnectParams p = engine->iwarp().default_params();
    p.refusal_retry = retry;
    return engine->iwarp().connect(*qp, {address(), kept->port()}, p, now);
  }
  // Waits for the next event of `kind` before `until`. The kernel's part takes real time, during
  // which the clock stands still.
  bool runs_to(CmEvent::Kind kind, Instant until) {
    while (now <= until) {
      for (int quiet = 0, turns = 0; quiet < 3 && turns < 100; ++turns) {
        quiet = engine->poll(now) ? 0 : quiet + 1;
        pollfd p{kernel != nullptr ? kernel->poller->wait_fd() : -1, POLLIN, 0};
        if (kernel != nullptr && quiet != 0) ::poll(&p, 1, 1);
      }
      while (!hooks.all.empty()) {
        last = std::move(hooks.all.front());
        hooks.all.pop_front();
        if (last.kind == kind) return true;
      }
      now = now + Duration::ms(1);
    }
    return false;
  }

  Events hooks;
  std::shared_ptr<KernelTcp> kernel;
  port::Port port, other_end;
  std::unique_ptr<engine::Engine> engine;
  verbs::CompletionQueue cq{256};
  verbs::QueuePair *qp = nullptr, *other = nullptr;
  Listener* kept = nullptr;
  CmEvent last;
  Instant now = Instant::from_ns(1'000'000'000);
};

INSTANTIATE_TEST_SUITE_P(, RefusalRetry, testing::Bool(),
                         [](const auto& i) { return i.param ? "KernelTcp" : "OwnTcp"; });

TEST_P(RefusalRetry, ALateListenerIsFound) {
  const Instant begun = now;
  ASSERT_TRUE(connect(Duration::ms(100)).ok());
  EXPECT_FALSE(runs_to(CmEvent::Kind::ConnectFailed, begun + Duration::ms(60)));
  EXPECT_EQ(qp->state, verbs::QpState::Rtr);
  ASSERT_TRUE(engine->iwarp().listen(kept, 8));
  ASSERT_TRUE(runs_to(CmEvent::Kind::ConnectRequest, begun + Duration::ms(100)));
  ASSERT_TRUE(
      engine->iwarp().accept(last.request.id, *other, engine->iwarp().default_params(), now).ok());
  EXPECT_TRUE(runs_to(CmEvent::Kind::Established, now + Duration::ms(100)));
  EXPECT_EQ(engine->tables().flows, 2u);
}

// proves: E-30
TEST_P(RefusalRetry, EndsAfterItsTime) {
  const Instant begun = now;
  ASSERT_TRUE(connect(Duration::ms(100)).ok());
  ASSERT_TRUE(runs_to(CmEvent::Kind::ConnectFailed, begun + Duration::ms(1000)));
  EXPECT_EQ(last.code, Errc::refused);
  EXPECT_GE(now, begun + Duration::ms(100));
  EXPECT_LE(now, begun + Duration::ms(101));
  EXPECT_EQ(engine->tables().connections, 0u);
  EXPECT_EQ(engine->tables().flows, 0u);
}

TEST_P(RefusalRetry, HappensOnlyIfRequested) {
  const auto begun = connect(Duration::zero());
  if (begun.ok()) {  // our own TCP: a segment later
    ASSERT_TRUE(runs_to(CmEvent::Kind::ConnectFailed, now));
    EXPECT_EQ(last.code, Errc::refused);
  } else {
    EXPECT_EQ(begun.error().code, Errc::refused);
    EXPECT_EQ(qp->state, verbs::QpState::Init);
  }
}

TEST_P(RefusalRetry, EndsWithTheQueuePair) {
  for (const bool destroy : {false, true}) {
    ASSERT_TRUE(connect(Duration::ms(100)).ok());
    EXPECT_FALSE(runs_to(CmEvent::Kind::ConnectFailed, now + Duration::ms(12)));
    if (destroy) {
      engine->iwarp_control().destroy(qp, now);
    } else {
      engine->iwarp().disconnect(*qp, now);
      EXPECT_TRUE(runs_to(CmEvent::Kind::ConnectFailed, now));
    }
    engine->poll(now);
    EXPECT_EQ(engine->tables().connections, 0u);
    EXPECT_EQ(engine->tables().flows, 0u);
    qp = other;
  }
}

// The source port is given: it is the same each time.
// proves: E-30
TEST_P(RefusalRetry, UsesTheGivenSourceEachTime) {
  Listener* source = engine->iwarp().bind({.at = {address(), 0}}).value();
  ConnectParams p = engine->iwarp().default_params();
  p.refusal_retry = Duration::ms(100);
  p.source = source->to_connect_from();
  const SocketAddress to{address(), kept->port()};
  ASSERT_TRUE(engine->iwarp().connect(*qp, to, p, now).ok());
  EXPECT_FALSE(runs_to(CmEvent::Kind::ConnectFailed, now + Duration::ms(22)));
  ASSERT_TRUE(engine->iwarp().listen(kept, 8));
  ASSERT_TRUE(runs_to(CmEvent::Kind::ConnectRequest, now + Duration::ms(50)));
  EXPECT_EQ(engine->iwarp().find(last.request.id)->key.remote_port, source->port());
}

}  // namespace
}  // namespace urnic::iwarp
