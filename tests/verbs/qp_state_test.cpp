#include "verbs/qp_state.h"

#include <gtest/gtest.h>

#include <string>

namespace urnic::verbs {
namespace {

constexpr QpState kStates[] = {QpState::Reset, QpState::Init, QpState::Rtr,  QpState::Rts,
                               QpState::Sqd,   QpState::Sqe,  QpState::Error};
constexpr Service kServices[] = {Service::Rc, Service::Uc, Service::Ud};

std::string pair_name(QpState from, QpState to) {
  return std::string(name(from)) + " -> " + std::string(name(to));
}

// All 49 pairs, a line for each state left, a letter for each state entered: by the Consumer, by
// the Transport, by Either, or '-'.
using Table = const char* const[kQpStates];

void expect_moves(const QpRules& rules, Service service, const Table& want) {
  for (std::size_t f = 0; f < kQpStates; ++f) {
    for (std::size_t t = 0; t < kQpStates; ++t) {
      const QpState from = kStates[f], to = kStates[t];
      SCOPED_TRACE(pair_name(from, to));
      const std::uint32_t mask =
          rules.needs_attributes ? attributes(service, from, to).required : kQpAttrState;
      const char who = want[f][t];
      const QpMove asked = judge_move(rules, service, from, to, Mover::Consumer, mask);
      EXPECT_EQ(asked.ok(), who == 'C' || who == 'E');
      const QpMove happened = judge_move(rules, service, from, to, Mover::Transport, 0);
      EXPECT_EQ(happened.ok(), who == 'T' || who == 'E');
      if (!asked.ok()) {
        EXPECT_EQ(asked.verdict, QpVerdict::NoSuchMove);
        EXPECT_EQ(asked.effect, QpEffect::Nothing);
      }
    }
  }
}

// Columns: Reset Init Rtr Rts Sqd Sqe Error
// proves: IB-109, IB-111, IB-115, IB-118
TEST(QpState, AllPairsOfRc) {
  expect_moves(kIbRules, Service::Rc,
               {"CC-----", "CCC---C", "C--C--E", "C--CC-E", "C--CC-E", "-------", "C-----C"});
}

// proves: IB-109, IB-111, IB-118
TEST(QpState, AllPairsOfUcAndUd) {
  const Table want = {"CC-----", "CCC---C", "C--C--E", "C--CCTE", "C--CCTE", "C--C--E", "C-----C"};
  expect_moves(kIbRules, Service::Uc, want);
  expect_moves(kIbRules, Service::Ud, want);
}

// Both ends of XRC move like RC, each with the attributes of its half.
// proves: IB-164
TEST(QpState, TheEndsOfXrcMoveAsRcWithTheirOwnAttributes) {
  for (const Service service : {Service::XrcSend, Service::XrcReceive}) {
    expect_moves(kIbRules, service,
                 {"CC-----", "CCC---C", "C--C--E", "C--CC-E", "C--CC-E", "-------", "C-----C"});
    EXPECT_EQ(attributes(service, QpState::Reset, QpState::Init).required,
              attributes(Service::Rc, QpState::Reset, QpState::Init).required);
  }
  const auto required = [](Service s, QpState from, QpState to) {
    return attributes(s, from, to).required;
  };
  constexpr std::uint32_t kServes = kQpAttrMaxDestRdAtomic | kQpAttrMinRnrTimer;
  constexpr std::uint32_t kAsks = kQpAttrRetryCount | kQpAttrRnrRetry | kQpAttrMaxRdAtomic;
  const std::uint32_t rtr = required(Service::Rc, QpState::Init, QpState::Rtr);
  const std::uint32_t rts = required(Service::Rc, QpState::Rtr, QpState::Rts);
  EXPECT_EQ(required(Service::XrcSend, QpState::Init, QpState::Rtr), rtr & ~kServes);
  EXPECT_EQ(required(Service::XrcReceive, QpState::Init, QpState::Rtr), rtr);
  EXPECT_EQ(required(Service::XrcSend, QpState::Rtr, QpState::Rts), rts);
  EXPECT_EQ(required(Service::XrcReceive, QpState::Rtr, QpState::Rts), rts & ~kAsks);
  for (const QpState from : {QpState::Rtr, QpState::Rts, QpState::Sqd}) {
    EXPECT_EQ(attributes(Service::XrcSend, from, QpState::Rts).optional & kQpAttrMinRnrTimer, 0u);
    EXPECT_NE(attributes(Service::XrcReceive, from, QpState::Rts).optional & kQpAttrMinRnrTimer,
              0u);
  }
  EXPECT_EQ(attributes(Service::XrcSend, QpState::Sqd, QpState::Sqd).optional & kServes, 0u);
  EXPECT_EQ(attributes(Service::XrcReceive, QpState::Sqd, QpState::Sqd).optional & kAsks, 0u);
}

// proves: IB-122
TEST(QpState, AllPairsOverIwarp) {
  expect_moves(kIwarpRules, Service::Rc,
               {"CC-----", "CCT---C", "C--T--E", "C--CE-E", "C-----E", "-------", "C-----C"});
}

TEST(QpState, CommonMovesAreTheSameForBothTransports) {
  // Moves common to both transports: reset, failure, and the moves that RC does not have.
  for (const QpState from : kStates) {
    if (from == QpState::Sqe) continue;
    for (const QpState to : {QpState::Reset, QpState::Init, QpState::Error}) {
      EXPECT_EQ(judge_move(kIbRules, Service::Rc, from, to, Mover::Consumer,
                           attributes(Service::Rc, from, to).required)
                    .verdict,
                judge_move(kIwarpRules, Service::Rc, from, to, Mover::Consumer).verdict)
          << pair_name(from, to);
    }
  }
}

// The masks of section 1.7 of the digest, written independently: required, optional.
struct MaskCase {
  Service service;
  QpState from, to;
  std::uint32_t required, optional;
};
using enum QpState;
constexpr std::uint32_t kCur = kQpAttrCurState, kAcc = kQpAttrAccess, kPkey = kQpAttrPkeyIndex,
                        kPort = kQpAttrPort, kKey = kQpAttrQkey, kRnr = kQpAttrMinRnrTimer;
constexpr MaskCase kCases[] = {
    {Service::Rc, Reset, Init, kPkey | kPort | kAcc, 0},
    {Service::Uc, Reset, Init, kPkey | kPort | kAcc, 0},
    {Service::Ud, Reset, Init, kPkey | kPort | kKey, 0},
    {Service::Rc, Init, Init, 0, kPkey | kPort | kAcc},
    {Service::Uc, Init, Init, 0, kPkey | kPort | kAcc},
    {Service::Ud, Init, Init, 0, kPkey | kPort | kKey},
    {Service::Rc, Init, Rtr,
     kQpAttrAv | kQpAttrPathMtu | kQpAttrDestQpn | kQpAttrRqPsn | kQpAttrMaxDestRdAtomic | kRnr,
     kAcc | kPkey},
    {Service::Uc, Init, Rtr, kQpAttrAv | kQpAttrPathMtu | kQpAttrDestQpn | kQpAttrRqPsn,
     kAcc | kPkey},
    {Service::Ud, Init, Rtr, 0, kPkey | kKey},
    {Service::Rc, Rtr, Rts,
     kQpAttrTimeout | kQpAttrRetryCount | kQpAttrRnrRetry | kQpAttrSqPsn | kQpAttrMaxRdAtomic,
     kCur | kAcc | kRnr},
    {Service::Uc, Rtr, Rts, kQpAttrSqPsn, kCur | kAcc},
    {Service::Ud, Rtr, Rts, kQpAttrSqPsn, kCur | kKey},
    {Service::Rc, Rts, Rts, 0, kCur | kAcc | kRnr},
    {Service::Uc, Rts, Rts, 0, kCur | kAcc},
    {Service::Ud, Rts, Rts, 0, kCur | kKey},
    {Service::Rc, Rts, Sqd, 0, kQpAttrSqdNotify},
    {Service::Uc, Rts, Sqd, 0, kQpAttrSqdNotify},
    {Service::Ud, Rts, Sqd, 0, kQpAttrSqdNotify},
    {Service::Rc, Sqd, Sqd, 0,
     kPort | kQpAttrAv | kQpAttrTimeout | kQpAttrRetryCount | kQpAttrRnrRetry | kQpAttrMaxRdAtomic |
         kQpAttrMaxDestRdAtomic | kAcc | kPkey | kRnr},
    {Service::Uc, Sqd, Sqd, 0, kQpAttrAv | kAcc | kPkey},
    {Service::Ud, Sqd, Sqd, 0, kPkey | kKey},
    {Service::Rc, Sqd, Rts, 0, kCur | kAcc | kRnr},
    {Service::Uc, Sqd, Rts, 0, kCur | kAcc},
    {Service::Ud, Sqd, Rts, 0, kCur | kKey},
    {Service::Uc, Sqe, Rts, 0, kCur | kAcc},
    {Service::Ud, Sqe, Rts, 0, kCur | kKey},
};

// proves: IB-110, IB-121
TEST(QpState, EveryRequiredBitMissingAndEveryForeignBitIsRefused) {
  std::size_t cases = 0;
  for (const Service service : kServices) {
    for (const QpState from : kStates) {
      for (const QpState to : kStates) {
        const auto judge = [&](std::uint32_t mask) {
          return judge_move(kIbRules, service, from, to, Mover::Consumer, mask);
        };
        MaskCase want{service, from, to, 0, 0};  // moves without a row take no attributes
        for (const MaskCase& c : kCases) {
          if (c.service == service && c.from == from && c.to == to) want = c, ++cases;
        }
        if (!judge(want.required).ok()) continue;  // no such move
        SCOPED_TRACE(pair_name(from, to));
        EXPECT_TRUE(judge(want.required | want.optional | kQpAttrState).ok());
        for (std::uint32_t bit = 1; bit != 0; bit <<= 1) {
          if (bit == kQpAttrState) continue;
          if ((want.required & bit) != 0) {
            EXPECT_EQ(judge(want.required & ~bit).verdict, QpVerdict::MissingAttribute) << bit;
          } else if ((want.optional & bit) == 0) {
            EXPECT_FALSE(judge(want.required | bit).ok()) << bit;
          }
        }
      }
    }
  }
  EXPECT_EQ(cases, std::size(kCases)) << "every row is a move";
}

TEST(QpState, NoAlternatePathsAndNoResizing) {
  const auto required = attributes(Service::Rc, Init, Rtr).required;
  for (const std::uint32_t bit : {kQpAttrAltPath, kQpAttrPathMigState, kQpAttrCap}) {
    EXPECT_EQ(judge_move(kIbRules, Service::Rc, Init, Rtr, Mover::Consumer, required | bit).verdict,
              QpVerdict::Unsupported);
  }
}

// proves: IB-122
TEST(QpState, IwarpNeedsNoAttributeAndIgnoresForeignOnes) {
  const auto judge = [](QpState from, QpState to, std::uint32_t mask) {
    return judge_move(kIwarpRules, Service::Rc, from, to, Mover::Consumer, mask).verdict;
  };
  EXPECT_EQ(judge(Reset, Init, kQpAttrState), QpVerdict::Ok);
  EXPECT_EQ(judge(Reset, Init, kQpAttrAll & ~kQpAttrCap), QpVerdict::Ok);
  EXPECT_EQ(judge(Rts, Sqd, kQpAttrState | kQpAttrSqdNotify), QpVerdict::Ok);
  EXPECT_EQ(judge(Reset, Init, kQpAttrAll + 1), QpVerdict::ForeignAttribute) << "nobody's";
  EXPECT_EQ(judge(Sqd, Rts, kQpAttrState), QpVerdict::NoSuchMove) << "Closing is not resumed";
}

// proves: IB-105
TEST(QpState, PostingRulesOfAllSevenStates) {
  const auto row = [](QpState s) {
    const QpRights& r = rights(s);
    std::string out;
    for (const bool b : {r.post_receives, r.serves_receives, r.flush_receives, r.post_sends,
                         r.begins_sends, r.flush_sends, r.takes_requests, r.takes_responses}) {
      out += b ? 'y' : '-';
    }
    return out;
  };
  // receives: post, serve, flush; sends: post, begin, flush; requests, responses
  EXPECT_EQ(row(Reset), "--------");
  EXPECT_EQ(row(Init), "y-------");
  EXPECT_EQ(row(Rtr), "yy----y-");
  EXPECT_EQ(row(Rts), "yy-yy-yy");
  EXPECT_EQ(row(Sqd), "yy-y--yy");
  EXPECT_EQ(row(Sqe), "yy-y-yy-");
  EXPECT_EQ(row(Error), "y-yy-y--");
  for (const QpState s : kStates) {
    EXPECT_EQ(may_post_receive(s), rights(s).post_receives);
    EXPECT_EQ(may_post_send(s), rights(s).post_sends);
    EXPECT_EQ(flushes_posts(s), s == Sqe || s == Error);
  }
}

TEST(QpState, EachMoveHasItsEffect) {
  const auto effect = [](QpState from, QpState to, Mover by) {
    return judge_move(kIbRules, Service::Ud, from, to, by,
                      attributes(Service::Ud, from, to).required)
        .effect;
  };
  for (const QpState s : kStates) {
    EXPECT_EQ(effect(s, Reset, Mover::Consumer), QpEffect::Discard) << name(s);
  }
  for (const QpState s : {Init, Rtr, Rts, Sqd, Sqe}) {
    EXPECT_EQ(effect(s, Error, Mover::Consumer), QpEffect::FlushAll) << name(s);
  }
  EXPECT_EQ(effect(Error, Error, Mover::Consumer), QpEffect::Nothing) << "flushed before";
  EXPECT_EQ(effect(Rts, Sqe, Mover::Transport), QpEffect::FlushSends);
  EXPECT_EQ(effect(Sqd, Sqe, Mover::Transport), QpEffect::FlushSends);
  EXPECT_EQ(effect(Rtr, Rts, Mover::Consumer), QpEffect::Nothing);
  EXPECT_EQ(effect(Rts, Sqd, Mover::Consumer), QpEffect::Nothing);
}

// proves: IB-109
TEST(QpStateMachine, ARefusedMoveChangesNothing) {
  QpStateMachine m(kIwarpRules, Service::Rc);
  EXPECT_EQ(m.load(), Reset);
  EXPECT_FALSE(m.modify(Rts).ok());
  EXPECT_FALSE(m.advance(Init).ok());
  EXPECT_FALSE(m.modify(Init, kQpAttrState | kQpAttrCap).ok());
  EXPECT_EQ(m.load(), Reset);
}

TEST(QpStateMachine, AnIwarpQueuePairConnectsSeveralTimes) {
  QpStateMachine m(kIwarpRules, Service::Rc);
  for (int life = 0; life < 3; ++life) {
    EXPECT_TRUE(m.modify(Init).ok());
    EXPECT_TRUE(m.advance(Rtr).ok());
    EXPECT_TRUE(m.advance(Rts).ok());
    if (life == 1) {
      EXPECT_TRUE(m.advance(Sqd).ok());
    }
    EXPECT_EQ(m.advance(Error).effect, QpEffect::FlushAll);
    EXPECT_EQ(m.modify(Reset).effect, QpEffect::Discard);
    EXPECT_EQ(m.load(), Reset);
  }
}

}  // namespace
}  // namespace urnic::verbs
