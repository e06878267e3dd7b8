// What a program is told by asynchronous events.
#include "dropin/async_events.h"

#include <gtest/gtest.h>

namespace urnic::dropin {
namespace {

TEST(AsyncEvents, ADataMessageEstablishesNoQueuePairOfIwarpThatIsInRts) {
  EXPECT_EQ(to_async(EventKind::communication_established), IBV_EVENT_COMM_EST);
  EXPECT_FALSE(is_news(IBV_EVENT_COMM_EST, false, IBV_QPS_RTS));
  EXPECT_TRUE(is_news(IBV_EVENT_COMM_EST, false, IBV_QPS_RTR));
  // Over RoCE it came in RTR, though the program may have moved on since.
  EXPECT_TRUE(is_news(IBV_EVENT_COMM_EST, true, IBV_QPS_RTS));
  EXPECT_TRUE(is_news(IBV_EVENT_QP_ACCESS_ERR, false, IBV_QPS_RTS));
}

}  // namespace
}  // namespace urnic::dropin
