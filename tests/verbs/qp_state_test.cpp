#include "verbs/qp_state.h"

#include <gtest/gtest.h>

namespace urnic::verbs {
namespace {

constexpr QpState kStates[] = {QpState::Reset, QpState::Init, QpState::Rtr,  QpState::Rts,
                               QpState::Sqd,   QpState::Sqe,  QpState::Error};

TEST(QpState, TheWayUpIsInitRtrRts) {
  QpState s = QpState::Reset;
  s = qp_next(s, QpEvent::ModifyInit).next;
  EXPECT_EQ(s, QpState::Init);
  s = qp_next(s, QpEvent::StartConnection).next;
  EXPECT_EQ(s, QpState::Rtr);
  s = qp_next(s, QpEvent::StreamBound).next;
  EXPECT_EQ(s, QpState::Rts);
}

TEST(QpState, LosingTheStreamEndsInErrorAndFlushesFromEveryLiveState) {
  for (const QpState s : kStates) {
    const QpTransition t = qp_next(s, QpEvent::StreamLost);
    EXPECT_EQ(t.next, QpState::Error) << name(s);
    EXPECT_EQ(t.flush, s != QpState::Error) << name(s);
  }
}

TEST(QpState, TerminateStateIsReachedOnlyFromALiveStream) {
  EXPECT_FALSE(qp_next(QpState::Init, QpEvent::LocalViolation).legal);
  EXPECT_FALSE(qp_next(QpState::Error, QpEvent::TerminateReceived).legal);
  EXPECT_EQ(qp_next(QpState::Rts, QpEvent::TerminateReceived).next, QpState::Sqe);
  EXPECT_EQ(qp_next(QpState::Sqd, QpEvent::LocalViolation).next, QpState::Sqe);
}

TEST(QpState, IllegalEventsLeaveTheStateAlone) {
  for (const QpState s : kStates) {
    for (const QpEvent e : {QpEvent::ModifyInit, QpEvent::StartConnection, QpEvent::StreamBound,
                            QpEvent::CloseRequested, QpEvent::ModifyReset}) {
      const QpTransition t = qp_next(s, e);
      if (!t.legal) {
        EXPECT_EQ(t.next, s);
        EXPECT_FALSE(t.flush);
      }
    }
  }
}

TEST(QpState, StreamStatesBehindTheVerbsStates) {
  EXPECT_EQ(stream_state(QpState::Rtr), StreamState::Idle);
  EXPECT_EQ(stream_state(QpState::Rts), StreamState::Rts);
  EXPECT_EQ(stream_state(QpState::Sqd), StreamState::Closing);
  EXPECT_EQ(stream_state(QpState::Sqe), StreamState::Terminate);
  EXPECT_EQ(stream_state(QpState::Error), StreamState::Error);
}

TEST(QpState, PostingRules) {
  EXPECT_FALSE(may_post_receive(QpState::Reset));
  EXPECT_TRUE(may_post_receive(QpState::Init));
  EXPECT_FALSE(may_post_send(QpState::Rtr));
  EXPECT_TRUE(may_post_send(QpState::Rts));
  EXPECT_TRUE(flushes_posts(QpState::Error));
  EXPECT_FALSE(flushes_posts(QpState::Sqd));
}

}  // namespace
}  // namespace urnic::verbs
