// Two byte-stream stacks joined by a wire, and an observer of its datagrams.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/inet_checksum.h"
#include "net/ipv4.h"
#include "tcp/segment.h"
#include "tcp/stack.h"
#include "tests/tcp/network.h"

namespace urnic::tcp::test {
using Bytes = std::vector<std::uint8_t>;

struct Seen {
  Instant at;
  Segment s;
  Bytes bytes, payload;
};

// Parses a datagram's TCP part. The test fails if it has none with valid checksums.
inline Seen look(const Datagram& d) {
  Seen seen;
  seen.at = d.send_time;
  seen.bytes.assign(d.bytes.begin(), d.bytes.end());
  const net::Classified c =
      net::classify_datagram(seen.bytes, static_cast<std::uint32_t>(seen.bytes.size()));
  EXPECT_EQ(c.kind, net::FrameKind::Tcp);
  const ByteView l4 = ByteView(seen.bytes).subspan(c.l4_offset, c.l4_len);
  EXPECT_EQ(inet_checksum(std::uint64_t{c.pseudo_sum} + inet_sum(l4)), 0);
  std::size_t n = 0;
  auto parsed = parse_segment(l4, &n);
  EXPECT_TRUE(parsed.ok());
  seen.s = *parsed;
  seen.payload.assign(l4.begin() + static_cast<std::ptrdiff_t>(n), l4.end());
  return seen;
}

inline std::vector<Seen> drain(Stack& s) {
  std::vector<Seen> all;
  Datagram d;
  while (s.next_output(&d)) all.push_back(look(d));
  return all;
}

struct Changes {
  std::vector<std::pair<Endpoint, std::uint32_t>> list;
  static void take(void* context, Endpoint e, std::uint32_t changes) {
    static_cast<Changes*>(context)->list.emplace_back(e, changes);
  }
  std::uint32_t of(Endpoint e) const {
    std::uint32_t all = 0;
    for (const auto& [who, what] : list) {
      if (who == e) all |= what;
    }
    return all;
  }
};

// Two stacks and a wire that delivers every datagram at once by default.
class StackTest : public testing::Test {
 protected:
  StackTest() {
    StackConfig c;
    c.addresses = {ip("10.0.0.1"), ip("fd00::1")};
    a = std::make_unique<Stack>(c);
    c.addresses = {ip("10.0.0.2"), ip("fd00::2")};
    c.seed = 2;
    b = std::make_unique<Stack>(c);
    a->set_on_change(Changes::take, &at_a);
    b->set_on_change(Changes::take, &at_b);
  }

  // Delivers datagrams until the wire is quiet.
  void carry() {
    Datagram d;
    for (bool any = true; any;) {
      any = false;
      while (a->next_output(&d)) {
        b->input(d.bytes, now);
        any = true;
      }
      while (b->next_output(&d)) {
        a->input(d.bytes, now);
        any = true;
      }
    }
  }
  void pass(Duration t) {
    const Instant end = now + t;
    for (;;) {
      carry();
      const Instant next = earlier(a->next_deadline(), b->next_deadline());
      if (next > end) break;
      now = std::max(now, next);
      a->run(now);
      b->run(now);
    }
    now = end;
  }
  Endpoint listen(std::uint16_t port = 80, unsigned backlog = 8) {
    const Endpoint e = b->open();
    EXPECT_EQ(b->bind(e, {IpAddress::any_v4(), port}), Status::Ok);
    EXPECT_EQ(b->listen(e, backlog), Status::Ok);
    return e;
  }
  void connect(std::uint16_t port = 80) {
    x = a->open();
    EXPECT_EQ(a->connect(x, {ip("10.0.0.2"), port}, now), Status::InProgress);
    carry();
  }
  void open_pair() {
    l = listen();
    connect();
    y = b->accept(l, nullptr, now);
    ASSERT_NE(y, Endpoint::None);
    ASSERT_TRUE(a->readiness(x).connected);
    ASSERT_TRUE(b->readiness(y).connected);
    carry();
    at_a.list.clear();
    at_b.list.clear();
  }
  IoResult write(Stack& s, Endpoint e, std::size_t n, bool more = false) {
    return s.write(e, Bytes(n, 0x5a), now, more);
  }
  IoResult read(Stack& s, Endpoint e, std::size_t n = 1 << 20) {
    Bytes buffer(n);
    return s.read(e, buffer, now);
  }

  std::unique_ptr<Stack> a, b;
  Changes at_a, at_b;
  Endpoint l = Endpoint::None, x = Endpoint::None, y = Endpoint::None;
  Instant now = Instant::from_ns(10000000000);
};

}  // namespace urnic::tcp::test
