// Two simulated engines whose RoCE queue pairs are connected by connection management.
#pragma once

#include <algorithm>
#include <string>

#include "tests/roce/engine_ends.h"

namespace urnic::test {

inline ByteView view(const std::string& s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

class RoceConnectEnds : public RoceEnds {
 protected:
  using Kind = engine::CmEvent::Kind;

  static roce::Connections& connections(sim::Node& n) {
    return n.engine().roce_control().connections();
  }
  static roce::Listener* listen(sim::Node& n, const std::string& at, int backlog = 8,
                                bool v6_only = false) {
    roce::Listeners& all = connections(n).listeners();
    auto bound = all.bind({*SocketAddress::parse(at), v6_only, false});
    return bound && all.listen(bound.value(), backlog) ? bound.value() : nullptr;
  }
  void open(const sim::PairOptions& o = both()) {
    pair = std::make_unique<sim::Pair>(o);
    left = pair->left().make_roce_qp();
    if (o.right.speaks_roce) {
      right = pair->right().make_roce_qp();
      listener = listen(pair->right(), "[::]:7000");
      ASSERT_NE(listener, nullptr);
    }
  }
  static roce::ConnectParams wish(std::uint32_t ird = 4, std::uint32_t ord = 4) {
    roce::ConnectParams p;
    p.ird = ird;
    p.ord = ord;
    return p;
  }
  Result<void> ask(const roce::ConnectParams& p = wish()) {
    return connections(pair->left())
        .connect(*left, *SocketAddress::parse(v6 ? "[fd00::2]:7000" : "10.0.0.2:7000"), p,
                 pair->now());
  }
  // Runs until the right end has a connection request.
  bool asked(Duration limit = Duration::s(60)) {
    return pair->run_until([&] { return !pair->right().roce_requests.empty(); }, limit);
  }
  Result<void> answer(const roce::ConnectParams& p = wish()) {
    const auto handle = pair->right().roce_requests.back().id;
    return connections(pair->right()).accept(handle, *right, p, pair->now());
  }
  static std::size_t told(const sim::Node& n, Kind kind) {
    return static_cast<std::size_t>(std::count_if(n.events.begin(), n.events.end(),
                                                  [&](const auto& e) { return e.kind == kind; }));
  }
  // Events of the connection, without TimeWaitOver.
  static std::size_t news(const sim::Node& n) {
    return n.events.size() - told(n, Kind::TimeWaitOver);
  }
  static const engine::CmEvent* find(const sim::Node& n, Kind kind) {
    const auto at = std::find_if(n.events.begin(), n.events.end(),
                                 [&](const auto& e) { return e.kind == kind; });
    return at == n.events.end() ? nullptr : &*at;
  }
  bool until(sim::Node& n, Kind kind, Duration limit = Duration::s(60)) {
    return pair->run_until([&] { return told(n, kind) != 0; }, limit);
  }
  // Runs until both ends are established.
  bool established(Duration limit = Duration::s(60)) {
    return until(pair->left(), Kind::Established, limit) &&
           until(pair->right(), Kind::Established, limit);
  }
  void connected() {
    open();
    ASSERT_TRUE(ask().ok());
    ASSERT_TRUE(asked());
    ASSERT_TRUE(answer().ok());
    ASSERT_TRUE(established());
  }
  // Checks that a message arrives in each direction.
  void expect_carries() {
    rooms(8192);
    post(*left, verbs::WrOp::Write, 1, 5000, 0);
    post(*left, verbs::WrOp::Read, 2, 3192, 5000);
    ASSERT_TRUE(run(2));
    for (const auto& c : pair->left().send_done)
      EXPECT_EQ(c.completion.status, verbs::Status::Success);
    EXPECT_TRUE(ours->bytes == theirs->bytes);
  }
  engine::EngineTables tables(sim::Node& n) { return n.engine().tables(); }
  // Checks that everything with a timeout has ended.
  void expect_nothing_left() {
    pair->run_for(Duration::s(300));
    for (sim::Node* n : {&pair->left(), &pair->right()}) {
      const engine::EngineTables t = tables(*n);
      EXPECT_EQ(t.roce_connections, 0u);
      EXPECT_EQ(t.cm_connections, 0u);
      EXPECT_EQ(t.numbers_in_time_wait, 0u);
    }
  }

  bool v6 = false;
  roce::Listener* listener = nullptr;
};

}  // namespace urnic::test
