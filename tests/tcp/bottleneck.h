// One bulk transfer over a line of a given rate, delay, queue and loss, in virtual time.
#pragma once

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/tcp/network.h"

namespace urnic::tcp::test {

struct Bottleneck {
  double rate = 500e6;  // bit/s
  Duration rtt = Duration::ms(1);
  double loss = 0;
  std::uint64_t seed = 1;
  EndpointOptions options;
  std::uint64_t memory_limit = 256u << 20;  // of each stack
  // Data segments lost in addition, counted from 0 in the order of sending.
  std::set<std::uint64_t> holes;

  Bottleneck() {
    options.send_buffer = 4 << 20;
    options.tcp.receive_buffer = 8 << 20;
    options.tcp.window_shift = 8;
    options.tcp.congestion = CongestionControl::Cubic;
  }
};

struct Moved {
  double mbit = 0;  // goodput
  std::uint64_t retransmissions = 0, overflowed = 0;
  Duration longest_silence;  // of the data direction
  Snapshot sender, receiver;
  std::uint64_t most_granted = 0;  // of the receiving stack
};

// Sends `bytes` from one stack to another, and no data in the other direction.
inline Moved move(const Bottleneck& b, std::uint64_t bytes) {
  Network net(b.seed);
  net.delay = b.rtt / 2;
  net.rate = b.rate;
  net.loss = b.loss;
  const double frames = b.rate * static_cast<double>(b.rtt.count_ns()) / 1e9 / 8 / 1500;
  net.queue = std::max<std::size_t>(200, static_cast<std::size_t>(frames));
  StackConfig config;
  config.options = b.options;
  config.memory_limit = b.memory_limit;
  config.addresses = {ip("10.0.0.1")};
  Stack& from = net.add(config);
  config.addresses = {ip("10.0.0.2")};
  config.seed = 2;
  Stack& to = net.add(config);
  const Endpoint listener = to.open();
  EXPECT_EQ(to.bind(listener, {ip("10.0.0.2"), 80}), Status::Ok);
  EXPECT_EQ(to.listen(listener, 1), Status::Ok);

  Moved out;
  std::uint64_t left = 0;
  Instant last = net.now;
  net.filter = [&](std::size_t who, ByteView datagram) {
    if (who != 0 || datagram.size() <= 100) return true;
    out.longest_silence = std::max(out.longest_silence, net.now - last);
    last = net.now;
    return !b.holes.contains(left++);
  };
  Endpoint a = from.open(), z = Endpoint::None;
  const Instant begin = net.now;
  EXPECT_EQ(from.connect(a, {ip("10.0.0.2"), 80}, net.now), Status::InProgress);
  std::vector<std::uint8_t> chunk(65536, 0x5a);
  std::uint64_t written = 0, got = 0;
  Instant end = net.now;
  net.run(Duration::s(3600), [&] {
    if (z == Endpoint::None) z = to.accept(listener, nullptr, net.now);
    while (written < bytes && from.readiness(a).writable != 0) {
      const std::size_t n = std::min<std::uint64_t>(chunk.size(), bytes - written);
      const IoResult r = from.write(a, ByteView(chunk).first(n), net.now);
      if (r.status != Status::Ok) break;
      written += r.bytes;
    }
    if (z != Endpoint::None) {
      for (IoResult r; (r = to.read(z, chunk, net.now)).status == Status::Ok;) got += r.bytes;
    }
    if (got >= bytes) end = net.now;
    out.most_granted = std::max(out.most_granted, to.granted());
    return got >= bytes;
  });
  EXPECT_EQ(got, bytes);
  const auto seen = from.snapshot(a, net.now);
  out.sender = *seen;
  if (z != Endpoint::None) out.receiver = *to.snapshot(z, net.now);
  out.retransmissions = seen->retransmissions;
  out.overflowed = net.overflowed;
  out.mbit = static_cast<double>(bytes) * 8e3 / static_cast<double>((end - begin).count_ns());
  return out;
}

}  // namespace urnic::tcp::test
