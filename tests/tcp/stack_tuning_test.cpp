// Tests of buffers that grow with use (Option::AutoTune), and of their bounds.
#include <gtest/gtest.h>

#include "tests/tcp/bottleneck.h"
#include "tests/tcp/stack_fixture.h"

namespace urnic::tcp::test {
namespace {

Bottleneck tuned(Duration rtt) {
  Bottleneck b;
  b.rtt = rtt;
  b.options.auto_tune = true;
  return b;
}

TEST(AutoTune, ALongPathGetsTheWindowItNeeds) {
  Bottleneck b = tuned(Duration::ms(10));
  const Moved grown = move(b, 30'000'000);
  EXPECT_GT(grown.receiver.receive_buffer, 625'000u) << "a bandwidth-delay product";
  EXPECT_GT(grown.sender.send_buffer, 625'000u);
  b.options.auto_tune = false;
  EXPECT_GT(grown.mbit, 0.8 * move(b, 30'000'000).mbit);
}

TEST(AutoTune, AShortPathKeepsASmallBuffer) {
  const Moved m = move(tuned(Duration::us(100)), 3'000'000);
  EXPECT_LT(m.receiver.receive_buffer, 500'000u);
  EXPECT_GT(m.mbit, 400);
}

TEST(AutoTune, ThePerConnectionBoundHolds) {
  Bottleneck b = tuned(Duration::ms(10));
  b.options.tcp.receive_buffer = 100'000;
  const Moved m = move(b, 3'000'000);
  EXPECT_EQ(m.receiver.receive_buffer, 100'000u);
  // At most one window per round trip.
  EXPECT_LT(m.mbit, 100'000 * 8 / 0.010 / 1e6 * 1.05);
}

TEST(AutoTune, TheGlobalBoundHolds) {
  Bottleneck b = tuned(Duration::ms(10));
  b.memory_limit = 300'000;
  const Moved m = move(b, 10'000'000);
  EXPECT_LE(m.most_granted, 300'000u);
  EXPECT_GT(m.receiver.receive_buffer, 200'000u) << "what there is is given";
}

TEST(AutoTune, AConnectionMakesProgressEvenAtTheMemoryLimit) {
  Bottleneck b = tuned(Duration::ms(1));
  b.memory_limit = 0;
  const Moved m = move(b, 200'000);
  EXPECT_EQ(m.receiver.receive_buffer, 4096u);
}

TEST(AutoTune, GrantsAreReturnedWhenConnectionsEnd) {
  StackConfig config;
  config.options.auto_tune = true;
  config.addresses = {ip("10.0.0.1")};
  Stack stack(std::move(config));
  const Instant now = Instant::from_ns(1'000'000'000);
  const Endpoint e = stack.open();
  ASSERT_EQ(stack.connect(e, {ip("10.0.0.9"), 80}, now), Status::InProgress);
  EXPECT_EQ(stack.granted(), 128u * 1024);
  stack.abort(e, now);
  EXPECT_EQ(stack.granted(), 0u);
}

// RFC 9293 3.8.6: at the bound the window closes, no data is discarded, and it opens again.
TEST(AutoTune, AReaderThatStopsClosesTheWindowAtTheBound_RFC9293_3_8_6) {
  Network net(1);
  StackConfig config;
  config.options.auto_tune = true;
  config.options.tcp.receive_buffer = 200'000;
  config.memory_limit = 400'000;
  config.addresses = {ip("10.0.0.1")};
  Stack& from = net.add(config);
  config.addresses = {ip("10.0.0.2")};
  config.seed = 2;
  Stack& to = net.add(config);
  const Endpoint l = to.open();
  ASSERT_EQ(to.bind(l, {ip("10.0.0.2"), 80}), Status::Ok);
  ASSERT_EQ(to.listen(l, 1), Status::Ok);
  const Endpoint a = from.open();
  ASSERT_EQ(from.connect(a, {ip("10.0.0.2"), 80}, net.now), Status::InProgress);
  net.run(Duration::ms(10));
  const Endpoint z = to.accept(l, nullptr, net.now);
  ASSERT_NE(z, Endpoint::None);
  std::vector<std::uint8_t> chunk(10'000);
  std::uint64_t written = 0, got = 0;
  bool content_ok = true, shut = false;
  const auto write = [&] {
    for (std::size_t n = 1; n != 0;) {
      for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] = byte(written + i, 1);
      const IoResult r = from.write(a, chunk, net.now);
      n = r.status == Status::Ok ? r.bytes : 0;
      written += n;
    }
  };
  for (int round = 0; round < 200; ++round) {
    write();
    net.run(Duration::ms(300));
    const auto s = *to.snapshot(z, net.now);
    EXPECT_LE(s.unread, 200'000u);
    EXPECT_LE(to.granted(), 400'000u);
    shut |= s.rcv_wnd == 0;
    // From time to time it reads.
    for (IoResult r; (r = to.read(z, chunk, net.now)).status == Status::Ok;) {
      for (std::size_t i = 0; i < r.bytes; ++i) content_ok &= chunk[i] == byte(got + i, 1);
      got += r.bytes;
    }
  }
  EXPECT_TRUE(shut);
  EXPECT_TRUE(content_ok);
  EXPECT_GT(got, 200u * 60'000);
}

}  // namespace
}  // namespace urnic::tcp::test
