// The table that finds the context of a segment before the segment is validated (E1). If tuples
// have the same hash, each still finds its own connection.
#include <gtest/gtest.h>

#include "base/hash_map.h"
#include "iwarp/connection.h"

namespace urnic::iwarp {
namespace {

// Every tuple collides with every other.
struct OnePlace {
  std::uint64_t operator()(const FlowKey&) const { return 42; }
};

FlowKey tuple(std::uint16_t port) {
  return {*IpAddress::parse("10.0.0.1"), *IpAddress::parse("10.0.0.2"), 7000, port};
}

// proves: R-73
TEST(FlowTable, CollidingTuplesLeadToTheRightContext) {
  HashMap<FlowKey, std::uint32_t, OnePlace> flows;
  for (std::uint16_t port = 1; port <= 40; ++port) flows.insert(tuple(port), port);
  for (std::uint16_t port = 1; port <= 40; ++port) {
    ASSERT_NE(flows.find(tuple(port)), nullptr) << port;
    EXPECT_EQ(*flows.find(tuple(port)), port);
  }
  // One is removed: later ones in the chain are still found.
  for (std::uint16_t port = 1; port <= 40; port += 3) EXPECT_TRUE(flows.erase(tuple(port)));
  for (std::uint16_t port = 1; port <= 40; ++port) {
    const std::uint32_t* slot = flows.find(tuple(port));
    EXPECT_EQ(slot != nullptr, port % 3 != 1) << port;
    if (slot != nullptr) {
      EXPECT_EQ(*slot, port);
    }
  }
}

// proves: R-74
TEST(FlowTable, AnUnknownTupleIsNoConnectionOnceTheChainEnds) {
  HashMap<FlowKey, std::uint32_t, OnePlace> flows;
  EXPECT_EQ(flows.find(tuple(1)), nullptr);
  for (std::uint16_t port = 1; port <= 40; ++port) flows.insert(tuple(port), port);
  EXPECT_EQ(flows.find(tuple(41)), nullptr);
  FlowKey other = tuple(1);
  other.local_port = 7001;
  EXPECT_EQ(flows.find(other), nullptr);
  other = tuple(1);
  other.remote = *IpAddress::parse("10.0.0.3");
  EXPECT_EQ(flows.find(other), nullptr);
}

}  // namespace
}  // namespace urnic::iwarp
