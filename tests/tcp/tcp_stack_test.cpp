// Tests include/urnic/tcp.h as a user of the library would.
#include <urnic/tcp.h>

#include <gtest/gtest.h>

#include "tcp/stack_options.h"

namespace urnic {
namespace {

using namespace std::chrono_literals;

struct Library : ::testing::Test {
  Library() : a(settings("10.0.0.1", 1)), b(settings("10.0.0.2", 2)) {}

  static TcpSettings settings(const char* address, std::uint64_t seed) {
    TcpSettings s;
    s.addresses = {address, "nonsense"};
    s.seed = seed;
    return s;
  }
  // Runs until neither has anything to send. `seen` stores all datagrams from a to b.
  void carry() {
    TcpDatagram d;
    for (bool any = true; any;) {
      any = false;
      while (a.next_output(&d)) {
        seen.insert(seen.end(), d.bytes.begin(), d.bytes.end());
        b.input(d.bytes, now);
        any = true;
      }
      while (b.next_output(&d)) {
        a.input(d.bytes, now);
        any = true;
      }
    }
  }
  void open_pair() {
    l = b.open();
    ASSERT_EQ(b.bind(l, "0.0.0.0:80"), TcpStatus::Ok);
    ASSERT_EQ(b.listen(l, 4), TcpStatus::Ok);
    x = a.open();
    ASSERT_EQ(a.connect(x, "10.0.0.2:80", now), TcpStatus::InProgress);
    carry();
    y = b.accept(l, now);
    ASSERT_NE(y, TcpEndpoint::None);
  }

  TcpTime now = 5s;
  TcpStack a, b;
  TcpEndpoint l{}, x{}, y{};
  std::vector<std::uint8_t> seen;
};

TEST_F(Library, CarriesBytesBothWaysAndEnds) {
  open_pair();
  const std::vector<std::uint8_t> text(5000, 7);
  EXPECT_EQ(a.write(x, text, now).bytes, text.size());
  carry();
  EXPECT_EQ(b.readiness(y).readable, text.size());
  std::vector<std::uint8_t> got(10000);
  EXPECT_EQ(b.peek(y, got).bytes, text.size());
  EXPECT_EQ(b.read(y, got, now).bytes, text.size());
  got.resize(text.size());
  EXPECT_EQ(got, text);
  EXPECT_EQ(b.read(y, got, now).status, TcpStatus::WouldBlock);
  EXPECT_EQ(a.shutdown_write(x, now), TcpStatus::Ok);
  carry();
  EXPECT_EQ(b.read(y, got, now).status, TcpStatus::EndOfStream);
  EXPECT_EQ(b.close(y, now), TcpStatus::Ok);
  EXPECT_EQ(b.close(y, now), TcpStatus::Invalid);
  carry();
  EXPECT_EQ(a.info(x, now)->state, "TIME-WAIT");
  EXPECT_GT(a.counters().datagrams_out, 4u);
}

TEST_F(Library, ReportsAddressesAndNegotiatedValues) {
  open_pair();
  EXPECT_EQ(a.peer_address(x), "10.0.0.2:80");
  EXPECT_EQ(b.peer_address(y), a.local_address(x));
  const auto info = a.info(x, now);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->state, "ESTABLISHED");
  EXPECT_TRUE(info->sack && info->timestamps && info->window_scaling);
  EXPECT_EQ(info->send_mss, 1448);
  EXPECT_FALSE(b.info(l, now).has_value()) << "a listener has no connection";
}

TEST_F(Library, OptionsByName) {
  std::size_t n = 0;
  for (const TcpOption& o : tcp_options()) {
    EXPECT_EQ(a.set_default(o.name, o.most + 1), TcpStatus::Invalid) << o.name;
    EXPECT_EQ(a.set_default(o.name, o.most), TcpStatus::Ok) << o.name;
    const TcpEndpoint e = a.open();
    EXPECT_EQ(a.option(e, o.name), o.most) << o.name;
    EXPECT_EQ(a.set_option(e, o.name, o.least, now), TcpStatus::Ok) << o.name;
    EXPECT_EQ(a.option(e, o.name), o.least) << o.name;
    ++n;
  }
  EXPECT_EQ(n, tcp::kOptions);
  EXPECT_EQ(a.set_default("colour", 1), TcpStatus::Invalid);
  EXPECT_EQ(a.option(a.open(), "colour"), std::nullopt);
}

TEST_F(Library, WrongUseReturnsAnError) {
  EXPECT_FALSE(a.add_address("10.0.0"));
  EXPECT_TRUE(a.add_address("fd00::1"));
  x = a.open();
  EXPECT_EQ(a.bind(x, "10.0.0.9:1"), TcpStatus::NoAddress);
  EXPECT_EQ(a.bind(x, "somewhere"), TcpStatus::Invalid);
  EXPECT_EQ(a.connect(x, "10.0.0.2", now), TcpStatus::Invalid) << "the port is missing";
  EXPECT_EQ(a.read(x, {}, now).status, TcpStatus::NotConnected);
  EXPECT_EQ(a.connect(x, "10.0.0.2:9", now), TcpStatus::InProgress);
  carry();
  EXPECT_EQ(a.take_error(x), TcpStatus::Refused);
  EXPECT_STREQ(to_string(TcpStatus::Refused), "refused");
}

TEST_F(Library, CallBacksAndMoves) {
  struct Seen {
    std::uint32_t changes = 0;
    std::size_t datagrams = 0;
  } at_b, at_a;
  b.set_on_change(
      [](void* c, TcpEndpoint, std::uint32_t what) { static_cast<Seen*>(c)->changes |= what; },
      &at_b);
  a.set_sink(
      [](void* c, const TcpDatagram& d) {
        static_cast<Seen*>(c)->datagrams += d.bytes.empty() ? 0 : 1;
      },
      &at_a);
  TcpStack moved = std::move(a);
  x = moved.open();
  EXPECT_EQ(moved.connect(x, "10.0.0.2:80", now), TcpStatus::InProgress);
  EXPECT_EQ(at_a.datagrams, 1u);
  EXPECT_NE(moved.next_deadline(), kTcpNever);
  now = moved.next_deadline();
  moved.run(now);
  EXPECT_EQ(at_a.datagrams, 2u) << "the SYN again";
  a = std::move(moved);
  a.set_sink(nullptr, nullptr);
  open_pair();
  EXPECT_NE(at_b.changes & kTcpAcceptable, 0u);
}

TEST_F(Library, TheSameInputsGiveTheSameDatagrams) {
  struct Again : Library {
    void TestBody() override {}
    std::vector<std::uint8_t> run() {
      open_pair();
      a.write(x, std::vector<std::uint8_t>(3000, 1), now);
      carry();
      return seen;
    }
  };
  Again one, two;
  EXPECT_EQ(one.run(), two.run());
}

}  // namespace
}  // namespace urnic
