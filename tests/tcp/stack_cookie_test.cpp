// SYN cookies (RFC 4987 3.6) as a user of byte streams sees them: a flood costs no memory, and real
// connections still open.
#include <gtest/gtest.h>

#include "tcp/syn_cookie.h"
#include "tests/tcp/stack_fixture.h"

namespace urnic::tcp::test {
namespace {

class SynCookies : public StackTest {
 protected:
  // Sends as many SYNs as the listener may have half-open connections.
  void flood(std::size_t syns = 3) {
    b->set_default(Option::SynBacklog, 3);
    l = listen();
    Datagram d;
    for (std::size_t i = 0; i < syns; ++i) {
      a->connect(a->open(), {ip("10.0.0.2"), 80}, now);
      ASSERT_TRUE(a->next_output(&d));
      b->input(d.bytes, now);
    }
    drain(*b);
  }
  // Returns `a`'s reply to the cookie, not delivered yet.
  Bytes answer() {
    x = a->open();
    a->connect(x, {ip("10.0.0.2"), 80}, now);
    Datagram d;
    EXPECT_TRUE(a->next_output(&d));
    b->input(d.bytes, now);
    EXPECT_TRUE(b->next_output(&d));
    a->input(d.bytes, now);
    EXPECT_TRUE(a->next_output(&d));
    return {d.bytes.begin(), d.bytes.end()};
  }
};

TEST_F(SynCookies, AFloodCostsNoMemory_RFC4987_3_6) {
  flood(500);
  EXPECT_EQ(b->connections(), 3u);
  EXPECT_EQ(b->sockets(), 4u);
  EXPECT_EQ(b->counters().cookies_sent, 497u);
  EXPECT_EQ(b->counters().dropped_backlog, 0u);
}

TEST_F(SynCookies, AConnectionOpensWithAllItsOptions) {
  flood();
  connect();
  EXPECT_EQ(b->counters().cookies_accepted, 1u);
  y = b->accept(l, nullptr, now);
  ASSERT_NE(y, Endpoint::None);
  const auto s = b->snapshot(y, now);
  EXPECT_TRUE(s->sack && s->timestamps && s->window_scaling);
  EXPECT_EQ(s->send_shift, a->snapshot(x, now)->receive_shift);
  EXPECT_EQ(s->send_mss, 1448u);
  // It carries bytes in both directions, more than an unscaled window.
  std::size_t got = 0, sent = 0;
  for (int i = 0; i < 400 && got < 600'000; ++i) {
    if (sent < 600'000) sent += write(*a, x, 600'000 - sent).bytes;
    pass(Duration::ms(1));
    for (IoResult r; (r = read(*b, y)).status == Status::Ok && r.bytes != 0;) got += r.bytes;
  }
  EXPECT_EQ(got, 600'000u);
  EXPECT_EQ(write(*b, y, 1000).bytes, 1000u);
  carry();
  EXPECT_EQ(read(*a, x).bytes, 1000u);
}

TEST_F(SynCookies, WithoutTimestampsOnlyTheMssSurvives) {
  a->set_default(Option::Timestamps, 0);
  flood();
  connect();
  y = b->accept(l, nullptr, now);
  ASSERT_NE(y, Endpoint::None);
  const auto s = b->snapshot(y, now);
  EXPECT_FALSE(s->sack || s->timestamps || s->window_scaling);
  EXPECT_EQ(s->send_mss, 1460u);
}

// The eight sizes are those of common links. A size between two of them becomes the smaller one;
// none becomes larger than the peer announced.
TEST(SynCookie, RemembersTheLargestSizeThatThePeerAccepts) {
  const SipKey key{7, 9};
  const SocketAddress local{IpAddress::v4(10, 0, 0, 2), 80}, remote{IpAddress::v4(10, 0, 0, 1), 9};
  Config config;
  const Instant now = Instant::from_ns(5'000'000'000);
  const auto remembered = [&](std::uint16_t mss) {
    Segment syn;
    syn.seq = Seq(77);
    syn.flags = kSyn;
    syn.opts.has_mss = true;
    syn.opts.mss = mss;
    const Segment cookie = cookie_syn_ack(key, local, remote, syn, config, 1000, now);
    Segment ack;
    ack.seq = syn.seq + 1;
    ack.ack = cookie.seq + 1;
    ack.flags = kAck;
    const auto again = syn_of_cookie(key, local, remote, ack, config, now);
    return again && again->opts.has_mss ? again->opts.mss : std::uint16_t{0};
  };
  constexpr std::uint16_t kSizes[] = {536, 1024, 1220, 1380, 1440, 1460, 4000, 8940};
  EXPECT_EQ(remembered(88), kSizes[0]);
  for (const std::uint16_t size : kSizes) {
    EXPECT_EQ(remembered(size), size);
    EXPECT_EQ(remembered(static_cast<std::uint16_t>(size + 1)), size);
    if (size == kSizes[0]) continue;
    EXPECT_LT(remembered(static_cast<std::uint16_t>(size - 1)), size);
  }
  EXPECT_EQ(remembered(65535), 8940);
}

// RFC 9293 3.7.1: a peer that announces no size accepts 536 bytes over IPv4 and 1220 over IPv6.
TEST(SynCookie, AssumesTheDefaultSizeOfTheIpVersionIfThePeerNamesNone) {
  const SipKey key{7, 9};
  const SocketAddress local{IpAddress::v4(10, 0, 0, 2), 80}, remote{IpAddress::v4(10, 0, 0, 1), 9};
  const Instant now = Instant::from_ns(5'000'000'000);
  for (const auto& [ip_header, size] : {std::pair{20, 536}, {40, 1220}}) {
    Config config;
    config.ip_header = static_cast<std::uint8_t>(ip_header);
    Segment syn;
    syn.seq = Seq(77);
    syn.flags = kSyn;
    const Segment cookie = cookie_syn_ack(key, local, remote, syn, config, 1000, now);
    Segment ack;
    ack.seq = syn.seq + 1;
    ack.ack = cookie.seq + 1;
    ack.flags = kAck;
    const auto again = syn_of_cookie(key, local, remote, ack, config, now);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->opts.mss, size);
  }
}

TEST_F(SynCookies, AForgedAnswerIsReset) {
  flood();
  Bytes forged = answer();
  const std::size_t at = net::kIpv4Header + 8;
  // The acknowledgement number is wrong, but the checksum is correct.
  store_be32(forged.data() + at, load_be32(forged.data() + at) + 0x10000);
  const std::size_t sum = net::kIpv4Header + 16;
  const std::uint32_t c = load_be16(forged.data() + sum) + 0xfffeu;
  store_be16(forged.data() + sum, static_cast<std::uint16_t>((c & 0xffff) + (c >> 16)));
  b->input(forged, now);
  const auto out = drain(*b);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(out[0].s.has(kRst));
  EXPECT_EQ(b->counters().cookies_accepted, 0u);
  EXPECT_EQ(b->accept(l, nullptr, now), Endpoint::None);
}

TEST_F(SynCookies, AnAnswerThatComesTooLateIsReset) {
  flood();
  const Bytes late = answer();
  now = now + kCookieLife * 2;
  b->input(late, now);
  EXPECT_EQ(b->counters().cookies_accepted, 0u);
  EXPECT_EQ(b->accept(l, nullptr, now), Endpoint::None);
}

TEST_F(SynCookies, AReplyToACookieThatWasNeverSentIsReset) {
  flood();
  const Bytes good = answer();
  // The same reply to a listener that never sent cookies.
  StackConfig c;
  c.addresses = {ip("10.0.0.2")};
  c.seed = 2;
  Stack calm(c);
  const Endpoint e = calm.open();
  calm.bind(e, {IpAddress::any_v4(), 80});
  calm.listen(e, 8);
  calm.input(good, now);
  EXPECT_EQ(calm.counters().cookies_accepted, 0u);
  const auto out = drain(calm);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(out[0].s.has(kRst));
}

TEST_F(SynCookies, TheFirstDataReplacesALostAnswer) {
  flood();
  answer();  // lost
  write(*a, x, 100);
  carry();
  y = b->accept(l, nullptr, now);
  ASSERT_NE(y, Endpoint::None);
  EXPECT_EQ(read(*b, y).bytes, 100u);
}

}  // namespace
}  // namespace urnic::tcp::test
