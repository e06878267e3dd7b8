// Congestion control of RoCE through the engine (S-10): packets are marked ECT, marks cause CNPs,
// and CNPs close windows; and the number of ACKs (S-11).
#include <gtest/gtest.h>

#include <string>

#include "device/engine_options.h"
#include "ib/icrc.h"
#include "tests/roce/engine_ends.h"
#include "urnic/config.h"

namespace urnic::test {
namespace {

// Offsets for IPv4 without options.
constexpr std::size_t kTos = 15, kBth = 14 + 20 + 8;

class RoceCongestion : public RoceEnds {
 protected:
  static sim::PairOptions with(ib::CongestionRule rule, bool probe = false) {
    sim::PairOptions o = both();
    for (engine::Options* e : {&o.left, &o.right}) {
      e->roce.send.congestion = rule;
      e->roce.probe = probe;
    }
    return o;
  }
  void begin(const sim::PairOptions& o, const ByHand& h = {}) {
    up(o, h);
    rooms(256 * 1024);
    pair->run_for(Duration::ms(10));  // neighbors are resolved
    pair->watch_left([this](const urnic_frame& f) { see(f, &from_left_); });
    pair->watch_right([this](const urnic_frame& f) { see(f, &from_right_); });
  }
  // Packets in flight of 512, on a path with a delay of a millisecond.
  std::uint32_t in_flight_with(const char* window) {
    Config c;
    EXPECT_TRUE(c.set("roce_window", window).ok());
    sim::PairOptions o = with(ib::CongestionRule::Off);
    o.left.roce.send.window = device::options_from(c, "mem").roce.send.window;
    begin(o);
    pair->set_faults_left("delay=1ms");
    for (std::uint64_t i = 0; i < 8; ++i) post(*left, verbs::WrOp::Write, i, 65536, 0);
    pair->run_for(Duration::us(900));
    return roce::context_of(*left).requester.rc()->state().in_flight;
  }
  RoceStats stats(sim::Node& node, verbs::QueuePair& qp) {
    return node.engine().roce_control().stats_of(qp).roce;
  }
  RoceStats of_left() { return stats(pair->left(), *left); }
  RoceStats of_right() { return stats(pair->right(), *right); }

  struct Seen {
    std::uint64_t packets = 0, ect = 0, cnps = 0, acks = 0;
    std::vector<Instant> times;  // of CNPs
  } from_left_, from_right_;

 private:
  void see(const urnic_frame& f, Seen* to) {
    if (f.len[0] < kBth + ib::kBthBytes || f.data[0][23] != 17) return;
    ++to->packets;
    to->ect += (f.data[0][kTos] & 3) == 2 ? 1 : 0;
    to->acks += f.data[0][kBth] == 0x11 ? 1 : 0;
    if (f.data[0][kBth] != 0x81) return;
    ++to->cnps;
    to->times.push_back(pair->now());
  }
};

// A line of 1 Gb/s that marks packets which wait for more than 20 us.
constexpr const char* kMarks = "rate=1gbit,delay=20us,mark=20us";

// proves: S-10, IB-146
TEST_F(RoceCongestion, MarksDrawCnpsAndCnpsCloseTheWindow) {
  begin(with(ib::CongestionRule::Window));
  pair->set_faults_left(kMarks);
  for (std::uint64_t i = 0; i < 4; ++i) post(*left, verbs::WrOp::Write, i, 65536, i * 65536);
  ASSERT_TRUE(run(4));
  EXPECT_EQ(from_left_.ect, from_left_.packets);
  EXPECT_GT(of_right().ce_marks_received, 10u);
  EXPECT_EQ(of_right().cnps_sent, from_right_.cnps);
  EXPECT_GT(from_right_.cnps, 2u);
  EXPECT_EQ(of_left().cnps_received, from_right_.cnps);
  EXPECT_GT(of_left().window_reductions, 2u);
  EXPECT_LT(of_right().cnps_sent, of_right().ce_marks_received);
  for (std::size_t i = 1; i < from_right_.times.size(); ++i) {
    EXPECT_GE(from_right_.times[i] - from_right_.times[i - 1], Duration::us(49)) << i;
  }
  EXPECT_EQ(ours->bytes, theirs->bytes);
}

// proves: S-10
TEST_F(RoceCongestion, SwitchedOffNothingIsMarkedAndNoCnpIsSent) {
  begin(with(ib::CongestionRule::Off));
  pair->set_faults_left(kMarks);
  for (std::uint64_t i = 0; i < 4; ++i) post(*left, verbs::WrOp::Write, i, 65536, i * 65536);
  ASSERT_TRUE(run(4));
  EXPECT_EQ(from_left_.ect, 0u);
  EXPECT_EQ(from_right_.cnps, 0u);
  EXPECT_EQ(of_left().window_reductions, 0u);
}

// proves: S-10
TEST_F(RoceCongestion, MarkedReadResponsesReduceTheWindowOfTheRequester) {
  begin(with(ib::CongestionRule::Window));
  pair->set_faults_right(kMarks);
  for (std::uint64_t i = 0; i < 4; ++i) post(*left, verbs::WrOp::Read, i, 65536, i * 65536);
  ASSERT_TRUE(run(4));
  EXPECT_GT(of_left().ce_marks_received, 10u);
  EXPECT_GT(of_left().cnps_sent, 2u);
  EXPECT_GT(of_left().window_reductions, 0u);
  EXPECT_EQ(of_right().cnps_ignored, of_right().cnps_received)
      << "nothing of its own was in flight";
  EXPECT_EQ(ours->bytes, theirs->bytes);
}

// proves: S-10
TEST_F(RoceCongestion, OnlyReliableQueuePairsUseCongestionControl) {
  up_unreliable(verbs::Service::Uc, with(ib::CongestionRule::Window));
  rooms(65536);
  std::uint64_t packets = 0, ect = 0;
  pair->watch_left([&](const urnic_frame& f) {
    if (f.len[0] < kBth + ib::kBthBytes || f.data[0][23] != 17) return;
    ++packets;
    ect += (f.data[0][kTos] & 3) != 0 ? 1 : 0;
  });
  post(*left, verbs::WrOp::Write, 0, 4096, 0);
  ASSERT_TRUE(run(1));
  pair->run_for(Duration::ms(1));
  EXPECT_GT(packets, 0u);
  EXPECT_EQ(ect, 0u);
}

// proves: S-10
TEST_F(RoceCongestion, ATrafficClassKeepsItsUpperBits) {
  ByHand h;
  pair = std::make_unique<sim::Pair>(with(ib::CongestionRule::Window));
  left = pair->left().make_roce_qp();
  right = pair->right().make_roce_qp();
  roce::QpChange rtr = to_rtr(h, 0, right->number(), 1);
  rtr.av.traffic_class = 0xbb;
  roce::ControlPath& side = pair->left().engine().roce_control();
  for (const roce::QpChange& c : {to_init(), rtr, to_rts(h, 0)}) {
    ASSERT_EQ(side.move(*left, c, pair->now()), roce::Modified::Ok);
  }
  connect(pair->right(), *right, h, 1, left->number(), 0, pair->now());
  rooms(4096);
  std::uint8_t tos = 0;
  pair->watch_left([&](const urnic_frame& f) {
    if (f.len[0] >= kBth && f.data[0][23] == 17) tos = f.data[0][kTos];
  });
  post(*left, verbs::WrOp::Write, 0, 100, 0);
  ASSERT_TRUE(run(1));
  EXPECT_EQ(tos, 0xba);
}

// ---- S-11

// proves: S-11
TEST_F(RoceCongestion, ABurstIsAcknowledgedOnce) {
  begin(with(ib::CongestionRule::Off));
  // Each of these requests an ACK, and they arrive together.
  for (std::uint64_t i = 0; i < 16; ++i) post(*left, verbs::WrOp::Write, i, 64, i * 64);
  pair->run_for(Duration::us(50));
  from_right_ = {};
  pair->set_faults_left("delay=100us");
  for (std::uint64_t i = 0; i < 16; ++i) {
    const verbs::Sge sge{ours->at(), 64, ours->key};
    ASSERT_EQ(left->sq.post(request(verbs::WrOp::Write, 16 + i, sge, theirs->at(), theirs->key)),
              verbs::Post::Ok);
  }
  pair->left().engine().work_posted(*left, verbs::kPostedSends, pair->now());
  ASSERT_TRUE(run(32));
  EXPECT_EQ(from_right_.acks, 1u);
}

// proves: S-11
TEST_F(RoceCongestion, PacketsWithoutAckRequestAreNotAcknowledged) {
  sim::PairOptions o = with(ib::CongestionRule::Off);
  o.left.roce.send.ack_every = 1000;
  begin(o);
  pair->set_faults_left("rate=1gbit");  // packets arrive one by one, each a burst of its own
  post(*left, verbs::WrOp::Write, 0, 64 * 1024, 0);
  ASSERT_TRUE(run(1));
  EXPECT_EQ(of_right().requests_executed, 64u);
  EXPECT_EQ(from_right_.acks, 1u);
}

// proves: S-11
TEST_F(RoceCongestion, ALostAckCostsOneProbe) {
  ByHand h;
  h.ack_timeout = 17;  // half a second
  begin(with(ib::CongestionRule::Off, true), h);
  pair->set_faults_right("at=loss:1");
  post(*left, verbs::WrOp::Write, 0, 32 * 1024, 0);
  const Instant from = pair->now();
  ASSERT_TRUE(run(1));
  EXPECT_LT(pair->now() - from, Duration::ms(3));
  const RoceStats s = of_left();
  EXPECT_EQ(s.probes_sent, 1u);
  EXPECT_EQ(s.requests_repeated, 1u);
  EXPECT_EQ(s.response_timeouts, 0u);
}

// proves: S-10
TEST_F(RoceCongestion, ASmallWindowSettingLimitsPacketsInFlight) {
  EXPECT_EQ(in_flight_with("16"), 16u);
}

// proves: S-10
TEST_F(RoceCongestion, ALargeWindowSettingAllowsManyPacketsInFlight) {
  EXPECT_EQ(in_flight_with("1000"), 512u) << "all there are";
}

TEST(RoceCongestionSetting, AWindowOutsideItsRangeIsRefused) {
  Config c;
  EXPECT_EQ(device::options_from(c, "mem").roce.send.window, 256u);
  EXPECT_FALSE(c.set("roce_window", "1").ok());
  EXPECT_TRUE(c.set("roce_window", "2").ok());
  EXPECT_TRUE(c.set("roce_window", "16384").ok());
  EXPECT_FALSE(c.set("roce_window", "16385").ok());
}

TEST(RoceCongestionSetting, DefaultsToWindow) {
  Config c;
  const auto rule = [&] { return device::options_from(c, "mem").roce.send.congestion; };
  EXPECT_EQ(rule(), ib::CongestionRule::Window);
  ASSERT_TRUE(c.set("roce_congestion", "dcqcn").ok());
  EXPECT_EQ(rule(), ib::CongestionRule::Dcqcn);
  ASSERT_TRUE(c.set("roce_congestion", "off").ok());
  EXPECT_EQ(rule(), ib::CongestionRule::Off);
  EXPECT_FALSE(c.set("roce_congestion", "cubic").ok());
}

}  // namespace
}  // namespace urnic::test
