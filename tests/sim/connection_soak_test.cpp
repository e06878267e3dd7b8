// Opens and ends connections repeatedly in virtual time: orderly by either side or both at once, by
// RST, by Terminate, refused, and with a peer that disappears silently at any step. Memory and
// tables must stay constant; they are sampled whenever all timers have expired.
//
// URNIC_TEST_SOAK=1: a million connections (./run-tests --all).
#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/rng.h"
#include "sim/pair.h"

namespace urnic::sim {
namespace {

using Kind = engine::CmEvent::Kind;

constexpr unsigned kSamples = 10;
// Bytes by which the allocator and tables that do not shrink may still grow after the first sample.
constexpr std::size_t kSlack = 64 * 1024;

enum class End : unsigned {
  ByLeft,       // FIN
  ByRight,      //
  Both,         // ... crossing on the wire
  LeftAborts,   // RST with requests in progress in both directions
  RightAborts,  //
  Destroyed,    // the queue pair is destroyed while connected
  Terminate,    // the left one writes to a forbidden place
  Rejected,     // the right program rejects it
  Refused,      // no listener
  GoneOpening,  // the left host is cut off after its SYN has arrived,
  GoneAsking,   // ... after its MPA Request has arrived,
  Gone,         // ... at full operation
  Forgot,       // the left host has restarted and lost its state
  Count
};
struct Row {
  const char* name;
  unsigned weight;  // of 1024
};
// Few disappear: while one end waits for the other to give up, all TIME-WAITs end.
constexpr std::array<Row, static_cast<unsigned>(End::Count)> kRows = {{{"orderly by one end", 250},
                                                                       {"by the other", 250},
                                                                       {"by both at once", 150},
                                                                       {"aborted", 80},
                                                                       {"by the other", 80},
                                                                       {"queue pair destroyed", 64},
                                                                       {"Terminate", 46},
                                                                       {"rejected", 46},
                                                                       {"refused", 32},
                                                                       {"vanished opening", 2},
                                                                       {"asking", 2},
                                                                       {"connected", 2},
                                                                       {"started anew", 20}}};

unsigned connections() {
  return std::getenv("URNIC_TEST_SOAK") != nullptr ? 1'000'000 : 10'000;
}

std::size_t heap() {
  const struct mallinfo2 m = mallinfo2();
  return m.uordblks + m.hblkhd;
}

class Churn {
 public:
  Churn() : pair_(options()), left_(20000), right_(20000) {
    listener_ = b().iwarp().listen(7000, 16).value();
  }

  std::array<unsigned, kRows.size()> ended{};
  std::size_t most_connections = 0;  // concurrent ones, including those in TIME-WAIT
  Instant now() const { return pair_.now(); }
  engine::Engine& a() { return pair_.left().engine(); }
  engine::Engine& b() { return pair_.right().engine(); }

  // Runs one connection from the first SYN to its end, and releases everything created for it.
  void one() {
    end_ = draw();
    ++ended[static_cast<unsigned>(end_)];
    open();
    if (!::testing::Test::HasFatalFailure()) finish();
    if (!::testing::Test::HasFatalFailure()) close();
    most_connections = std::max(most_connections, b().iwarp().state().connections.size());
  }

  // Waits until all timers have expired.
  void quiet() {
    pair_.run_for(Duration::s(120));
    collect();
  }

 private:
  static PairOptions options() {
    PairOptions o;
    for (engine::Options* side : {&o.left, &o.right}) {
      side->tcp.time_wait = Duration::s(1);
      side->tcp.data_retries = 5;
    }
    o.completions = 256;
    o.fault_records = 0;
    return o;
  }

  End draw() {
    auto at = static_cast<unsigned>(rng_.below(1024));
    for (unsigned i = 0;; ++i) {
      if (at < kRows[i].weight) return static_cast<End>(i);
      at -= kRows[i].weight;
    }
  }
  bool is(End e) const { return end_ == e; }

  // ---- opening, as far as it gets
  void open() {
    received_ = 0;
    request_ = 0;
    left_end_ = right_end_ = Kind::LastReceive;
    left_qp_ = pair_.left().make_qp(8, 8, 1);
    right_qp_ = pair_.right().make_qp(8, 8, 1);
    constexpr std::uint8_t kRights =
        verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kZeroBased;
    left_key_ = pair_.left().register_memory(left_.data(), left_.size(), kRights);
    right_key_ = pair_.right().register_memory(right_.data(), right_.size(), kRights);
    const verbs::Sge sink{0, 64, right_key_};
    pair_.right().post_receive(*right_qp_, {1, {&sink, 1}}, now());
    engine::ConnectParams ask = a().iwarp().default_params(), answer = b().iwarp().default_params();
    if (rng_.below(2) != 0) {
      answer.context.initiated_as = fastpath::ConnectionType::Slow;
    }
    const std::uint64_t opened = b().iwarp().state().counters.opened;
    const auto to = SocketAddress::parse(is(End::Refused) ? "10.0.0.2:7001" : "10.0.0.2:7000");
    ASSERT_TRUE(a().iwarp().connect(*left_qp_, *to, ask, now()).ok());
    if (is(End::Refused)) return;
    if (is(End::GoneOpening)) {
      ASSERT_TRUE(until([&] { return b().iwarp().state().counters.opened != opened; }));
      return cut_off();
    }
    ASSERT_TRUE(until([&] { return request_ != 0; }));
    if (is(End::GoneAsking)) cut_off();
    if (is(End::Rejected)) return b().iwarp().reject(request_, {}, now());
    ASSERT_TRUE(b().iwarp().accept(request_, *right_qp_, answer, now()).ok());
    if (is(End::GoneAsking)) return;
    ASSERT_TRUE(until([&] {
      return left_qp_->state == verbs::QpState::Rts && right_qp_->state == verbs::QpState::Rts;
    }));
    post(pair_.left(), *left_qp_, verbs::WrOp::Write, 3000, left_key_, right_key_);
    post(pair_.left(), *left_qp_, verbs::WrOp::Send, 64, left_key_, 0);
    ASSERT_TRUE(until([&] { return received_ == 1; }));
  }

  // ---- the end
  void finish() {
    switch (end_) {
      case End::ByLeft:
        return a().iwarp().disconnect(*left_qp_, now());
      case End::ByRight:
        return b().iwarp().disconnect(*right_qp_, now());
      case End::Both:
        a().iwarp().disconnect(*left_qp_, now());
        return b().iwarp().disconnect(*right_qp_, now());
      case End::LeftAborts:
        work_under_way();
        a().iwarp().abort(*left_qp_, now());
        return say_something();
      case End::RightAborts:
        work_under_way();
        return b().iwarp().abort(*right_qp_, now());
      case End::Destroyed:
        work_under_way();
        a().iwarp_control().destroy(left_qp_, now());
        left_qp_ = nullptr;
        return say_something();
      case End::Terminate:
        return post(pair_.left(), *left_qp_, verbs::WrOp::Write, 64, left_key_, right_key_ + 1);
      case End::Gone:
        work_under_way();
        cut_off();
        return say_something();
      case End::Forgot:
        cut_off();
        pair_.run_for(Duration::us(100));
        pair_.set_faults_left("");
        return say_something();
      case End::Rejected:
      case End::Refused:
      case End::GoneOpening:
      case End::GoneAsking:
      case End::Count:
        return;
    }
  }

  void close() {
    const bool right_began = !is(End::Rejected) && !is(End::Refused) && !is(End::GoneOpening);
    EXPECT_TRUE(until([&] {
      return (left_qp_ == nullptr || left_qp_->state == verbs::QpState::Error) &&
             (!right_began || right_qp_->state == verbs::QpState::Error) &&
             listener_->pending() == 0;
    })) << kRows[static_cast<unsigned>(end_)].name;
    pair_.set_faults_left("");
    if (is(End::ByLeft) || is(End::ByRight) || is(End::Both)) {
      EXPECT_EQ(left_end_, Kind::Disconnected);
      EXPECT_EQ(right_end_, Kind::Disconnected);
    }
    if (left_qp_ != nullptr) a().iwarp_control().destroy(left_qp_, now());
    b().iwarp_control().destroy(right_qp_, now());
    EXPECT_TRUE(a().deregister(left_key_));
    EXPECT_TRUE(b().deregister(right_key_));
    collect();
  }

  // Writes, a Read and a Send in both directions, with losses: bytes wait for retransmissions,
  // sinks are open, completions are pending.
  void work_under_way() {
    pair_.set_faults_left("loss=0.3");
    post(pair_.left(), *left_qp_, verbs::WrOp::Read, 8000, left_key_, right_key_);
    post(pair_.left(), *left_qp_, verbs::WrOp::Write, 20000, left_key_, right_key_);
    post(pair_.right(), *right_qp_, verbs::WrOp::Write, 3000, right_key_, left_key_);
    pair_.run_for(Duration::us(rng_.below(40)));
    pair_.set_faults_left("");
  }

  // From now on no packet arrives from the left host, whose program is gone.
  void cut_off() {
    pair_.set_faults_left("loss=1");
    a().iwarp_control().destroy(left_qp_, now());
    left_qp_ = nullptr;
  }

  // An end that only listens may never detect that the other end is gone. A RST that arrived before
  // lost bytes does not tell it either: it triggers a challenge ACK, which is rate limited (RFC
  // 5961 3.2, 7). So this end sends something: it gets no answer, or a RST.
  void say_something() { post(pair_.right(), *right_qp_, verbs::WrOp::Send, 64, right_key_, 0); }

  void post(Node& node, verbs::QueuePair& qp, verbs::WrOp op, std::uint32_t bytes,
            std::uint32_t from, std::uint32_t to) {
    const verbs::Sge sge{0, bytes, from};
    verbs::SendWr wr;
    wr.op = op;
    wr.sges = {&sge, 1};
    wr.rkey = to;
    EXPECT_EQ(node.post_send(qp, wr, now()), verbs::Post::Ok);
  }

  // ---- events and completions of the consumers
  void collect() {
    std::array<verbs::Cqe, 16> done;
    while (pair_.left().poll_send(done) > 0 || pair_.left().poll_receive(done) > 0 ||
           pair_.right().poll_send(done) > 0) {
    }
    for (int n; (n = pair_.right().poll_receive(done)) > 0;) {
      for (int i = 0; i < n; ++i) {
        received_ += done[static_cast<std::size_t>(i)].completion.status == verbs::Status::Success;
      }
    }
    note(pair_.left(), left_qp_, &left_end_);
    note(pair_.right(), right_qp_, &right_end_);
  }
  void note(Node& node, const verbs::QueuePair* qp, Kind* how) {
    for (const engine::CmEvent& e : node.events) {
      if (e.kind == Kind::ConnectRequest) request_ = e.request.id;
      if (e.kind != Kind::Established && e.qp == qp && qp != nullptr) *how = e.kind;
    }
    node.events.clear();
  }
  template <typename Done>
  bool until(Done done) {
    return pair_.run_until(
        [&] {
          collect();
          return done();
        },
        Duration::s(60));
  }

  Pair pair_;
  Rng rng_{27};
  std::vector<std::uint8_t> left_, right_;
  engine::Listener* listener_ = nullptr;
  End end_ = End::ByLeft;
  verbs::QueuePair *left_qp_ = nullptr, *right_qp_ = nullptr;
  std::uint32_t left_key_ = 0, right_key_ = 0;
  engine::ConnectionId request_ = 0;
  Kind left_end_ = Kind::LastReceive, right_end_ = Kind::LastReceive;
  unsigned received_ = 0;
};

std::string text(const engine::EngineTables& t) {
  std::string out;
  const auto add = [&](const char* name, std::uint64_t n) {
    out += (out.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(n);
  };
  add("connections", t.connections);
  add("flows", t.flows);
  add("TIME-WAIT", t.time_wait);
  add("pending", t.pending);
  add("half-open", t.half_open);
  add("queue pairs", t.queue_pairs);
  add("their counters", t.kept_stats);
  add("timers", t.timers);
  add("to send", t.waiting_to_send);
  add("to drain", t.waiting_to_drain);
  add("regions and sinks", t.regions);
  add("reassembly", t.reassembly_bytes);
  add("neighbours", t.neighbours);
  return out;
}

TEST(Connections, MadeAndEndedManyTimesLeaveNothingBehind) {
  Churn churn;
  const unsigned all = connections(), step = all / kSamples;
  engine::EngineTables nothing;
  nothing.neighbours = 1;  // the other host
  std::size_t first = 0;
  std::printf("%11s %13s %14s\n", "connections", "virtual time", "bytes of heap");
  for (unsigned n = 1; n <= all; ++n) {
    churn.one();
    if (HasFailure()) FAIL() << "connection " << n;
    if (n % step != 0) continue;
    churn.quiet();
    const std::size_t now = heap();
    std::printf("%11u %11lld s %14zu\n", n, static_cast<long long>(churn.now().ns() / 1000000000),
                now);
    EXPECT_EQ(text(churn.a().tables()), text(nothing));
    EXPECT_EQ(text(churn.b().tables()), text(nothing));
    if (first == 0) first = now;
    EXPECT_LE(now, first + kSlack);
  }
  std::printf("tables of either end: %s\n", text(churn.b().tables()).c_str());
  for (unsigned i = 0; i < kRows.size(); ++i) {
    std::printf("%s %u%s", kRows[i].name, churn.ended[i], i + 1 == kRows.size() ? "" : ", ");
    EXPECT_GT(churn.ended[i], 0u);
  }
  std::printf("; at most %zu connections at once with those in TIME-WAIT\n",
              churn.most_connections);
}

}  // namespace
}  // namespace urnic::sim
