// Forged segments: the information they reveal, and their cost (RFC 5961, E-46).
#include <gtest/gtest.h>

#include <set>

#include "tests/tcp/stack_fixture.h"

namespace urnic::tcp::test {
namespace {

class StackChallenge : public StackTest {
 public:
  using StackTest::now;
  using StackTest::open_pair;
  using StackTest::x;
  // Sends `times` RSTs to `b`'s end of the connection that `a` calls `e`, inside the window but not
  // at its edge. Returns how many were answered.
  std::size_t spoof(Endpoint e, int times) {
    const auto local = *a->local_address(e), remote = *a->peer_address(e);
    const auto v = *a->snapshot(e, now);
    Bytes datagram(40, 0);
    Segment s;
    s.src_port = local.port;
    s.dst_port = remote.port;
    s.seq = Seq(v.snd_nxt + 100);
    s.flags = kRst;
    emit_header(s, datagram.data() + 20);
    net::Ipv4Header h;
    h.total_len = 40;
    h.protocol = net::kProtoTcp;
    h.src = local.ip;
    h.dst = remote.ip;
    net::emit_ipv4(h, datagram.data());
    const net::Classified c = net::classify_datagram(datagram, 40);
    store_be16(datagram.data() + 36, inet_checksum(std::uint64_t{c.pseudo_sum} +
                                                   inet_sum(ByteView(datagram).subspan(20))));
    for (int i = 0; i < times; ++i) b->input(datagram, now);
    return drain(*b).size();
  }
  Endpoint connect_another() {
    const Endpoint e = a->open();
    EXPECT_EQ(a->connect(e, {ip("10.0.0.2"), 80}, now), Status::InProgress);
    carry();
    return e;
  }
};

// proves: E-46
TEST_F(StackChallenge, AnAttackOnOneConnectionIsNotVisibleOnAnother_RFC5961_7) {
  open_pair();
  const Endpoint mine = connect_another();
  now = now + Duration::s(20);
  // In two worlds that differ only in the attack, the attacker counts the same number.
  const std::size_t quiet = spoof(mine, 20);
  EXPECT_GE(quiet, 5u);
  EXPECT_LE(quiet, 10u);
  EXPECT_EQ(b->counters().challenge_acks, quiet);
  EXPECT_EQ(b->counters().challenge_acks_withheld, 20u - quiet);

  struct World : StackChallenge {
    void TestBody() override {}
  } other;
  other.open_pair();
  const Endpoint theirs = other.connect_another();
  other.now = other.now + Duration::s(20);
  EXPECT_GE(other.spoof(other.x, 20), 5u) << "the victim answers";
  EXPECT_EQ(other.spoof(theirs, 20), quiet);
}

// proves: E-46
TEST_F(StackChallenge, TheShareDiffersFromWindowToWindow) {
  open_pair();
  std::set<std::size_t> seen;
  for (int i = 0; i < 40; ++i) {
    now = now + Duration::ms(5001 + i);
    seen.insert(spoof(x, 20));
  }
  EXPECT_GE(seen.size(), 3u);
}

// Datagrams to different peers are not numbered by one counter, which any of them could read.
TEST_F(StackChallenge, DatagramsAreNumberedPerConnection) {
  open_pair();
  const Endpoint mine = connect_another();
  const auto id = [&](Endpoint e) {
    a->write(e, Bytes(10, 1), now);
    const auto out = drain(*a);
    EXPECT_EQ(out.size(), 1u);
    return load_be16(out[0].bytes.data() + 4);
  };
  const std::uint16_t before = id(mine);
  for (int i = 0; i < 5; ++i) id(x);
  EXPECT_EQ(static_cast<std::uint16_t>(id(mine) - before), 1);
}

// A program that stopped reading needs no window, unless the sender waits for one.
TEST_F(StackChallenge, ShutdownReadAnnouncesAWindowOnlyToAWaitingSender) {
  b->set_default(Option::ReceiveBuffer, 8000);
  open_pair();
  write(*a, x, 3000);
  pass(Duration::ms(50));
  EXPECT_EQ(b->shutdown_read(y, now), Status::Ok);
  EXPECT_TRUE(drain(*b).empty());
  pass(Duration::s(1));

  const Endpoint e = connect_another();
  const Endpoint f = b->accept(l, nullptr, now);
  write(*a, e, 20000);
  pass(Duration::ms(100));
  EXPECT_EQ(b->shutdown_read(f, now), Status::Ok);
  const auto out = drain(*b);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_NE(out[0].s.window, 0);
}

}  // namespace
}  // namespace urnic::tcp::test
