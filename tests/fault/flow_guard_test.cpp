// Protected beginnings of streams: the limit of known streams.
#include "fault/flow_guard.h"

#include <gtest/gtest.h>

#include "fault/tcp_frames.h"

namespace urnic::fault {
namespace {

using namespace test;

TEST(FlowGuard, AFullTableForgetsOneStreamForEachNewOne) {
  FaultPlan plan;
  plan.after = 1000;
  FlowGuard guard;
  const auto spares = [&](std::uint16_t port, bool v6, std::uint8_t flags, std::uint32_t seq) {
    SegmentSpec s;
    s.src_port = port;
    s.v6 = v6;
    s.flags = flags;
    s.seq = seq;
    const Frame f = as_frame(s);
    return guard.spares(view(f), {}, plan);
  };
  constexpr std::uint8_t kSyn = 2, kAck = 16;
  for (std::uint32_t i = 0; i < 70'000; ++i) {
    EXPECT_TRUE(spares(static_cast<std::uint16_t>(i % 65'536), i >= 65'536, kSyn, 1));
  }
  EXPECT_EQ(guard.size(), 65'536u);
  std::size_t spared = 0;
  for (std::uint32_t i = 0; i < 70'000; ++i) {
    spared += spares(static_cast<std::uint16_t>(i % 65'536), i >= 65'536, kAck, 2) ? 1 : 0;
  }
  EXPECT_EQ(spared, 65'536u) << "those that are forgotten are spared no more";
  // After the protected part, a stream frees its entry.
  for (std::uint32_t i = 0; i < 70'000; ++i) {
    spares(static_cast<std::uint16_t>(i % 65'536), i >= 65'536, kAck, 5000);
  }
  EXPECT_EQ(guard.size(), 0u);
  EXPECT_TRUE(spares(7, false, kSyn, 1));
  EXPECT_TRUE(spares(7, false, kAck, 2));
}

}  // namespace
}  // namespace urnic::fault
