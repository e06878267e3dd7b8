// Runs of middle packets against single packets: two requesters have the same work, responses and
// time, and only one of them may send runs. The packets sent, and all observable state, must be the
// same after each step.
#include "ib/request_run.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/rng.h"
#include "ib/requester_bench.h"
#include "ib/sack.h"

namespace urnic::ib {
namespace {

using ::testing::ElementsAre;
using verbs::WrOp;

class Hand final : public RequesterBench {
 public:
  explicit Hand(bool short_way) : short_way_(short_way) {}
  void TestBody() override {}

  // Sends up to `budget` packets; the port accepts at most `port` packets of a run.
  std::vector<Bytes> send(std::uint32_t budget, std::uint32_t port, bool may_begin) {
    std::vector<Bytes> all;
    RequestPacket one;
    RequestRun run;
    while (all.size() < budget) {
      const auto most = static_cast<std::uint32_t>(budget - all.size());
      if (short_way_ && r().next_run(most, &run)) {
        take(run, std::min(run.packets, port), &all);
      } else if (r().next_packet(now, may_begin, &one)) {
        Bytes payload(one.length);
        one.copy_payload(payload.data());
        all.push_back(bytes_of(one.header, payload));
      } else {
        break;
      }
    }
    return all;
  }
  // Pieces of these sizes, contiguous in memory.
  void post_pieces(WrOp op, const std::vector<std::uint32_t>& pieces, std::uint8_t flags) {
    verbs::SendWr wr = request(op, 0);
    std::vector<verbs::Sge> sges;
    std::uint32_t at = static_cast<std::uint32_t>(wr.wr_id * 64 % 4096);
    for (const std::uint32_t n : pieces) {
      sges.push_back({reinterpret_cast<std::uintptr_t>(memory.data()) + at, n, lkey});
      at += n + 3;
    }
    wr.sges = sges;
    wr.flags = static_cast<std::uint8_t>(wr.flags | flags);
    wr.immediate = wr.wr_id;
    post(wr);
  }

  // packets in runs; runs; those truncated by the port
  std::uint32_t run_packets = 0, runs = 0, cut = 0;

  // For use by the test.
  using RequesterBench::completions;
  using RequesterBench::held_pool;
  using RequesterBench::kPmtu;
  using RequesterBench::lkey;
  using RequesterBench::now;
  using RequesterBench::pass;
  using RequesterBench::post;
  using RequesterBench::post_atomic;
  using RequesterBench::qp;
  using RequesterBench::r;
  using RequesterBench::response;
  using RequesterBench::rules;
  using RequesterBench::sq;
  using RequesterBench::table;
  Response answer(const ParsedPacket& p) { return RequesterBench::take(p); }

 private:
  static Bytes bytes_of(const PacketHeader& h, ByteView payload) {
    Bytes out(packet_bytes(h.bth.opcode, payload.size()), 0);
    emit_packet(h, payload, out.data());
    return out;
  }
  void take(const RequestRun& run, std::uint32_t n, std::vector<Bytes>* all) {
    ++runs;
    run_packets += n;
    cut += n != run.packets;
    PacketHeader h = run.header;
    for (std::uint32_t i = 0; i < n; ++i) {
      h.bth.psn = run.header.bth.psn + i;
      h.bth.ack_request = run.ask && i + 1 == run.packets;
      all->push_back(bytes_of(h, {run.payload + std::size_t{i} * run.bytes, run.bytes}));
    }
    r().left(run, n, now);
  }

  bool short_way_;
};

// All observable state.
struct View {
  SendPosition una, next, fresh;
  std::uint32_t in_flight, since_ack, window, sent, kept, lost;
  Psn expected_end;
  Instant due, timer, probe, log;
  bool failed, stuck, holds, closed;
  std::uint64_t packets, repeated, acks, probes, cuts, ghosts, timeouts;
  bool operator==(const View&) const = default;
};
View look(Hand& h) {
  const SendState& s = h.r().state();
  const RequesterCounters& c = s.counters;
  SendCredits credits = s.credits;
  return {s.una,
          s.next,
          s.fresh,
          s.in_flight,
          s.since_ack,
          s.window(),
          s.log.size(),
          s.log.kept(),
          s.log.lost(),
          s.expected_end,
          h.r().due(),
          s.timer.due(),
          s.probe.due(),
          s.log.due(),
          s.failure.set,
          s.stuck.set,
          credits.holds(),
          s.congestion.closed(),
          c.packets,
          c.repeated,
          c.acks,
          c.probes,
          s.congestion.counters().cuts,
          c.ghosts,
          c.timeouts};
}

class Both {
 public:
  explicit Both(std::uint64_t seed) : rng_(seed) {
    const bool selective = rng_.chance(0.5), probe = rng_.chance(0.5);
    const bool credits = rng_.chance(0.3), fast = rng_.chance(0.5);
    const auto window = static_cast<std::uint32_t>(rng_.between(1, 60));
    const auto every = static_cast<std::uint32_t>(rng_.between(1, 40));
    const auto rule = static_cast<CongestionRule>(rng_.below(3));
    const auto first = static_cast<std::uint32_t>(rng_.chance(0.5) ? kMask24 - 40 : 100);
    for (Hand* h : {&one_, &many_}) {
      h->qp.selective = h->qp.peer_selective = selective;
      h->qp.probe = probe;
      h->qp.sq_psn = Psn(first);
      if (fast) h->qp.loss.type = ConnectionType::Fast;
      h->rules = {window, every, credits, Duration::zero(), rule};
    }
  }

  void run(int steps) {
    for (step_ = 0; step_ < steps && !::testing::Test::HasFailure(); ++step_) {
      step();
      EXPECT_EQ(look(one_), look(many_)) << "step " << step_;
      EXPECT_EQ(statuses(one_), statuses(many_)) << "step " << step_;
    }
  }
  Hand& many() { return many_; }

 private:
  void step() {
    const std::uint64_t what = rng_.below(20);
    if (what < 4) return post();
    if (what < 12) return send();
    if (what < 16) return answer();
    if (what < 18) return pass();
    if (what == 18 && rng_.chance(0.3)) return notify();
    if (what == 19 && rng_.chance(0.02)) return take_memory_away();
  }
  void post() {
    if (one_.sq.tail() - one_.sq.head() > 100) return;
    constexpr WrOp kOps[] = {WrOp::Write,    WrOp::Write, WrOp::Write,
                             WrOp::WriteImm, WrOp::Send,  WrOp::Read};
    const WrOp op = kOps[rng_.below(std::size(kOps))];
    std::vector<std::uint32_t> pieces;
    for (std::uint64_t n = rng_.between(1, 3); n != 0; --n) {
      pieces.push_back(static_cast<std::uint32_t>(rng_.below(rng_.chance(0.5) ? 12000 : 700)));
    }
    std::uint8_t flags = rng_.chance(0.2) ? verbs::kFence : 0;
    if (op != WrOp::Read && rng_.chance(0.1)) {
      pieces = {static_cast<std::uint32_t>(rng_.below(257))};
      flags |= verbs::kInline;
    }
    for (Hand* h : {&one_, &many_}) h->post_pieces(op, pieces, flags);
  }
  void send() {
    const auto budget = static_cast<std::uint32_t>(rng_.between(1, 40));
    const auto port = static_cast<std::uint32_t>(rng_.chance(0.3) ? rng_.between(1, 3) : 64);
    const bool may_begin = rng_.chance(0.9);
    EXPECT_EQ(one_.send(budget, port, may_begin), many_.send(budget, port, may_begin))
        << "step " << step_;
  }
  // A PSN in flight, or near.
  Psn some_psn() {
    const SendState& s = one_.r().state();
    return s.una.psn + static_cast<std::uint32_t>(rng_.below(s.outstanding() + 1));
  }
  void answer() {
    const Psn p = some_psn();
    const Psn una = one_.r().state().una.psn;
    ParsedPacket packet = Hand::response(Operation::Acknowledge, p.value());
    SackBytes bytes;
    SackWriter sack(&bytes, serial_ + 1);
    switch (rng_.below(12)) {
      case 0:
        packet.header.aeth = {Syndrome::nak(NakCode::SequenceError), Msn(0)};
        break;
      case 1:
        packet.header.aeth = {Syndrome::rnr_nak(1), Msn(0)};
        break;
      case 2:
      case 3:
        if (!one_.qp.peer_selective) return;
        packet.header.bth.opcode = kSackOpcode;
        packet.header.bth.psn = una - 1 + static_cast<std::uint32_t>(rng_.below(2));
        for (std::uint32_t i = 0; i < 30; ++i) {
          if (rng_.chance(0.6)) sack.set(i);
        }
        ++serial_;
        packet.header.aeth = {Syndrome::ack(kNoCredits), Msn(0)};
        packet.payload = sack.payload();
        break;
      default:
        packet.header.aeth = {Syndrome::ack(rng_.chance(0.5) ? kNoCredits : 3),
                              rng_.chance(0.5) ? one_.r().state().ssn : Msn(0)};
    }
    EXPECT_EQ(one_.answer(packet), many_.answer(packet));
  }
  void pass() {
    const Duration d =
        Duration::us(static_cast<std::int64_t>(rng_.below(rng_.chance(0.1) ? 9000 : 80)));
    one_.pass(d);
    many_.pass(d);
  }
  void notify() {
    one_.r().notified(one_.now);
    many_.r().notified(many_.now);
  }
  void take_memory_away() {
    for (Hand* h : {&one_, &many_}) h->table.deregister(h->lkey);
  }
  static std::vector<verbs::Status> statuses(Hand& h) {
    std::vector<verbs::Status> out;
    for (const verbs::Completion& c : h.completions()) out.push_back(c.status);
    return out;
  }

  Rng rng_;
  Hand one_{false}, many_{true};
  std::uint32_t serial_ = 0;
  int step_ = 0;
};

// proves: IB-12, IB-13, IB-15, IB-16, IB-56, IB-69, IB-84, S-5, S-6, S-10
TEST(RequestRun, SendsTheSamePacketsAsOneByOne) {
  std::uint32_t runs = 0, packets = 0, cut = 0;
  for (std::uint64_t seed = 1; seed <= 400 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Both both(seed);
    both.run(300);
    runs += both.many().runs;
    packets += both.many().run_packets;
    cut += both.many().cut;
  }
  // Otherwise the test has shown nothing.
  EXPECT_GT(runs, 10'000u);
  EXPECT_GT(packets, 2 * runs);
  EXPECT_GT(cut, 500u);
}

class RunAlone : public RequesterBench {
 protected:
  // The length of the next run; 0: there is none.
  std::uint32_t run(std::uint32_t most = 1000) {
    run_ = {};
    return r().next_run(most, &run_) ? run_.packets : 0;
  }
  RequestRun run_;
};

// proves: IB-12
TEST_F(RunAlone, BeginsAfterTheFirstPacketAndEndsBeforeTheLast) {
  post(WrOp::Write, 20 * kPmtu);
  EXPECT_EQ(run(), 0u);
  leave(1);
  EXPECT_EQ(run(7), 7u);
  EXPECT_EQ(run(), 18u);
  EXPECT_FALSE(run_.ask);
  EXPECT_EQ(run_.header.bth.psn, Psn(101));
  EXPECT_EQ(run_.payload, memory.data() + kPmtu);
  EXPECT_EQ(r().counters().packets, 1u) << "nothing has left yet";
  r().left(run_, 18, now);
  EXPECT_EQ(r().counters().packets, 19u);
  EXPECT_EQ(run(), 0u);
  EXPECT_THAT(operations(leave()), ElementsAre(Operation::WriteLast));
}

}  // namespace
}  // namespace urnic::ib
