// Interfaces with frames as vectors of bytes and a clock that the test advances.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "golden_frames.h"
#include "net/addressing.h"
#include "net/arp.h"
#include "net/ethernet.h"
#include "net/interface.h"
#include "support/golden.h"

namespace urnic::test {

inline IpAddress ip(const char* text) {
  return *IpAddress::parse(text);
}
inline IpPrefix prefix(const char* text) {
  return *IpPrefix::parse(text);
}
inline Instant at(std::int64_t ms) {
  return Instant::from_ns(0) + Duration::ms(ms);
}

const MacAddress kMacA = *MacAddress::parse("02:00:0a:00:00:01");
const MacAddress kMacB = *MacAddress::parse("02:00:0a:00:00:02");

inline net::InterfaceConfig config_a() {
  net::InterfaceConfig c;
  c.addresses = {prefix("10.0.0.1/24"), prefix("2001:db8::1/64")};
  c.link_local = false;
  return c;
}
inline net::InterfaceConfig config_b() {
  net::InterfaceConfig c;
  c.addresses = {prefix("10.0.0.2/24"), prefix("2001:db8::2/64")};
  c.link_local = false;
  return c;
}

inline std::vector<Bytes> drain(net::Interface& i) {
  std::vector<Bytes> out;
  while (i.output_size() != 0) {
    Bytes b(i.output_size());
    EXPECT_EQ(i.next_output(b), b.size());
    out.push_back(std::move(b));
  }
  return out;
}
// The same as hex.
inline std::vector<std::string> drain_hex(net::Interface& i) {
  std::vector<std::string> out;
  for (const Bytes& b : drain(i)) out.push_back(to_hex(b));
  return out;
}
inline void feed(net::Interface& i, const Bytes& frame, Instant now) {
  i.input(net::classify(frame, static_cast<std::uint32_t>(frame.size())), frame, now);
}
inline void feed(net::Interface& i, const char* hex, Instant now) {
  feed(i, from_hex(hex), now);
}

inline std::vector<net::Event> events(net::Interface& i) {
  std::vector<net::Event> out;
  i.take_events(out);
  return out;
}
inline std::size_t count_of(const std::vector<net::Event>& all, net::Event::Kind kind) {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const auto& e) { return e.kind == kind; }));
}

// Brings the interface up and discards the resulting frames and events.
inline void start(net::Interface& i, Instant now) {
  i.link_up(now);
  i.run_timers(now + Duration::s(2));
  drain(i);
  events(i);
}

}  // namespace urnic::test
