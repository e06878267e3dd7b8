// The router: datagrams that are too large are dropped and reported, all others pass.
#include "sim/router.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/inet_checksum.h"
#include "port/memory_port.h"

namespace urnic::sim {
namespace {

std::vector<std::uint8_t> datagram(std::uint16_t bytes) {
  std::vector<std::uint8_t> f(14u + bytes, 0x5a);
  store_be16(f.data() + 12, 0x0800);
  f[14] = 0x45;
  store_be16(f.data() + 16, bytes);
  return f;
}

void send(port::Port& port, const std::vector<std::uint8_t>& bytes) {
  port::Frame f{};
  ASSERT_EQ(port.tx_reserve(0, static_cast<std::uint32_t>(bytes.size()), &f, 1), 1u);
  std::memcpy(f.data[0], bytes.data(), bytes.size());
  f.len[0] = static_cast<std::uint32_t>(bytes.size());
  f.len[1] = 0;
  port.tx_commit(0, &f, 1);
}

std::vector<std::uint8_t> receive(port::Port& port) {
  port::Frame f[4];
  const unsigned n = port.rx_burst(0, f, 4);
  std::vector<std::uint8_t> out;
  if (n != 0) out.assign(f[0].data[0], f[0].data[0] + f[0].len[0]);
  port.rx_release(0, f, n);
  return out;
}

TEST(Router, DropsOversizedDatagramsAndReportsFragmentationNeeded_Rfc1191) {
  auto [a, b] = port::make_memory_pair({});
  RoutedPort routed = wrap_router(std::move(a));
  routed.control->path_mtu = 1000;
  send(routed.port, datagram(1001));
  EXPECT_EQ(routed.control->dropped, 1u);
  EXPECT_TRUE(receive(b).empty());
  const auto said = receive(routed.port);
  ASSERT_EQ(said.size(), 14u + 20 + 8 + 28);
  EXPECT_EQ(said[34], 3);  // destination unreachable,
  EXPECT_EQ(said[35], 4);  // fragmentation needed and DF set
  EXPECT_EQ(load_be16(said.data() + 40), 1000);
  EXPECT_EQ(inet_fold(inet_sum({said.data() + 14, 20})), 0xffff);
  EXPECT_EQ(inet_fold(inet_sum({said.data() + 34, 36})), 0xffff);
  EXPECT_EQ(std::memcmp(said.data() + 42, datagram(1001).data() + 14, 28), 0);
  EXPECT_TRUE(receive(routed.port).empty());  // only once
}

TEST(Router, PassesFittingDatagramsInBothDirections) {
  auto [a, b] = port::make_memory_pair({});
  RoutedPort routed = wrap_router(std::move(a));
  routed.control->path_mtu = 1000;
  send(routed.port, datagram(1000));
  EXPECT_EQ(receive(b), datagram(1000));
  send(b, datagram(1400));  // received datagrams have already passed the router
  EXPECT_EQ(receive(routed.port), datagram(1400));
  routed.control->path_mtu = 0;
  send(routed.port, datagram(1500));
  EXPECT_EQ(receive(b), datagram(1500));
  EXPECT_EQ(routed.control->dropped, 0u);
}

TEST(Router, WaitingRepliesAreLimited) {
  auto [a, b] = port::make_memory_pair({});
  RoutedPort routed = wrap_router(std::move(a));
  routed.control->path_mtu = 1000;
  const auto drain = [&] {
    unsigned heard = 0;
    for (port::Frame f[4];;) {
      const unsigned n = routed.port.rx_burst(0, f, 4);
      if (n == 0) return heard;
      routed.port.rx_release(0, f, n);
      heard += n;
    }
  };
  constexpr unsigned kMostWaiting = 64;
  for (unsigned i = 0; i < kMostWaiting + 9; ++i) send(routed.port, datagram(1001));
  EXPECT_EQ(routed.control->dropped, kMostWaiting + 9);
  EXPECT_EQ(drain(), kMostWaiting);
  send(routed.port, datagram(1001));
  EXPECT_EQ(drain(), 1u) << "there is room again";
}

}  // namespace
}  // namespace urnic::sim
