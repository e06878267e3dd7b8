// A consumer changes the state of a queue pair, from every state, through the engine.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "sim/pair.h"

namespace urnic::sim {
namespace {

using verbs::QpState;
using verbs::QpVerdict;

constexpr QpState kStates[] = {QpState::Reset, QpState::Init, QpState::Rtr,
                               QpState::Rts,   QpState::Sqd,  QpState::Error};

// A pair of nodes, with the left queue pair in a given state.
struct Brought {
  explicit Brought(QpState wanted) : pair(PairOptions{}) {
    qp = pair.left().make_qp();
    peer = pair.right().make_qp();
    switch (wanted) {
      case QpState::Reset:
        EXPECT_EQ(modify(QpState::Reset), QpVerdict::Ok);
        break;
      case QpState::Init:
        break;
      case QpState::Rtr:  // connecting, without a reply
        pair.set_faults_left("loss=1");
        EXPECT_TRUE(pair.left().engine().iwarp().connect(
            *qp, *SocketAddress::parse("10.0.0.2:7000"),
            pair.left().engine().iwarp().default_params(), pair.now()));
        break;
      case QpState::Rts:
        EXPECT_TRUE(pair.connect(*qp, *peer));
        break;
      case QpState::Sqd:  // closing, but the peer does not close
        EXPECT_TRUE(pair.connect(*qp, *peer));
        pair.set_faults_left("loss=1");
        EXPECT_EQ(modify(QpState::Sqd), QpVerdict::Ok);
        break;
      default:
        EXPECT_TRUE(pair.connect(*qp, *peer));
        EXPECT_EQ(modify(QpState::Error), QpVerdict::Ok);
        break;
    }
    EXPECT_EQ(qp->state, wanted);
  }
  QpVerdict modify(QpState to, std::uint32_t mask = verbs::kQpAttrState) {
    return pair.left().engine().iwarp_control().move(*qp, to, mask, pair.now());
  }
  bool post_receive(std::uint64_t id) {
    return pair.left().post_receive(*qp, {id, {}}, pair.now());
  }

  Pair pair;
  verbs::QueuePair *qp, *peer;
};

// The changes a consumer may make over iWARP: always go to Reset; to Error from Init on; from Error
// only to Reset; from Sqd not back. All other changes are made by the connection.
bool may(QpState from, QpState to) {
  switch (to) {
    case QpState::Reset:
      return true;
    case QpState::Init:
      return from == QpState::Reset || from == QpState::Init;
    case QpState::Rts:
    case QpState::Sqd:
      return from == QpState::Rts;
    case QpState::Error:
      return from != QpState::Reset;
    default:
      return false;
  }
}

// proves: IB-109, IB-111, IB-118, IB-122
TEST(QpModify, InEveryStateTheEngineFollowsTheTable) {
  for (const QpState from : kStates) {
    for (std::size_t t = 0; t < verbs::kQpStates; ++t) {
      const auto to = static_cast<QpState>(t);
      SCOPED_TRACE(std::string(verbs::name(from)) + " -> " + std::string(verbs::name(to)));
      Brought b(from);
      const bool had_connection = b.qp->connection != 0;
      EXPECT_EQ(b.modify(to), may(from, to) ? QpVerdict::Ok : QpVerdict::NoSuchMove);
      if (!may(from, to)) {
        EXPECT_EQ(b.qp->state, from) << "a refusal changes nothing";
        EXPECT_EQ(b.qp->connection != 0, had_connection);
        continue;
      }
      EXPECT_EQ(b.qp->state, to);
      if (to == QpState::Reset || to == QpState::Error) {
        EXPECT_EQ(b.qp->connection, 0u);
        b.pair.run_for(Duration::s(3));
        EXPECT_EQ(b.pair.left().engine().iwarp().state().connections.size(), 0u)
            << "nothing is left of it";
        EXPECT_EQ(b.qp->state, to);
      }
    }
  }
}

// proves: IB-122
TEST(QpModify, ForeignAttributesAreIgnoredAndUnknownOnesAreNot) {
  Brought b(QpState::Reset);
  EXPECT_EQ(b.modify(QpState::Init, verbs::kQpAttrAll + 1), QpVerdict::ForeignAttribute);
  EXPECT_EQ(b.modify(QpState::Init, verbs::kQpAttrState | verbs::kQpAttrCap),
            QpVerdict::Unsupported);
  EXPECT_EQ(b.qp->state, QpState::Reset);
  EXPECT_EQ(b.modify(QpState::Init, verbs::kQpAttrAll & ~verbs::kQpAttrCap), QpVerdict::Ok);
}

// proves: IB-117
TEST(QpModify, ErrorFlushesBothQueuesInPostingOrderAndLaterPosts) {
  Brought b(QpState::Rts);
  for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(b.post_receive(id));
  b.pair.set_faults_left("loss=1");
  for (std::uint64_t id = 1; id <= 3; ++id) {
    verbs::SendWr wr;
    wr.wr_id = id;
    ASSERT_EQ(b.pair.left().post_send(*b.qp, wr, b.pair.now()), verbs::Post::Ok);
  }
  b.pair.left().drain_completions();
  const std::size_t sent = b.pair.left().send_done.size();
  EXPECT_EQ(b.modify(QpState::Error), QpVerdict::Ok);
  ASSERT_TRUE(b.post_receive(4));
  verbs::SendWr late;
  late.wr_id = 4;
  ASSERT_EQ(b.pair.left().post_send(*b.qp, late, b.pair.now()), verbs::Post::Ok);
  b.pair.left().drain_completions();
  const auto& receives = b.pair.left().receive_done;
  ASSERT_EQ(receives.size(), 4u);
  for (std::size_t i = 0; i < receives.size(); ++i) {
    EXPECT_EQ(receives[i].completion.wr_id, i + 1);
    EXPECT_EQ(receives[i].completion.status, verbs::Status::Flushed);
  }
  const auto& sends = b.pair.left().send_done;
  ASSERT_FALSE(sends.empty());
  for (std::size_t i = sent; i < sends.size(); ++i) {
    EXPECT_EQ(sends[i].completion.status, verbs::Status::Flushed)
        << "moved by the consumer there is no request at fault";
  }
  EXPECT_EQ(sends.back().completion.wr_id, 4u);
  b.pair.left().drain_completions();
  EXPECT_EQ(receives.size(), 4u) << "each once";
}

// ... and so does an end by the peer.
// proves: IB-117
TEST(QpModify, AnEndByThePeerFlushesInPostingOrderAndLaterPosts) {
  Brought b(QpState::Rts);
  for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(b.post_receive(id));
  b.pair.right().engine().iwarp().abort(*b.peer, b.pair.now());
  b.pair.run_for(Duration::ms(10));
  EXPECT_EQ(b.qp->state, QpState::Error);
  b.pair.left().drain_completions();
  ASSERT_EQ(b.pair.left().receive_done.size(), 3u);
  ASSERT_TRUE(b.post_receive(4));
  b.pair.left().drain_completions();
  const auto& receives = b.pair.left().receive_done;
  ASSERT_EQ(receives.size(), 4u);
  for (std::size_t i = 0; i < receives.size(); ++i) {
    EXPECT_EQ(receives[i].completion.wr_id, i + 1);
    EXPECT_EQ(receives[i].completion.status, verbs::Status::Flushed);
  }
}

// Only the connection enters the states between INIT and ERROR. A consumer's request for them
// fails.
// proves: IB-109
TEST(QpModify, TheConsumerCannotEnterTheStatesOfTheTransport) {
  for (const QpState to : {QpState::Rtr, QpState::Rts}) {
    Brought b(QpState::Init);
    EXPECT_NE(b.modify(to), QpVerdict::Ok) << verbs::name(to);
    EXPECT_EQ(b.qp->state, QpState::Init);
  }
  Brought b(QpState::Rtr);
  EXPECT_NE(b.modify(QpState::Rts), QpVerdict::Ok);
  EXPECT_EQ(b.qp->state, QpState::Rtr);
}

// proves: IB-106
TEST(QpModify, ResetEmptiesBothQueuesAndRemovesTheirCompletions) {
  Brought b(QpState::Rts);
  auto* other = b.pair.left().make_qp();
  for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(b.post_receive(id));
  ASSERT_TRUE(b.pair.left().post_receive(*other, {77, {}}, b.pair.now()));
  EXPECT_EQ(b.modify(QpState::Error), QpVerdict::Ok);
  EXPECT_EQ(b.pair.left().engine().iwarp_control().move(*other, QpState::Error, verbs::kQpAttrState,
                                                        b.pair.now()),
            QpVerdict::Ok);
  EXPECT_EQ(b.modify(QpState::Reset), QpVerdict::Ok);
  b.pair.left().drain_completions();
  ASSERT_EQ(b.pair.left().receive_done.size(), 1u) << "another's on the same queue stay";
  EXPECT_EQ(b.pair.left().receive_done[0].completion.wr_id, 77u);
  EXPECT_TRUE(b.pair.left().send_done.empty());
  EXPECT_EQ(b.qp->rq.posted(), 0u);
  EXPECT_TRUE(b.qp->sq.empty());
}

TEST(QpModify, ReceivesWaitFromInitOn) {
  for (const QpState s : kStates) {
    EXPECT_EQ(verbs::may_post_receive(s), s != QpState::Reset);
    EXPECT_EQ(verbs::may_post_send(s),
              s != QpState::Reset && s != QpState::Init && s != QpState::Rtr);
  }
  Brought b(QpState::Init);
  std::vector<std::uint8_t> bytes(64), from(64, 0x5A);
  const auto key = b.pair.left().register_memory(bytes.data(), 64, verbs::kLocalWrite);
  const verbs::Sge into{reinterpret_cast<std::uintptr_t>(bytes.data()), 64, key};
  ASSERT_TRUE(b.pair.left().post_receive(*b.qp, {9, {&into, 1}}, b.pair.now()));
  ASSERT_TRUE(b.pair.connect(*b.qp, *b.peer));
  const auto source = b.pair.right().register_memory(from.data(), 64, 0);
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(from.data()), 64, source};
  verbs::SendWr wr;
  wr.sges = {&sge, 1};
  ASSERT_EQ(b.pair.right().post_send(*b.peer, wr, b.pair.now()), verbs::Post::Ok);
  b.pair.run_for(Duration::ms(100));
  b.pair.left().drain_completions();
  ASSERT_EQ(b.pair.left().receive_done.size(), 1u) << "held in Init, used once connected";
  EXPECT_EQ(b.pair.left().receive_done[0].completion.wr_id, 9u);
  EXPECT_EQ(bytes, from);
}

// A queue pair that is used repeatedly: Reset, Init, connected, Error.
TEST(QpModify, AnEndedQueuePairConnectsAgainAfterReset) {
  Brought b(QpState::Init);
  for (std::uint64_t life = 1; life <= 4; ++life) {
    SCOPED_TRACE(life);
    const std::string address = "10.0.0.2:" + std::to_string(7000 + life);
    ASSERT_TRUE(b.post_receive(life));
    ASSERT_TRUE(b.pair.connect(*b.qp, *b.peer, {}, {}, address));
    verbs::SendWr wr;
    wr.flags = verbs::kSignaled;
    wr.wr_id = life;
    ASSERT_EQ(b.pair.right().post_send(*b.peer, wr, b.pair.now()), verbs::Post::Ok);
    b.pair.run_for(Duration::ms(100));
    b.pair.left().drain_completions();
    ASSERT_EQ(b.pair.left().receive_done.size(), life) << "from MSN 1 on, as on a new one";
    EXPECT_EQ(b.pair.left().receive_done.back().completion.wr_id, life);
    EXPECT_EQ(b.pair.left().receive_done.back().completion.status, verbs::Status::Success);
    // Once from Error, once directly from an open connection.
    if (life % 2 == 1) {
      EXPECT_EQ(b.modify(QpState::Error), QpVerdict::Ok);
    }
    EXPECT_EQ(b.modify(QpState::Reset), QpVerdict::Ok);
    b.pair.run_for(Duration::ms(100));
    EXPECT_EQ(b.peer->state, QpState::Error);
    auto& right = b.pair.right().engine();
    EXPECT_EQ(
        right.iwarp_control().move(*b.peer, QpState::Reset, verbs::kQpAttrState, b.pair.now()),
        QpVerdict::Ok);
    EXPECT_EQ(b.modify(QpState::Init), QpVerdict::Ok);
    b.pair.left().events.clear();
    b.pair.right().events.clear();
  }
}

TEST(QpModify, AResetReportsNothingAndAnErrorReportsOnce) {
  Brought b(QpState::Rts);
  b.pair.left().events.clear();
  EXPECT_EQ(b.modify(QpState::Reset), QpVerdict::Ok);
  EXPECT_TRUE(b.pair.left().events.empty());
  Brought other(QpState::Rts);
  other.pair.left().events.clear();
  EXPECT_EQ(other.modify(QpState::Error), QpVerdict::Ok);
  EXPECT_EQ(other.modify(QpState::Error), QpVerdict::Ok);
  ASSERT_EQ(other.pair.left().events.size(), 1u);
  EXPECT_EQ(other.pair.left().events[0].kind, engine::CmEvent::Kind::Failed);
}

// proves: IB-115, IB-122
TEST(QpModify, ATerminateIsErrorAtBothEndsAndNeverSqe) {
  Brought b(QpState::Rts);
  std::vector<std::uint8_t> from(64);
  const auto source = b.pair.left().register_memory(from.data(), 64, 0);
  const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(from.data()), 64, source};
  verbs::SendWr wr;
  wr.op = verbs::WrOp::Write;
  wr.sges = {&sge, 1};
  wr.rkey = 0x00beef01;
  ASSERT_EQ(b.pair.left().post_send(*b.qp, wr, b.pair.now()), verbs::Post::Ok);
  bool sqe = false;
  b.pair.run_until(
      [&] {
        sqe |= b.qp->state == QpState::Sqe || b.peer->state == QpState::Sqe;
        return false;
      },
      Duration::ms(200));
  EXPECT_FALSE(sqe);
  EXPECT_EQ(b.qp->state, QpState::Error);
  EXPECT_EQ(b.peer->state, QpState::Error);
}

}  // namespace
}  // namespace urnic::sim
