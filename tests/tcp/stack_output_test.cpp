// Tests of timers and callbacks.
#include <gtest/gtest.h>

#include "tests/tcp/stack_fixture.h"

namespace urnic::tcp::test {
namespace {

// ---- time

TEST_F(StackTest, TimersCarryTheirDeadlineNotThePollingTime) {
  l = listen();
  x = a->open();
  a->connect(x, {ip("10.0.0.2"), 80}, now);
  drain(*a);
  const Instant due = a->next_deadline();
  EXPECT_EQ((due - now).count_ms(), 1000);
  a->run(now + Duration::ms(1700));
  auto out = drain(*a);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].at, due);
}

TEST_F(StackTest, OneLateRunEqualsARunAtEachDeadline) {
  const auto play = [&](bool jump) {
    StackConfig c;
    c.addresses = {ip("10.0.0.1")};
    Stack s(c);
    Instant t = now;
    for (int i = 0; i < 3; ++i) {
      const Endpoint e = s.open();
      s.connect(e, {ip("10.0.0.2"), static_cast<std::uint16_t>(80 + i)}, t);
      t = t + Duration::ms(123);
    }
    const Instant end = now + Duration::s(300);
    if (!jump) {
      while (s.next_deadline() <= end) s.run(s.next_deadline());
    }
    s.run(end);
    std::vector<std::pair<std::int64_t, Bytes>> all;
    Instant last = Instant::from_ns(0);
    Datagram d;
    while (s.next_output(&d)) {
      EXPECT_GE(d.send_time, last);
      last = d.send_time;
      all.emplace_back(d.send_time.ns(), Bytes(d.bytes.begin(), d.bytes.end()));
    }
    return all;
  };
  const auto one = play(true), other = play(false);
  EXPECT_GT(one.size(), 15u);
  EXPECT_EQ(one, other);
}

TEST_F(StackTest, ACallFiresTheTimersDueBeforeIt) {
  l = listen();
  x = a->open();
  a->connect(x, {ip("10.0.0.2"), 80}, now);
  const Instant begin = now;
  drain(*a);
  a->open();
  a->input({}, now + Duration::ms(3500));
  auto out = drain(*a);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ((out[0].at - begin).count_ms(), 1000);
  EXPECT_EQ((out[1].at - begin).count_ms(), 3000);
}

// ---- callbacks

TEST_F(StackTest, SinksMayCallTheOtherStackDirectly) {
  struct Ends {
    Stack* to;
    int depth = 0, most = 0;
  };
  Ends to_b{b.get()}, to_a{a.get()};
  const auto sink = [](void* context, ByteView datagram, Instant t) {
    auto* e = static_cast<Ends*>(context);
    e->most = std::max(e->most, ++e->depth);
    e->to->input(datagram, t);
    --e->depth;
  };
  a->set_sink(sink, &to_b);
  b->set_sink(sink, &to_a);
  l = listen();
  x = a->open();
  a->connect(x, {ip("10.0.0.2"), 80}, now);
  y = b->accept(l, nullptr, now);
  ASSERT_NE(y, Endpoint::None);
  EXPECT_EQ(write(*a, x, 500000).bytes, 500000u);
  EXPECT_EQ(read(*b, y).bytes, 500000u);
  EXPECT_LE(to_b.most, 1);  // never called inside itself
}

TEST_F(StackTest, ChangeCallBacksMayReadWriteAndClose) {
  // An echo server that runs in its callback.
  struct Echo {
    Stack* stack;
    Instant now;
    std::size_t echoed = 0;
    static void on(void* context, Endpoint e, std::uint32_t changes) {
      auto* self = static_cast<Echo*>(context);
      Stack& s = *self->stack;
      if ((changes & kAcceptable) != 0) {
        while (s.accept(e, nullptr, self->now) != Endpoint::None) {
        }
      }
      std::uint8_t buffer[1000];
      for (IoResult r; (r = s.read(e, buffer, self->now)).status == Status::Ok && r.bytes != 0;) {
        self->echoed += s.write(e, ByteView(buffer, r.bytes), self->now).bytes;
      }
      if ((changes & kPeerClosed) != 0) s.close(e, self->now);
    }
  } echo{b.get(), now};
  b->set_on_change(Echo::on, &echo);
  l = listen();
  connect();
  write(*a, x, 40000);
  a->shutdown_write(x, now);
  pass(Duration::s(1));
  EXPECT_EQ(echo.echoed, 40000u);
  EXPECT_EQ(read(*a, x).bytes, 40000u);
  EXPECT_EQ(read(*a, x).status, Status::EndOfStream);
  EXPECT_EQ(b->connections(), 0u);
}

}  // namespace
}  // namespace urnic::tcp::test
