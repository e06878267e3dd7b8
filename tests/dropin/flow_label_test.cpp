#include "dropin/flow_label.h"

#include <gtest/gtest.h>

namespace urnic::dropin {
namespace {

// Routers can distinguish paths by the port.
// proves: DI-22
TEST(FlowLabel, DeterminesTheUdpSourcePortAndOtherwiseThePairDoes) {
  EXPECT_EQ(source_port(1, 77), 0xc001u);
  EXPECT_EQ(source_port(0x3fff, 77), 0xffffu);
  EXPECT_EQ(source_port(0x80000, 77), 0xc020u) << "the upper six bits are folded in";
  EXPECT_EQ(source_port(0xfff00001, 77), 0xc001u) << "it has 20 bits";
  EXPECT_EQ(source_port(0, 77), 0xc000u + 77);
  EXPECT_EQ(source_port(0, 0x80000), 0xc020u);
}

}  // namespace
}  // namespace urnic::dropin
