// Which asynchronous events a program gets.
#include "dropin/async_events.h"

#include <gtest/gtest.h>

#include "dropin/transport_traits.h"

namespace urnic::dropin {
namespace {

TEST(AsyncEvents, CommEstIsNotReportedForAnIwarpQueuePairInRts) {
  constexpr bool kIwarp = traits_of(Transport::iwarp).has_comm_est_in_rts;
  constexpr bool kRoce = traits_of(Transport::roce).has_comm_est_in_rts;
  EXPECT_EQ(to_async(EventKind::communication_established), IBV_EVENT_COMM_EST);
  EXPECT_FALSE(is_news(IBV_EVENT_COMM_EST, kIwarp, IBV_QPS_RTS));
  EXPECT_TRUE(is_news(IBV_EVENT_COMM_EST, kIwarp, IBV_QPS_RTR));
  // Over RoCE the message arrived in RTR, even if the program has moved the queue pair since.
  EXPECT_TRUE(is_news(IBV_EVENT_COMM_EST, kRoce, IBV_QPS_RTS));
  EXPECT_TRUE(is_news(IBV_EVENT_QP_ACCESS_ERR, kIwarp, IBV_QPS_RTS));
}

}  // namespace
}  // namespace urnic::dropin
