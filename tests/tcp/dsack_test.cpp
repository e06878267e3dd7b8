// D-SACK between two urnic ends (RFC 2883): one end understands the reports of the other, also
// above the cumulative ACK, and if timestamps leave room for only three blocks.
#include <gtest/gtest.h>

#include "tests/tcp/host.h"

namespace urnic::tcp::test {
namespace {

class Dsack : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    for (Host* h : {&a, &b}) {
      h->config.mss = 1000 + (GetParam() ? 12 : 0);
      h->config.initial_window = 20000;
      h->config.timestamps = GetParam();
      h->config.quick_acks = 255;
    }
    b.listening = true;
    b.local_port = 2000;
    b.remote_port = 1000;
    b.iss = Seq(77);
    b.stream = 1;
    b.peer_stream = 0;
    a.connect(now);
    for (int i = 0; i < 3; ++i) {
      pass(a, b);
      now = now + Duration::ms(50);
      pass(b, a);
      now = now + Duration::ms(50);
    }
    ASSERT_EQ(a.tcb.state, State::Established);
    ASSERT_EQ(b.tcb.state, State::Established);
  }

  std::vector<Emitted> take(Host& from) {
    std::vector<Emitted> all(from.out.begin(), from.out.end());
    from.out.clear();
    return all;
  }
  void pass(Host& from, Host& to) {
    for (const Emitted& e : take(from)) to.input(e.bytes, now);
  }

  Host a, b;
  Instant now = Instant::from_ns(1'000'000'000);
};

TEST_P(Dsack, ADuplicateAboveAHoleWidensAndUndoes_RFC2883_4_RFC8985_6_2) {
  a.write(8000, now);
  const auto sent = take(a);
  ASSERT_EQ(sent.size(), 8u);
  now = now + Duration::ms(50);
  // The first segment is lost, the second one late, and three blocks are received after it.
  for (const int i : {3, 5, 7}) b.input(sent[static_cast<std::size_t>(i)].bytes, now);
  now = now + Duration::ms(50);
  pass(b, a);
  ASSERT_EQ(a.tcb.loss.state, Recovery::Recovery);
  std::vector<Emitted> again = take(a);
  for (int i = 0; i < 6 && again.size() < 2; ++i) {
    now = now + Duration::ms(60);
    b.input(sent[4].bytes, now);
    pass(b, a);
    for (const Emitted& e : take(a)) again.push_back(e);
  }
  ASSERT_GE(again.size(), 2u);
  EXPECT_EQ(again[1].bytes.size(), sent[1].bytes.size());
  const std::uint32_t before = a.tcb.loss.undo.again;
  const unsigned widening = a.tcb.loss.rack.widening;
  b.input(sent[1].bytes, now);
  pass(b, a);
  b.input(again[1].bytes, now);
  ASSERT_EQ(b.out.size(), 1u);
  pass(b, a);
  EXPECT_LT(a.tcb.loss.undo.again, before + a.out.size());
  EXPECT_EQ(a.tcb.loss.rack.widening, widening + 1);
}

INSTANTIATE_TEST_SUITE_P(Tcp, Dsack, testing::Bool(), [](const auto& p) {
  return p.param ? "WithTimestamps" : "WithoutTimestamps";
});

}  // namespace
}  // namespace urnic::tcp::test
