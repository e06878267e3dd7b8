// Every combination of values that two ends may negotiate transfers data in both directions, and
// every set-up that cannot work fails with its reason. One run each in virtual time.
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>
#include <utility>

#include "sim/pair.h"
#include "tests/support/workload.h"

namespace urnic::sim {
namespace {

using Kind = engine::CmEvent::Kind;

// revision, RTR kinds offered and accepted, CRC, type of the left, type of the right, IPv6, MTU
using Setting = std::tuple<int, int, bool, bool, bool, bool, std::uint32_t>;

class Matrix : public ::testing::TestWithParam<Setting> {};

TEST_P(Matrix, DataMovesBothWaysAndTheConnectionClosesInOrder) {
  const auto [revision, rtr, crc, left_fast, right_fast, v6, mtu] = GetParam();
  PairOptions o;
  o.mtu = mtu;
  for (engine::Options* e : {&o.left, &o.right}) {
    e->mpa.revision = static_cast<std::uint8_t>(revision);
    e->mpa.rtr = static_cast<std::uint8_t>(rtr);
    e->mpa.peer_to_peer = rtr != mpa::kRtrNone;
    e->mpa.crc = crc;
  }
  o.left.context.initiated_as =
      left_fast ? fastpath::ConnectionType::Fast : fastpath::ConnectionType::Slow;
  o.right.context.initiated_as =
      right_fast ? fastpath::ConnectionType::Fast : fastpath::ConnectionType::Slow;
  Pair pair(o);
  auto* left = pair.left().make_qp(64, 64);
  auto* right = pair.right().make_qp(64, 64);
  ASSERT_TRUE(pair.connect(*left, *right, {}, {}, v6 ? "[fd00::2]:7000" : "10.0.0.2:7000"));
  test::WorkloadOptions w;
  w.messages = 12;
  test::Workload work(pair, *left, *right, w);
  EXPECT_EQ(work.run(), "");
  const ConnectionStats a = pair.left().engine().iwarp().qp_stats(*left);
  const ConnectionStats b = pair.right().engine().iwarp().qp_stats(*right);
  EXPECT_EQ(a.iwarp.mpa.crc, crc);
  EXPECT_EQ(a.iwarp.fast, crc && left_fast) << a.iwarp.slow_reason;  // E-2: always SLOW without CRC
  EXPECT_EQ(b.iwarp.fast, crc && right_fast) << b.iwarp.slow_reason;
  EXPECT_EQ(a.iwarp.downgrades + b.iwarp.downgrades, 0u);
  EXPECT_EQ(a.iwarp.tcp.retransmits + b.iwarp.tcp.retransmits, 0u);  // none on a clean wire
  pair.left().engine().iwarp().disconnect(*left, pair.now());
  pair.run_for(Duration::s(100));
  EXPECT_EQ(pair.left().events.back().kind, Kind::Disconnected);
  EXPECT_EQ(pair.right().events.back().kind, Kind::Disconnected);
  EXPECT_EQ(pair.left().engine().iwarp().state().connections.size() +
                pair.right().engine().iwarp().state().connections.size(),
            0u);
}

INSTANTIATE_TEST_SUITE_P(
    All, Matrix,
    ::testing::Combine(::testing::Values(1, 2),
                       ::testing::Values(int{mpa::kRtrNone}, int{mpa::kRtrWrite},
                                         int{mpa::kRtrRead}, mpa::kRtrWrite | mpa::kRtrRead),
                       ::testing::Bool(), ::testing::Bool(), ::testing::Bool(), ::testing::Bool(),
                       ::testing::Values(1500u, 9000u)));

// ---- framing policies (D6) by InLogic variant, type, CRC and faults

// policies of left and right, variant without markers, limit, CRC, left FAST, faults
using Policies = std::pair<mpa::Policy, mpa::Policy>;
using FramingSetting =
    std::tuple<Policies, fastpath::InLogicVariant, std::uint32_t, bool, bool, const char*>;

void set_framing(engine::Options* o, mpa::Policy policy, fastpath::InLogicVariant plain,
                 std::uint32_t attempts) {
  o->mpa.policy = policy;
  o->context.variant = mpa::has_markers(policy) ? fastpath::InLogicVariant::Fig3 : plain;
  // Fig 3 alone is legal with markers only (E-3).
  o->context.max_recovery_attempts = mpa::has_markers(policy) ? attempts : std::max(attempts, 1u);
}

class FramingMatrix : public ::testing::TestWithParam<FramingSetting> {};

// proves
TEST_P(FramingMatrix, DataMovesBothWaysOnTheExpectedPath) {
  const auto [policies, variant, attempts, crc, left_fast, faults] = GetParam();
  const auto [policy_left, policy_right] = policies;
  PairOptions o;
  o.seed = 11;
  o.faults_left = o.faults_right = faults;
  set_framing(&o.left, policy_left, variant, attempts);
  set_framing(&o.right, policy_right, variant, attempts);
  o.left.mpa.crc = o.right.mpa.crc = crc;
  o.left.context.initiated_as =
      left_fast ? fastpath::ConnectionType::Fast : fastpath::ConnectionType::Slow;
  o.left.context.upgrade_after = o.right.context.upgrade_after = 8;
  Pair pair(o);
  auto* left = pair.left().make_qp(64, 64);
  auto* right = pair.right().make_qp(64, 64);
  ASSERT_TRUE(pair.connect(*left, *right));
  test::Workload work(pair, *left, *right, {.seed = 9, .messages = 25});
  EXPECT_EQ(work.run(), "");
  EXPECT_FALSE(work.ended()) << work.failures();
  const ConnectionStats a = pair.left().engine().iwarp().qp_stats(*left);
  const ConnectionStats b = pair.right().engine().iwarp().qp_stats(*right);
  EXPECT_EQ(a.iwarp.mpa.framing, mpa::policy_name(policy_left));
  EXPECT_EQ(a.iwarp.mpa.framing_sent, mpa::policy_name(policy_right)) << "the receiver decides";
  EXPECT_EQ(b.iwarp.mpa.framing, mpa::policy_name(policy_right));
  EXPECT_EQ(b.iwarp.mpa.framing_sent, mpa::policy_name(policy_left));
  if (!crc || !left_fast) {
    EXPECT_EQ(a.iwarp.bytes_fast, 0u);
    EXPECT_FALSE(a.iwarp.fast);
  }
  if (crc && *faults == 0) {
    EXPECT_EQ(b.iwarp.bytes_slow, 0u);
    EXPECT_EQ(a.iwarp.bytes_slow == 0, left_fast);
    EXPECT_EQ(a.iwarp.downgrades + b.iwarp.downgrades, 0u);
    EXPECT_EQ(b.iwarp.tcp.retransmits, 0u);
  }
}

constexpr mpa::Policy kPolicies[] = {mpa::Policy::NoMarkers, mpa::Policy::Markers,
                                     mpa::Policy::AbsoluteMarkers, mpa::Policy::ModifiedLength};
// Extensions apply to both directions; each receiver decides about markers.
constexpr Policies kThatMeet[] = {
    {mpa::Policy::NoMarkers, mpa::Policy::NoMarkers},
    {mpa::Policy::NoMarkers, mpa::Policy::Markers},
    {mpa::Policy::Markers, mpa::Policy::NoMarkers},
    {mpa::Policy::Markers, mpa::Policy::Markers},
    {mpa::Policy::AbsoluteMarkers, mpa::Policy::AbsoluteMarkers},
    {mpa::Policy::ModifiedLength, mpa::Policy::ModifiedLength},
};
INSTANTIATE_TEST_SUITE_P(
    Policies, FramingMatrix,
    ::testing::Combine(::testing::ValuesIn(kThatMeet),
                       ::testing::Values(fastpath::InLogicVariant::Fig9,
                                         fastpath::InLogicVariant::Fig10),
                       ::testing::Values(0u, 32u), ::testing::Bool(), ::testing::Bool(),
                       ::testing::Values("", "loss=0.02,reorder=0.05:3,dup=0.02,reseg=0.1")));

// The absolute grid follows from the sequence number alone: the connection's start of the stream is
// not used.
// proves: R-76
TEST(AbsoluteGrid, IsFoundWithoutTheConnection) {
  PairOptions o;
  o.seed = 11;
  set_framing(&o.left, mpa::Policy::AbsoluteMarkers, fastpath::InLogicVariant::Fig9, 32);
  set_framing(&o.right, mpa::Policy::AbsoluteMarkers, fastpath::InLogicVariant::Fig9, 32);
  Pair pair(o);
  auto* left = pair.left().make_qp(64, 64);
  auto* right = pair.right().make_qp(64, 64);
  ASSERT_TRUE(pair.connect(*left, *right));
  pair.right().engine().iwarp().find(right->connection)->framing.phase += 252;
  test::Workload work(pair, *left, *right, {.seed = 9, .messages = 25});
  EXPECT_EQ(work.run(), "");
  EXPECT_FALSE(work.ended()) << work.failures();
  const ConnectionStats b = pair.right().engine().iwarp().qp_stats(*right);
  EXPECT_EQ(b.iwarp.bytes_slow, 0u);
  EXPECT_GT(b.iwarp.bytes_fast, 0u);
  EXPECT_EQ(b.iwarp.downgrades + b.iwarp.recovery_attempts, 0u);
}

// A host that only has TCP and what the test makes it send: an MPA peer with unusual behaviour.
struct Setup : ::testing::Test {
  PairOptions o;
  std::unique_ptr<Pair> pair;
  verbs::QueuePair *left = nullptr, *right = nullptr;

  void make() {
    pair = std::make_unique<Pair>(o);
    left = pair->left().make_qp();
    right = pair->right().make_qp();
  }
  bool start(Duration timeout = Duration::s(10)) {
    engine::ConnectParams p = pair->left().engine().iwarp().default_params();
    p.timeout = timeout;
    return pair->left()
        .engine()
        .iwarp()
        .connect(*left, *SocketAddress::parse("10.0.0.2:7000"), p, pair->now())
        .ok();
  }
  bool left_hears(Kind kind, Duration limit = Duration::s(30)) {
    return pair->run_until(
        [&] { return !pair->left().events.empty() && pair->left().events.back().kind == kind; },
        limit);
  }
  // So many bytes travel both ways.
  void expect_private_data(std::size_t bytes) {
    std::vector<std::uint8_t> data(bytes);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i);
    const auto give = [&](engine::ConnectParams& p) { p.private_data = data; };
    ASSERT_TRUE(pair->connect(*left, *right, give, give));
    std::string got;
    for (const auto& event : pair->left().events) {
      if (event.kind == Kind::Established) got = event.private_data;
    }
    ASSERT_EQ(got.size(), data.size());
    EXPECT_EQ(std::memcmp(got.data(), data.data(), data.size()), 0);
  }
};

// proves: E-35
TEST_F(Setup, RevisionTwoAgainstAResponderThatKnowsOnlyOneFallsBack) {
  o.right.mpa.revision = 1;
  make();
  ASSERT_TRUE(pair->connect(*left, *right));
  test::Workload work(*pair, *left, *right, {.seed = 3, .messages = 6});
  EXPECT_EQ(work.run(), "");
}

// The second attempt makes the same request: with the consumer's private data, the connection type,
// and options such as keepalive.
// proves: E-35
TEST_F(Setup, TheSecondAttemptMakesTheSameRequest) {
  o.right.mpa.revision = 1;
  make();
  ASSERT_TRUE(pair->right().engine().iwarp().listen(7000, 4));
  engine::ConnectParams params = pair->left().engine().iwarp().default_params();
  params.context.initiated_as = fastpath::ConnectionType::Slow;
  params.private_data = {1, 2, 3};
  params.keepalive = true;
  ASSERT_TRUE(pair->left()
                  .engine()
                  .iwarp()
                  .connect(*left, *SocketAddress::parse("10.0.0.2:7000"), params, pair->now())
                  .ok());
  ASSERT_TRUE(pair->run_until([&] { return !pair->right().events.empty(); }, Duration::s(5)));
  const auto accept = [&](engine::ConnectionId request) {
    return pair->right()
        .engine()
        .iwarp()
        .accept(request, *right, pair->right().engine().iwarp().default_params(), pair->now())
        .ok();
  };
  EXPECT_FALSE(accept(pair->right().events.front().request.id)) << "of a revision unknown here";
  pair->right().events.clear();
  ASSERT_TRUE(pair->run_until([&] { return !pair->right().events.empty(); }, Duration::s(5)));
  const verbs::ConnectionRequest request = pair->right().events.front().request;
  EXPECT_EQ(request.private_data, params.private_data);
  ASSERT_TRUE(accept(request.id));
  ASSERT_TRUE(left_hears(Kind::Established));
  EXPECT_FALSE(pair->left().engine().iwarp().qp_stats(*left).iwarp.fast);
  pair->left().events.clear();
  pair->set_faults_left("loss=1");
  ASSERT_TRUE(left_hears(Kind::Failed, Duration::s(200)));
  EXPECT_EQ(pair->left().events.back().code, Errc::timed_out);
}

TEST_F(Setup, NoSharedRtrKindIsAnsweredByTerminate_2_0_7) {
  o.left.mpa.rtr = mpa::kRtrRead;
  o.right.mpa.rtr = mpa::kRtrWrite;
  make();
  ASSERT_TRUE(pair->right().engine().iwarp().listen(7000, 4));
  ASSERT_TRUE(start());
  ASSERT_TRUE(pair->run_until([&] { return !pair->right().events.empty(); }, Duration::s(5)));
  (void)pair->right().engine().iwarp().accept(pair->right().events.front().request.id, *right,
                                              pair->right().engine().iwarp().default_params(),
                                              pair->now());
  // Either side may detect it first. Both must end, and the initiator must not be established.
  pair->run_for(Duration::s(30));
  EXPECT_NE(left->state, verbs::QpState::Rts);
  for (const auto& event : pair->left().events) EXPECT_NE(event.kind, Kind::Established);
}

// Linux siw, as the responder, loses an FPDU that comes directly after its Reply.
TEST_F(Setup, TheInitiatorsFirstFpduWaitsForItsDelay_RFC6581) {
  o.left.first_fpdu_delay = Duration::ms(50);
  make();
  ASSERT_TRUE(pair->right().engine().iwarp().listen(7000, 4));
  ASSERT_TRUE(start());
  ASSERT_TRUE(pair->run_until([&] { return !pair->right().events.empty(); }, Duration::s(5)));
  ASSERT_TRUE(pair->right()
                  .engine()
                  .iwarp()
                  .accept(pair->right().events.front().request.id, *right,
                          pair->right().engine().iwarp().default_params(), pair->now())
                  .ok());
  ASSERT_TRUE(left_hears(Kind::Established));
  const Instant reply = pair->now();
  ASSERT_TRUE(pair->run_until([&] { return pair->right().events.back().kind == Kind::Established; },
                              Duration::s(5)));
  EXPECT_GE(pair->now() - reply, Duration::ms(50));
  EXPECT_LE(pair->now() - reply, Duration::ms(60));
  test::Workload work(*pair, *left, *right, {.seed = 3, .messages = 6});
  EXPECT_EQ(work.run(), "");
}

TEST_F(Setup, AnInitiatorThatWaitsCanBeClosed) {
  o.left.first_fpdu_delay = Duration::ms(50);
  o.left.mpa.peer_to_peer = o.right.mpa.peer_to_peer = false;
  make();
  ASSERT_TRUE(pair->connect(*left, *right));
  pair->left().engine().iwarp().disconnect(*left, pair->now());
  EXPECT_TRUE(left_hears(Kind::Disconnected));
}

TEST_F(Setup, ConsumerThatNeverAnswersMakesTheConnectorTimeOut) {
  make();
  ASSERT_TRUE(pair->right().engine().iwarp().listen(7000, 4));
  ASSERT_TRUE(start(Duration::s(3)));
  ASSERT_TRUE(left_hears(Kind::ConnectFailed));
  EXPECT_EQ(pair->left().events.back().code, Errc::timed_out);
}

TEST_F(Setup, SilentNetworkTimesOutWithTheReason) {
  o.faults_left = "loss=1";
  make();
  ASSERT_TRUE(start(Duration::s(5)));
  ASSERT_TRUE(left_hears(Kind::ConnectFailed));
  const auto& event = pair->left().events.back();
  EXPECT_TRUE(event.code == Errc::timed_out || event.code == Errc::unreachable) << event.message;
  EXPECT_FALSE(event.message.empty());
}

TEST_F(Setup, AcceptAfterThePeerHasGivenUpReturnsClosed) {
  make();
  ASSERT_TRUE(pair->right().engine().iwarp().listen(7000, 4));
  ASSERT_TRUE(start());
  ASSERT_TRUE(pair->run_until([&] { return !pair->right().events.empty(); }, Duration::s(5)));
  pair->left().engine().iwarp().abort(*left, pair->now());
  pair->run_for(Duration::s(1));
  const auto result = pair->right().engine().iwarp().accept(
      pair->right().events.front().request.id, *right,
      pair->right().engine().iwarp().default_params(), pair->now());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Errc::closed);
  EXPECT_EQ(right->state, verbs::QpState::Init);
}

// proves: E-1
TEST_F(Setup, StartupSurvivesAnyReSegmentation) {
  make();
  ASSERT_TRUE(pair->connect(*left, *right));
  for (const auto& s : {pair->left().engine().iwarp().qp_stats(*left),
                        pair->right().engine().iwarp().qp_stats(*right)}) {
    for (std::size_t i = 0; i < kReasonCount; ++i) {  // InLogic saw only the RTR message
      if (i == static_cast<std::size_t>(fastpath::Reason::Aligned)) continue;
      EXPECT_EQ(s.iwarp.reasons[i], 0u) << reason_label(i);
    }
  }
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    o.seed = seed;
    o.faults_left = o.faults_right = "reseg=1";
    make();
    ASSERT_TRUE(pair->connect(*left, *right)) << seed;
  }
}

TEST_F(Setup, PrivateDataOf508BytesTravelsBothWays) {
  make();
  expect_private_data(508);
}

TEST_F(Setup, BacklogLimitsPendingConnections) {
  make();
  ASSERT_TRUE(pair->right().engine().iwarp().listen(7000, 2));
  std::vector<verbs::QueuePair*> qps;
  for (int i = 0; i < 5; ++i) {
    qps.push_back(pair->left().make_qp());
    ASSERT_TRUE(pair->left()
                    .engine()
                    .iwarp()
                    .connect(*qps.back(), *SocketAddress::parse("10.0.0.2:7000"),
                             pair->left().engine().iwarp().default_params(), pair->now())
                    .ok());
  }
  pair->run_for(Duration::ms(500));
  ASSERT_EQ(pair->right().events.size(), 2u);
  // The others arrive by retransmission when there is room, while they wait (startup_timeout, 10
  // s).
  for (std::size_t answered = 0; answered < 5; ++answered) {
    ASSERT_GT(pair->right().events.size(), answered);
    pair->right().engine().iwarp().reject(pair->right().events[answered].request.id, {},
                                          pair->now());
    pair->run_for(Duration::ms(1700));
    EXPECT_LE(pair->right().events.size(), answered + 3);
  }
  EXPECT_EQ(pair->right().events.size(), 5u);
}

// proves: E-30
TEST_F(Setup, OwnAddressesLoopBackInsideTheProcess) {
  make();
  ASSERT_TRUE(pair->left().engine().iwarp().listen(7100, 4));
  auto* other = pair->left().make_qp();
  ASSERT_TRUE(pair->left()
                  .engine()
                  .iwarp()
                  .connect(*left, *SocketAddress::parse("10.0.0.1:7100"),
                           pair->left().engine().iwarp().default_params(), pair->now())
                  .ok());
  bool accepted = false;
  ASSERT_TRUE(pair->run_until(
      [&] {
        for (const auto& event : pair->left().events) {
          if (event.kind != Kind::ConnectRequest || accepted) continue;
          accepted = pair->left()
                         .engine()
                         .iwarp()
                         .accept(event.request.id, *other,
                                 pair->left().engine().iwarp().default_params(), pair->now())
                         .ok();
        }
        return left->state == verbs::QpState::Rts && other->state == verbs::QpState::Rts;
      },
      Duration::s(5)));
  EXPECT_EQ(pair->right().engine().iwarp().state().counters.opened, 0u);
}

// ---- incompatible policies (D6)

TEST_F(Setup, D6_IncompatiblePoliciesAreRefusedWithTheReasonAtBothEnds) {
  for (const mpa::Policy a : kPolicies) {
    for (const mpa::Policy b : kPolicies) {
      if (a == b || (!mpa::is_extension(a) && !mpa::is_extension(b))) continue;
      SCOPED_TRACE(std::string(mpa::policy_name(a)) + " to " + std::string(mpa::policy_name(b)));
      set_framing(&o.left, a, fastpath::InLogicVariant::Fig9, 32);
      set_framing(&o.right, b, fastpath::InLogicVariant::Fig9, 32);
      make();
      ASSERT_TRUE(pair->right().engine().iwarp().listen(7000, 4));
      ASSERT_TRUE(start());
      ASSERT_TRUE(pair->run_until([&] { return !pair->right().events.empty(); }, Duration::s(5)));
      const auto refused = pair->right().engine().iwarp().accept(
          pair->right().events.front().request.id, *right,
          pair->right().engine().iwarp().default_params(), pair->now());
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.error().code, Errc::rejected);
      EXPECT_NE(refused.error().message.find(mpa::policy_name(b)), std::string::npos)
          << refused.error().message;
      EXPECT_EQ(right->state, verbs::QpState::Init) << "it may answer another request";
      ASSERT_TRUE(left_hears(Kind::ConnectFailed));
      const auto& event = pair->left().events.back();
      EXPECT_EQ(event.code, Errc::rejected);
      for (const mpa::Policy p : {a, b}) {
        EXPECT_NE(event.message.find("framing = " + std::string(mpa::policy_name(p))),
                  std::string::npos)
            << event.message;
      }
      EXPECT_TRUE(event.private_data.empty());
    }
  }
}

// proves: R-77
TEST_F(Setup, AbsoluteMarkersWorkForEveryInitialSequenceNumber) {
  std::uint32_t residues = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    o.seed = seed;
    set_framing(&o.left, mpa::Policy::AbsoluteMarkers, fastpath::InLogicVariant::Fig9, 32);
    o.right = o.left;
    make();
    ASSERT_TRUE(pair->connect(*left, *right)) << seed;
    const auto& a = pair->left().engine().iwarp().find(left->connection)->tcb;
    residues |= 1u << (a.snd.iss.value() % 4) | 16u << (a.rcv.irs.value() % 4);
    test::Workload work(*pair, *left, *right, {.seed = seed, .messages = 5});
    ASSERT_EQ(work.run(), "") << seed;
    EXPECT_EQ(pair->left().engine().iwarp().qp_stats(*left).iwarp.bytes_slow, 0u);
  }
  EXPECT_EQ(residues, 0xffu) << "every residue each way was met";
}

TEST_F(Setup, PrivateDataTravelsWithTheToken_D6) {
  for (const mpa::Policy policy : {mpa::Policy::AbsoluteMarkers, mpa::Policy::ModifiedLength}) {
    set_framing(&o.left, policy, fastpath::InLogicVariant::Fig9, 32);
    o.right = o.left;
    make();
    expect_private_data(mpa::max_private_data(true, policy));
  }
}

}  // namespace
}  // namespace urnic::sim
