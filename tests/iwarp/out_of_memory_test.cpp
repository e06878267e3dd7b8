// Memory that runs out within a burst ends only the current connection
// (docs/decisions/out-of-memory.md). Two connections run from start to end on a lossy wire, and
// each allocation of an engine fails once.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>

#include "iwarp/hand_wire.h"
#include "tests/support/allocator.h"
#include "tests/support/hand_peer.h"

namespace urnic::test {
namespace {

using engine::CmEvent;
using verbs::Sge;
using verbs::WrOp;

constexpr std::uint8_t kRights = verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead;
constexpr std::uint32_t kSize = 20000;  // of each Write, Send and Read
constexpr std::uint16_t kPort = 7000;

// One connection with both ends, and its work.
struct Line {
  Line(HandWire& wire, std::uint8_t seed) : from(3 * kSize), to(3 * kSize) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      from[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + seed);
    }
    // The data for the Read comes from the other side.
    std::copy(from.begin() + 2 * kSize, from.end(), to.begin() + 2 * kSize);
    std::fill(from.begin() + 2 * kSize, from.end(), std::uint8_t{0});
    source = wire.left.node->register_memory(from.data(), from.size(), kRights);
    sink = wire.right.node->register_memory(to.data(), to.size(), kRights);
    left = wire.left.node->make_qp(8, 8);
    right = wire.right.node->make_qp(8, 8);
  }
  void post_receive(HandWire& wire) const {
    const Sge into{address(to, 1), kSize, sink};
    EXPECT_TRUE(wire.right.node->post_receive(*right, {9, {&into, 1}}, wire.now));
  }
  void post_sends(HandWire& wire) {
    posted = true;
    for (const WrOp op : {WrOp::Write, WrOp::Send, WrOp::Read}) {
      const std::size_t part = op == WrOp::Write ? 0 : op == WrOp::Send ? 1 : 2;
      const Sge sge{address(from, part), kSize, source};
      verbs::SendWr wr;
      wr.wr_id = part;
      wr.op = op;
      wr.flags = verbs::kSignaled;
      wr.sges = {&sge, 1};
      wr.remote_address = address(to, part);
      wr.rkey = sink;
      EXPECT_EQ(wire.left.node->post_send(*left, wr, wire.now), verbs::Post::Ok);
    }
  }
  static std::uintptr_t address(const std::vector<std::uint8_t>& of, std::size_t part) {
    return reinterpret_cast<std::uintptr_t>(of.data()) + part * kSize;
  }

  std::vector<std::uint8_t> from, to;
  std::uint32_t source = 0, sink = 0;
  verbs::QueuePair *left, *right;
  bool posted = false, accepted = false;
};

// How a queue pair ended, if it has.
struct End {
  bool ended = false, failed = false;
  Errc code = Errc::closed;
};

// Two engines in virtual time. One of them gets no memory while it polls its port: after the first
// `after` allocations, `many` fail.
class Turns {
 public:
  Turns(const engine::Options& o, bool right, std::uint64_t after, std::uint64_t many)
      : wire_(o), right_(right), plan_(after, many) {
    plan_.pause();
    EXPECT_TRUE(wire_.right.engine().iwarp().listen(kPort, 8));
  }
  std::uint64_t refused() const { return plan_.failed(); }

 protected:
  static constexpr unsigned kNever = ~0u;
  // Runs longer than every timeout of the start-up and of a stuck end. One of every `lost` frames
  // is lost.
  void live(unsigned lost, const std::function<void(HandWire::Host&)>& take_events) {
    for (const Instant end = wire_.now + Duration::s(60); wire_.now < end;) {
      bool any = carry(wire_.left, true, lost);
      any = carry(wire_.right, false, lost) || any;
      any = poll(wire_.left, !right_) || any;
      any = poll(wire_.right, right_) || any;
      take_events(wire_.left);
      take_events(wire_.right);
      const Instant next =
          earlier(wire_.left.engine().next_deadline(), wire_.right.engine().next_deadline());
      wire_.now =
          any ? wire_.now + Duration::us(1)
              : std::max(std::min(next, wire_.now + Duration::s(1)), wire_.now + Duration::us(1));
    }
  }

  HandWire wire_;

 private:
  bool poll(HandWire::Host& host, bool fails) {
    if (fails) plan_.resume();
    bool any = false;
    EXPECT_NO_THROW(any = host.engine().poll(wire_.now));
    plan_.pause();
    return any;
  }
  bool carry(HandWire::Host& from, bool to_right, unsigned lost) {
    port::Frame frames[port::kBurst];
    const unsigned n = from.wire.rx_burst(0, frames, port::kBurst);
    for (unsigned i = 0; i < n; ++i) {
      Bytes f(frames[i].data[0], frames[i].data[0] + frames[i].len[0]);
      f.insert(f.end(), frames[i].data[1], frames[i].data[1] + frames[i].len[1]);
      if (++frames_ % lost != 0) wire_.send(f, to_right);
    }
    from.wire.rx_release(0, frames, n);
    return n != 0;
  }

  const bool right_;
  testing::NoMemory plan_;
  unsigned frames_ = 0;
};

class Lives : public Turns {
 public:
  // In the engine at `right` or at the left, `many` allocations fail after the first `after`.
  Lives(bool right, std::uint64_t after, std::uint64_t many)
      : Turns(options(), right, after, many), lines{Line(wire_, 1), Line(wire_, 2)} {
    for (std::uint8_t i = 0; i < 2; ++i) connect(i);
    live(23, [&](HandWire::Host& host) { take_events(host); });
    for (auto* host : {&wire_.left, &wire_.right}) {
      EXPECT_EQ(host->engine().iwarp().state().connections.size(), 0u);
      EXPECT_EQ(host->engine().iwarp().state().ends_waiting, 0u);
    }
  }

  Lives(const Lives&) = delete;
  Lives& operator=(const Lives&) = delete;

  std::map<const verbs::QueuePair*, End> ends;
  std::map<std::uint32_t, int> completions;  // per queue pair

  std::array<Line, 2> lines;

 private:
  static engine::Options options() {
    engine::Options o;
    o.context.initiated_as = fastpath::ConnectionType::Slow;  // needs memory more often
    o.keepalive = true;  // a RST may be lost, and a program that waits for a Read sends nothing
    o.keepalive_idle = Duration::s(5);
    o.gate.most_of_peer = 8;  // stored for each address
    return o;
  }
  void connect(std::uint8_t number) {
    const SocketAddress there{IpAddress::v4(10, 0, 0, 2), kPort};
    auto& engine = wire_.left.engine();
    engine::ConnectParams params = engine.iwarp().default_params();
    params.private_data = {number};
    EXPECT_TRUE(engine.iwarp().connect(*lines[number].left, there, params, wire_.now).ok());
  }
  void take_events(HandWire::Host& host) {
    for (auto& events = host.node->events; !events.empty(); events.pop_front()) {
      const CmEvent& e = events.front();
      if (e.kind == CmEvent::Kind::ConnectRequest) {
        accept(e);
      } else if (e.kind == CmEvent::Kind::Established) {
        for (Line& line : lines) {
          if (line.left == e.qp) line.post_sends(wire_);
        }
      } else if (e.kind != CmEvent::Kind::LastReceive) {
        ends[e.qp] = {true, e.kind != CmEvent::Kind::Disconnected, e.code};
      }
    }
    std::array<verbs::Cqe, 8> done;
    for (const bool send : {true, false}) {
      for (;;) {
        const int n = send ? host.node->poll_send(done) : host.node->poll_receive(done);
        if (n <= 0) break;
        for (int i = 0; i < n; ++i) take(done[static_cast<std::size_t>(i)], host);
      }
    }
  }
  void take(const verbs::Cqe& done, HandWire::Host& host) {
    ++completions[done.qp_number];
    if (&host != &wire_.left) return;
    for (const Line& line : lines) {
      // The last of three requests: the connection closes in order.
      if (line.left->number() == done.qp_number && done.completion.wr_id == 2 &&
          done.completion.status == verbs::Status::Success) {
        wire_.left.engine().iwarp().disconnect(*line.left, wire_.now);
      }
    }
  }
  void accept(const CmEvent& e) {
    auto& engine = wire_.right.engine();
    if (engine.iwarp().find(e.request.id) == nullptr) return;  // it has failed in the meantime
    ASSERT_EQ(e.request.private_data.size(), 1u);
    Line& line = lines[e.request.private_data[0]];
    line.post_receive(wire_);
    const auto params = engine.iwarp().default_params();
    const auto accepted = engine.iwarp().accept(e.request.id, *line.right, params, wire_.now);
    line.accepted = true;
    EXPECT_TRUE(accepted.ok());
  }
};

// Holds for every run. Returns true if the run was the same as without a failed allocation.
bool well(const Lives& lives, const Line& line, bool right) {
  const auto end_of = [&](const verbs::QueuePair* qp) {
    const auto it = lives.ends.find(qp);
    return it != lives.ends.end() ? it->second : End{};
  };
  const auto completed = [&](const verbs::QueuePair* qp) {
    const auto it = lives.completions.find(qp->number());
    return it != lives.completions.end() ? it->second : 0;
  };
  const End left = end_of(line.left), other = end_of(line.right);
  EXPECT_TRUE(left.ended);
  EXPECT_EQ(other.ended, line.accepted);
  EXPECT_EQ(completed(line.left), line.posted ? 3 : 0);
  EXPECT_EQ(completed(line.right), line.accepted ? 1 : 0);
  if (!left.failed && !other.failed) {
    EXPECT_EQ(line.from, line.to);
    return line.from == line.to;
  }
  const End& own = right ? other : left;
  if (own.ended) {
    EXPECT_TRUE(own.failed);
    EXPECT_EQ(own.code, Errc::no_memory);
  }
  return false;
}

struct OutOfMemory : ::testing::TestWithParam<bool> {};

// proves: E-50
TEST_P(OutOfMemory, OneFailedAllocationEndsAtMostOneConnection) {
  int ended = 0;
  for (std::uint64_t k = 0;; ++k) {
    SCOPED_TRACE("allocation " + std::to_string(k));
    const Lives lives(GetParam(), k, 1);
    const int whole =
        well(lives, lives.lines[0], GetParam()) + well(lives, lives.lines[1], GetParam());
    EXPECT_GE(whole, 1);
    ended += 2 - whole;
    if (lives.refused() == 0) {
      EXPECT_EQ(whole, 2);
      EXPECT_GT(k, 20u);  // otherwise nothing was tested
      break;
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(ended, 5);
}

// The same with a longer shortage: every end is reported when there is memory again.
// proves: E-50
TEST_P(OutOfMemory, ManyFailedAllocationsLeaveEveryEndReportedAndNoState) {
  for (std::uint64_t k = 0;; k += 3) {
    SCOPED_TRACE("from allocation " + std::to_string(k));
    const Lives lives(GetParam(), k, 40);
    for (const Line& line : lives.lines) well(lives, line, GetParam());
    if (lives.refused() == 0 || HasFailure()) break;
  }
}

// Data that waits for a receive continues when one is posted, or its connection ends. It is never
// left unprocessed.
// proves: E-50
TEST(OutOfMemoryPost, AReceiveWithoutMemoryToResumeEndsItsConnection) {
  HandPeer p;
  p.options.receive_wait = Duration::s(60);
  const auto slow = [](engine::ConnectParams& c) {
    c.context.initiated_as = fastpath::ConnectionType::Slow;
  };
  ASSERT_TRUE(p.up(slow));
  p.send(0, HandPeer::send_message(1, Bytes(100, 5)));
  ASSERT_EQ(p.stats().iwarp.receive_waits, 1u);
  const Sge sge{p.to(20000), 900, p.stag};
  ASSERT_EQ(p.qp->rq.post({77, {&sge, 1}}), verbs::ReceiveQueue::Post::Ok);
  {
    const testing::NoMemory plan(0, testing::NoMemory::kForEver);
    EXPECT_NO_THROW(p.node().engine().iwarp().receives_posted(*p.qp, p.now));
    EXPECT_GT(plan.failed(), 0u);
  }
  p.pass(Duration::ms(20));
  EXPECT_EQ(p.qp->state, verbs::QpState::Error);
  ASSERT_EQ(p.receives().size(), 1u);
  EXPECT_EQ(p.receives()[0].completion.status, verbs::Status::Flushed);
}

// A responder that only knows revision 1 gets a second attempt, by a connection that needs memory.
// Counts the reports to the queue pair.
class SecondAttempt : public Turns {
 public:
  SecondAttempt(std::uint64_t after, std::uint64_t many)
      : Turns(options(), false, after, many),
        left_(wire_.left.node->make_qp(8, 8)),
        right_(wire_.right.node->make_qp(8, 8)) {
    iwarp::Side& side = wire_.left.engine().iwarp();
    engine::ConnectParams params = wire_.left.engine().iwarp().default_params();
    params.mpa.revision = 2;
    const SocketAddress there{IpAddress::v4(10, 0, 0, 2), kPort};
    EXPECT_TRUE(side.connect(*left_, there, params, wire_.now).ok());
    live(kNever, [&](HandWire::Host& host) { take_events(host); });
    EXPECT_EQ(side.state().connections.size(), 0u);
    EXPECT_EQ(left_->state, verbs::QpState::Error);
  }
  unsigned established = 0, failed = 0, ended = 0;

 private:
  static engine::Options options() {
    engine::Options o;
    o.mpa.revision = 1;
    return o;
  }
  void take_events(HandWire::Host& host) {
    for (auto& events = host.node->events; !events.empty(); events.pop_front()) {
      const CmEvent& e = events.front();
      if (e.kind == CmEvent::Kind::ConnectRequest) {
        (void)host.engine().iwarp().accept(e.request.id, *right_,
                                           host.engine().iwarp().default_params(), wire_.now);
      }
      if (e.qp != left_) continue;
      const bool up = e.kind == CmEvent::Kind::Established;
      if (up) host.engine().iwarp().disconnect(*left_, wire_.now);
      ++(up ? established : ended);
      if (e.kind == CmEvent::Kind::ConnectFailed) {
        ++failed;
        EXPECT_EQ(e.code, Errc::no_memory) << e.message;
      }
    }
  }

  verbs::QueuePair *left_, *right_;
};

// proves: E-50
TEST(OutOfMemorySecondAttempt, ItsQueuePairGetsOneResult) {
  unsigned failed = 0;
  for (const std::uint64_t many : {1u, 40u}) {
    for (std::uint64_t k = 0;; ++k) {
      SCOPED_TRACE(std::to_string(many) + " from allocation " + std::to_string(k));
      const SecondAttempt life(k, many);
      EXPECT_EQ(life.established + life.failed, 1u);
      EXPECT_EQ(life.ended, 1u);
      failed += life.failed;
      if (life.refused() == 0 || HasFailure()) break;
    }
  }
  EXPECT_GT(failed, 10u);
}

INSTANTIATE_TEST_SUITE_P(Engine, OutOfMemory, ::testing::Values(false, true),
                         [](const auto& side) { return side.param ? "Responder" : "Initiator"; });

}  // namespace
}  // namespace urnic::test
