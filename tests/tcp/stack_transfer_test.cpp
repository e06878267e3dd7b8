// Whole stacks over a bad network: every byte arrives once and in order, and no state remains.
#include <gtest/gtest.h>

#include <string>

#include "tests/tcp/network.h"

namespace urnic::tcp::test {
namespace {

struct Pair {
  Network net;
  Stack& client;
  Stack& server;
  Endpoint listener;
  Peer c, s;

  Pair(std::uint64_t seed, const StackConfig& base, bool v6 = false)
      : net(seed),
        client(net.add(with(base, v6 ? "fd00::1" : "10.0.0.1", seed * 2))),
        server(net.add(with(base, v6 ? "fd00::2" : "10.0.0.2", seed * 2 + 1))) {
    listener = server.open();
    EXPECT_EQ(server.bind(listener, {v6 ? ip("fd00::2") : ip("10.0.0.2"), 80}), Status::Ok);
    EXPECT_EQ(server.listen(listener, 8), Status::Ok);
    c.stack = &client;
    s.stack = &server;
    c.out_stream = s.in_stream = 1;
    c.in_stream = s.out_stream = 2;
    c.e = client.open();
    EXPECT_EQ(client.connect(c.e, {v6 ? ip("fd00::2") : ip("10.0.0.2"), 80}, net.now),
              Status::InProgress);
  }
  static StackConfig with(StackConfig c, const char* address, std::uint64_t seed) {
    c.addresses = {ip(address)};
    c.seed = seed;
    return c;
  }
  bool step() {
    if (s.e == Endpoint::None) s.e = server.accept(listener, nullptr, net.now);
    c.work(net.now);
    s.work(net.now);
    return c.eof && s.eof;
  }
  void transfer(std::uint64_t up, std::uint64_t down, Duration limit = Duration::s(3600)) {
    c.to_write = up;
    s.to_write = down;
    net.run(limit, [&] { return step(); });
  }
  void expect_done() {
    EXPECT_TRUE(c.content_ok && s.content_ok);
    EXPECT_EQ(s.got, c.to_write);
    EXPECT_EQ(c.got, s.to_write);
    EXPECT_TRUE(c.eof && s.eof);
    EXPECT_EQ(c.failure, Status::Ok);
    EXPECT_EQ(s.failure, Status::Ok);
    client.close(c.e, net.now);
    server.close(s.e, net.now);
    net.run(Duration::s(600));
    EXPECT_EQ(client.connections(), 0u);
    EXPECT_EQ(server.connections(), 0u);
    EXPECT_EQ(client.sockets(), 0u);
    EXPECT_EQ(server.sockets(), 1u);
    EXPECT_TRUE(client.next_deadline().is_never());
    EXPECT_TRUE(server.next_deadline().is_never());
  }
};

TEST(StackTransfer, MegabytesBothWaysOverAGoodNetwork) {
  for (const bool v6 : {false, true}) {
    Pair p(1, {}, v6);
    p.transfer(8 << 20, 4 << 20);
    p.expect_done();
    EXPECT_EQ(p.client.counters().retransmissions, 0u);
    EXPECT_EQ(p.server.counters().retransmissions, 0u);
    EXPECT_EQ(p.client.counters().dropped_checksum, 0u);
  }
}

TEST(StackTransfer, DeliversDespiteLossReorderingDuplicationAndCorruption) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed * 7919);
    StackConfig base;
    EndpointOptions& o = base.options;
    o.tcp.sack = rng.chance(0.7);
    o.tcp.timestamps = rng.chance(0.7);
    o.tcp.window_scaling = rng.chance(0.7);
    o.tcp.nagle = rng.chance(0.3);
    o.tcp.ack_policy = static_cast<AckPolicy>(rng.below(3));
    o.tcp.receive_buffer = static_cast<std::uint32_t>(rng.between(2000, 500000));
    o.send_buffer = static_cast<std::uint32_t>(rng.between(1000, 500000));
    o.mtu = static_cast<std::uint32_t>(rng.between(200, 9000));
    o.tcp.rto_max = Duration::s(10);
    o.tcp.data_retries = 60;
    o.tcp.syn_retries = 30;
    Pair p(seed, base, rng.chance(0.5));
    p.net.loss = 0.05 * static_cast<double>(rng.below(4)) / 3;
    p.net.duplicate = 0.03 * static_cast<double>(rng.below(3)) / 2;
    p.net.corrupt = 0.03 * static_cast<double>(rng.below(3)) / 2;
    p.net.reorder = 0.3 * static_cast<double>(rng.below(3)) / 2;
    p.transfer(rng.between(1, 300000), rng.between(1, 300000));
    p.expect_done();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(StackTransfer, TheSameInputsGiveTheSamePackets) {
  std::vector<std::uint64_t> hashes;
  for (int i = 0; i < 2; ++i) {
    Pair p(42, {});
    p.net.loss = 0.02;
    p.net.reorder = 0.1;
    std::uint64_t h = 1469598103934665603ULL;
    p.net.filter = [&](std::size_t from, ByteView b) {
      h = (h ^ from) * 1099511628211ULL;
      for (const std::uint8_t x : b) h = (h ^ x) * 1099511628211ULL;
      return true;
    };
    p.transfer(200000, 200000);
    p.expect_done();
    hashes.push_back(h);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST(StackTransfer, HundredsOfConnectionsTransferAtOnce) {
  Network net(5);
  StackConfig base;
  base.addresses = {ip("10.0.0.1")};
  Stack& client = net.add(base);
  base.addresses = {ip("10.0.0.2")};
  base.seed = 2;
  base.options.syn_backlog = 1000;
  Stack& server = net.add(base);
  const Endpoint listener = server.open();
  server.bind(listener, {IpAddress::any_v4(), 80});
  ASSERT_EQ(server.listen(listener, 1000), Status::Ok);
  std::vector<Peer> clients(300);
  std::map<std::uint16_t, Peer> servers;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    Peer& c = clients[i];
    c.stack = &client;
    c.e = client.open();
    ASSERT_EQ(client.connect(c.e, {ip("10.0.0.2"), 80}, net.now), Status::InProgress);
    c.out_stream = client.local_address(c.e)->port;
    c.in_stream = c.out_stream + 70000;
    c.to_write = 5000 + i;
  }
  net.loss = 0.01;
  net.run(Duration::s(600), [&] {
    SocketAddress peer;
    for (Endpoint e; (e = server.accept(listener, &peer, net.now)) != Endpoint::None;) {
      Peer& s = servers[peer.port];
      s.stack = &server;
      s.e = e;
      s.in_stream = peer.port;
      s.out_stream = peer.port + 70000;
      s.to_write = 3000;
    }
    bool all = servers.size() == clients.size();
    for (Peer& c : clients) {
      c.work(net.now);
      all &= c.eof;
    }
    for (auto& [port, s] : servers) {
      s.work(net.now);
      all &= s.eof;
    }
    return all;
  });
  ASSERT_EQ(servers.size(), clients.size());
  for (Peer& c : clients) {
    ASSERT_TRUE(c.content_ok && c.eof);
    ASSERT_EQ(c.got, 3000u);
    const Peer& s = servers[client.local_address(c.e)->port];
    ASSERT_TRUE(s.content_ok);
    ASSERT_EQ(s.got, c.to_write);
  }
}

}  // namespace
}  // namespace urnic::tcp::test
