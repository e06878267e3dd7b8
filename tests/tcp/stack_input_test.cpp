// Tests of datagrams in and out.
#include <gtest/gtest.h>

#include "tests/tcp/stack_fixture.h"

namespace urnic::tcp::test {
namespace {

// ---- segments on the wire

TEST_F(StackTest, SegmentsWithoutAConnectionAreReset_RFC9293_3_10_7_1) {
  open_pair();
  write(*a, x, 5);
  Datagram d;
  ASSERT_TRUE(a->next_output(&d));
  const Bytes kept(d.bytes.begin(), d.bytes.end());
  StackConfig c;
  c.addresses = {ip("10.0.0.2")};
  Stack other(c);
  other.input(kept, now);
  auto out = drain(other);
  ASSERT_EQ(out.size(), 1u);
  const Seen sent = look({kept, now});
  EXPECT_EQ(out[0].s.flags, kRst);
  EXPECT_EQ(out[0].s.seq, sent.s.ack);
  EXPECT_EQ(out[0].s.dst_port, sent.s.src_port);
}

TEST_F(StackTest, DatagramsForOtherHostsAreDropped) {
  open_pair();
  write(*a, x, 5);
  Datagram d;
  ASSERT_TRUE(a->next_output(&d));
  Bytes bytes(d.bytes.begin(), d.bytes.end());
  StackConfig c;
  c.addresses = {ip("10.0.0.3")};
  Stack other(c);
  other.input(bytes, now);
  EXPECT_TRUE(drain(other).empty());
  bytes.back() ^= 1;
  b->input(bytes, now);
  EXPECT_EQ(b->counters().dropped_checksum, 1u);
  EXPECT_EQ(b->readiness(y).readable, 0u);
  bytes.resize(30);
  b->input(bytes, now);
  b->input({}, now);
  EXPECT_EQ(b->counters().dropped_ip, 2u);
  EXPECT_TRUE(drain(*b).empty());
}

TEST_F(StackTest, AFinAfterOldDataEndsTheStream_RFC9293_3_10_7_4) {
  open_pair();
  write(*a, x, 5);
  Datagram d;
  ASSERT_TRUE(a->next_output(&d));
  Bytes bytes(d.bytes.begin(), d.bytes.end());
  b->input(bytes, now);
  EXPECT_EQ(read(*b, y).bytes, 5u);
  drain(*b);
  // The same data again, now with a FIN.
  const std::size_t flags = net::kIpv4Header + 12, sum = net::kIpv4Header + 16;
  store_be16(bytes.data() + flags,
             static_cast<std::uint16_t>(load_be16(bytes.data() + flags) | kFin));
  const std::uint32_t c = load_be16(bytes.data() + sum) + 0xffffu - kFin;
  store_be16(bytes.data() + sum, static_cast<std::uint16_t>((c & 0xffff) + (c >> 16)));
  b->input(bytes, now);
  EXPECT_EQ(read(*b, y).status, Status::EndOfStream);
  const auto out = drain(*b);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].s.ack, look({bytes, now}).s.seq + 6);
}

TEST_F(StackTest, ChecksumVerificationCanBeOff) {
  StackConfig c;
  c.addresses = {ip("10.0.0.2")};
  c.verify_checksums = false;
  Stack other(c);
  x = a->open();
  a->connect(x, {ip("10.0.0.2"), 80}, now);
  Datagram d;
  ASSERT_TRUE(a->next_output(&d));
  Bytes bytes(d.bytes.begin(), d.bytes.end());
  bytes[36] ^= 0xff;
  other.input(bytes, now);
  EXPECT_EQ(drain(other).size(), 1u);
}

TEST_F(StackTest, SegmentsLargerThanTheMssAreLegalInput) {
  a->set_default(Option::Mtu, 65535);
  open_pair();
  EXPECT_EQ(a->snapshot(x, now)->send_mss, 1460 - 12);
  // The peer did not agree to this size, but nothing forbids accepting it.
  StackConfig c;
  c.addresses = {ip("10.0.0.9")};
  c.options.mtu = 65535;
  Stack big(c);
  const Endpoint lb = big.open();
  big.bind(lb, {IpAddress::any_v4(), 80});
  big.listen(lb, 1);
  const Endpoint xb = a->open();
  a->connect(xb, {ip("10.0.0.9"), 80}, now);
  const auto swap = [&] {
    Datagram d;
    for (int i = 0; i < 50; ++i) {
      while (a->next_output(&d)) big.input(d.bytes, now);
      while (big.next_output(&d)) a->input(d.bytes, now);
    }
  };
  swap();
  EXPECT_EQ(write(*a, xb, 60000).bytes, 60000u);
  auto out = drain(*a);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].payload.size(), 60000u);
  big.input(out[0].bytes, now);
  EXPECT_EQ(read(big, big.accept(lb, nullptr, now)).bytes, 60000u);
}

TEST_F(StackTest, PshAtTheEndOfABurstOrOfEveryWrite) {
  open_pair();
  a->set_option(x, Option::Nagle, 0, now);
  write(*a, x, 100, true);
  write(*a, x, 2000);
  auto out = drain(*a);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_FALSE(out[0].s.has(kPsh));
  EXPECT_TRUE(out[1].s.has(kPsh));
  for (const Seen& s : out) b->input(s.bytes, now);
  carry();

  a->set_option(x, Option::PshRule, 1, now);
  // Fill the window. Two more writes wait, and their ends are remembered.
  const std::size_t window = a->snapshot(x, now)->cwnd / 1448 * 1448;
  write(*a, x, window);
  write(*a, x, 100);
  write(*a, x, 5000);
  std::vector<bool> pushed;
  for (Datagram d;;) {
    for (const Seen& s : drain(*a)) {
      if (!s.payload.empty()) pushed.push_back(s.s.has(kPsh));
      b->input(s.bytes, now);
    }
    if (!b->next_output(&d)) break;
    a->input(d.bytes, now);
  }
  std::vector<bool> want(window / 1448 + 4, false);
  want[window / 1448 - 1] = want[window / 1448] = want.back() = true;
  EXPECT_EQ(pushed, want);
}

TEST_F(StackTest, MoreToComeHoldsTheTail) {
  open_pair();
  write(*a, x, 2000, true);
  EXPECT_EQ(drain(*a).size(), 1u);
  a->push(x, now);
  EXPECT_EQ(drain(*a).size(), 1u);
}

TEST_F(StackTest, TosWithoutTheEcnBits) {
  a->set_default(Option::Tos, 0xb9);
  l = listen();
  x = a->open();
  a->connect(x, {ip("10.0.0.2"), 80}, now);
  const auto out = drain(*a);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].bytes[1], 0xb8);
}

TEST_F(StackTest, BurstsShareTheirAck) {
  b->set_default(Option::AckPolicy, 0);
  open_pair();
  write(*a, x, 6000);
  auto out = drain(*a);
  ASSERT_GE(out.size(), 4u);
  b->begin_burst();
  for (const Seen& s : out) b->input(s.bytes, now);
  EXPECT_TRUE(drain(*b).empty());
  b->end_burst(now);
  auto acks = drain(*b);
  ASSERT_EQ(acks.size(), 1u);
  EXPECT_EQ(acks[0].s.ack - out[0].s.seq, 6000);
}

TEST_F(StackTest, IcmpErrorsEndAnAttemptAndCutSegments) {
  x = a->open();
  a->connect(x, {ip("10.0.0.2"), 80}, now);
  auto out = drain(*a);
  net::IcmpError e;
  e.kind = net::IcmpError::Kind::Unreachable;
  e.hard = true;
  e.local = *a->local_address(x);
  e.remote = {ip("10.0.0.2"), 80};
  e.seq = out[0].s.seq.value() + 1;
  a->icmp_error(e, now);
  EXPECT_EQ(a->take_error(x), Status::Ok);
  e.seq = out[0].s.seq.value();
  a->icmp_error(e, now);
  EXPECT_EQ(a->take_error(x), Status::Unreachable);

  open_pair();
  write(*a, x, 2000);
  out = drain(*a);
  // The same as a datagram: type 3 code 4, quoting a sent segment.
  Bytes icmp(20 + 8 + 28, 0);
  Bytes message(8 + 28, 0);
  message[0] = 3;
  message[1] = 4;
  store_be16(message.data() + 6, 1000);
  std::copy_n(out[0].bytes.begin(), 28, message.begin() + 8);
  store_be16(message.data() + 2, inet_checksum(inet_sum(message)));
  net::Ipv4Header h;
  h.total_len = static_cast<std::uint16_t>(icmp.size());
  h.protocol = net::kProtoIcmp;
  h.src = ip("10.0.0.254");
  h.dst = ip("10.0.0.1");
  net::emit_ipv4(h, icmp.data());
  std::copy(message.begin(), message.end(), icmp.begin() + 20);
  a->input(icmp, now);
  out = drain(*a);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].bytes.size(), 1000u);
  EXPECT_EQ(a->snapshot(x, now)->send_mss, 1000 - 20 - 20 - 12);
}

// An ICMP error is the reason of a failure that follows it, but not of a failure after the path
// worked again.
TEST_F(StackTest, AnIcmpErrorIsForgottenWhenThePathWorksAgain) {
  a->set_default(Option::UserTimeout, 20'000'000);
  for (const bool later : {false, true}) {
    open_pair();
    write(*a, x, 100);
    drain(*a);
    net::IcmpError e;
    e.kind = net::IcmpError::Kind::Unreachable;
    e.local = *a->local_address(x);
    e.remote = {ip("10.0.0.2"), 80};
    e.seq = a->snapshot(x, now)->snd_una;
    a->icmp_error(e, now);
    if (later) {
      pass(Duration::s(2));
      ASSERT_EQ(a->snapshot(x, now)->in_flight, 0u);
      write(*a, x, 100);
    }
    for (int i = 0; i < 30; ++i) {
      drain(*a);
      now = now + Duration::s(1);
      a->run(now);
    }
    EXPECT_EQ(a->take_error(x), later ? Status::TimedOut : Status::Unreachable);
    b->close(l, now);
    b->close(y, now);
    drain(*a);
    drain(*b);
  }
}

}  // namespace
}  // namespace urnic::tcp::test
