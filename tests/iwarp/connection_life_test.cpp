// Connections that end during their start-up, in every way, at every step and on either side. Other
// connections must not be affected.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/iwarp/hand_wire.h"

namespace urnic::iwarp {
namespace {

using test::Bytes;
using test::HandWire;
using test::WireSegment;
using Kind = CmEvent::Kind;

constexpr std::uint16_t kInnocent = 7000, kVictim = 7001;

// The event that hits the victim at one of the frames of its start-up.
enum class Fate : std::uint8_t {
  ResetReceiver,  // a RST arrives at the receiver of the frame, and then the frame
  ResetSender,
  FinReceiver,  // the frame carries a FIN
  FinSender,
  Vanish,  // from then on its frames are lost in both directions
  LeftDestroys,
  LeftAborts,
  LeftDisconnects,
  RightClosesListener,
  RightDestroys,
};
constexpr Fate kFates[] = {Fate::ResetReceiver, Fate::ResetSender,     Fate::FinReceiver,
                           Fate::FinSender,     Fate::Vanish,          Fate::LeftDestroys,
                           Fate::LeftAborts,    Fate::LeftDisconnects, Fate::RightClosesListener,
                           Fate::RightDestroys};

// Three established connections, and the victim.
class Life {
 public:
  explicit Life(bool consumer_waits) : consumer_waits_(consumer_waits) {
    EXPECT_TRUE(right().iwarp().listen(kInnocent, 16));
    listener_ = right().iwarp().listen(kVictim, 16).value();
    memory_.resize(kRegion);
    stag_ = w.right.node->register_memory(memory_.data(), memory_.size(),
                                          verbs::kLocalWrite | verbs::kRemoteWrite);
    for (int i = 0; i < 3; ++i) open_innocent();
  }

  engine::Engine& left() { return w.left.engine(); }
  engine::Engine& right() { return w.right.engine(); }

  void open_innocent() {
    auto* a = w.left.node->make_qp();
    EXPECT_TRUE(left()
                    .iwarp()
                    .connect(*a, *SocketAddress::parse("10.0.0.2:7000"),
                             left().iwarp().default_params(), w.now)
                    .ok());
    const std::size_t before = accepted_.size();
    EXPECT_TRUE(w.run_until(
        [&] {
          answer();
          return accepted_.size() > before && a->state == verbs::QpState::Rts &&
                 accepted_.back()->state == verbs::QpState::Rts;
        },
        Duration::s(5)));
    innocents_.push_back({a, accepted_.empty() ? nullptr : accepted_.back()});
  }

  // The victim connects, and `fate` happens at its frame `step`. Returns false if there were fewer
  // frames: then the victim is established, or has ended by itself.
  bool strike(Fate fate, unsigned step) {
    unsigned seen = 0;
    bool gone = false, struck = false;
    w.watch = [&, fate, step](Bytes frame, bool to_right) -> std::vector<Bytes> {
      const auto s = WireSegment::of(frame);
      if (!s || !s->of_port(kVictim)) return {std::move(frame)};
      if (gone) return {};
      if (seen++ != step) return {std::move(frame)};
      struck = true;
      const MacAddress receiver = (to_right ? right() : left()).interface().mac();
      const MacAddress sender = s->net.src_mac;
      tcp::Segment f = s->seg;
      switch (fate) {
        case Fate::ResetReceiver:
          f.flags = tcp::kRst | tcp::kAck;
          f.opts = {};
          return {forge(*s, false, receiver, f, {}), std::move(frame)};
        case Fate::FinReceiver:
          f.flags |= tcp::kFin;
          return {forge(*s, false, receiver, f, s->seg.payload)};
        case Fate::ResetSender:
        case Fate::FinSender:
          std::swap(f.src_port, f.dst_port);
          f.opts = {};
          f.flags = static_cast<std::uint8_t>(tcp::kAck |
                                              (fate == Fate::FinSender ? tcp::kFin : tcp::kRst));
          f.seq = s->seg.has(tcp::kAck) ? s->seg.ack : tcp::Seq(0);
          f.ack = s->seg.seq + s->length();
          w.send(forge(*s, true, sender, f, {}), !to_right);
          return {std::move(frame)};
        case Fate::Vanish:
          gone = true;
          return {};
        default:  // the consumer's actions, outside the burst
          consumer_strikes_ = true;
          return {std::move(frame)};
      }
    };
    victim_ = w.left.node->make_qp();
    EXPECT_TRUE(left()
                    .iwarp()
                    .connect(*victim_, *SocketAddress::parse("10.0.0.2:7001"),
                             left().iwarp().default_params(), w.now)
                    .ok());
    w.run_until(
        [&] {
          if (!consumer_waits_ || struck) answer();
          if (consumer_strikes_) act(fate);
          return false;
        },
        Duration::s(2));
    w.run_until(
        [&] {
          answer();
          return false;
        },
        Duration::s(60));
    w.watch = {};
    return struck;
  }

  // An action of the consumer.
  void act(Fate fate) {
    consumer_strikes_ = false;
    if (fate == Fate::LeftDestroys) {
      left().iwarp_control().destroy(victim_, w.now);
      victim_ = nullptr;
    }
    if (fate == Fate::LeftAborts) left().iwarp().abort(*victim_, w.now);
    if (fate == Fate::LeftDisconnects) left().iwarp().disconnect(*victim_, w.now);
    if (fate == Fate::RightClosesListener && listener_ != nullptr) {
      right().iwarp().close_listener(listener_, w.now);
      listener_ = nullptr;
    }
    if (fate == Fate::RightDestroys) {
      for (verbs::QueuePair*& qp : victims_accepted_) right().iwarp_control().destroy(qp, w.now);
      victims_accepted_.clear();
    }
  }

  // The right consumer accepts every request.
  void answer() {
    auto& events = w.right.node->events;
    for (; !events.empty(); events.pop_front()) {
      const CmEvent& e = events.front();
      if (e.kind != Kind::ConnectRequest) continue;
      const bool innocent = listener_ == nullptr || e.listener != listener_;
      auto* qp = w.right.node->make_qp();
      const bool ok =
          right().iwarp().accept(e.request.id, *qp, right().iwarp().default_params(), w.now).ok();
      if (!ok) continue;
      (innocent ? accepted_ : victims_accepted_).push_back(qp);
    }
  }

  void innocents_work(const std::string& when) {
    std::set<const void*> places;
    std::set<ConnectionId> names;
    for (std::size_t i = 0; i < innocents_.size(); ++i) {
      const Innocent& n = innocents_[i];
      for (auto [engine, qp] : {std::pair{&left(), n.left}, std::pair{&right(), n.right}}) {
        ASSERT_EQ(qp->state, verbs::QpState::Rts) << when;
        const Connection* c = engine->iwarp().find(qp->connection);
        ASSERT_NE(c, nullptr) << when << ": a queue pair without its connection";
        ASSERT_EQ(c->qp, qp) << when << ": a place given twice";
        ASSERT_TRUE(places.insert(c).second) << when;
        if (engine == &left()) {
          ASSERT_TRUE(names.insert(c->id).second) << when;
        }
      }
      Bytes data(200, static_cast<std::uint8_t>(++mark_));
      const std::uint64_t at = reinterpret_cast<std::uintptr_t>(memory_.data()) + i * 256;
      const std::uint32_t own = w.left.node->register_memory(data.data(), data.size(), 0);
      const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(data.data()), 200, own};
      verbs::SendWr wr;
      wr.op = verbs::WrOp::Write;
      wr.flags = verbs::kSignaled;
      wr.sges = {&sge, 1};
      wr.rkey = stag_;
      wr.remote_address = at;
      w.left.node->drain_completions();
      const std::size_t before = w.left.node->send_done.size();
      ASSERT_EQ(w.left.node->post_send(*n.left, wr, w.now), verbs::Post::Ok) << when;
      ASSERT_TRUE(w.run_until(
          [&] {
            w.left.node->drain_completions();
            return w.left.node->send_done.size() > before && memory_[i * 256 + 199] == data[199];
          },
          Duration::s(10)))
          << when << ": no completion";
      ASSERT_EQ(w.left.node->send_done.back().completion.status, verbs::Status::Success) << when;
      left().deregister(own);
    }
  }

  verbs::QueuePair* first_left() const { return innocents_[0].left; }
  // Posts a Write on each connection. It need not be received.
  void post_to_all() {
    for (const Innocent& n : innocents_) {
      verbs::SendWr wr;
      wr.op = verbs::WrOp::Write;
      w.left.node->post_send(*n.left, wr, w.now);
    }
  }
  void destroy_all() {
    for (const Innocent& n : innocents_) left().iwarp_control().destroy(n.left, w.now);
    innocents_.clear();
  }

  HandWire w;
  verbs::QueuePair* victim_ = nullptr;
  std::vector<verbs::QueuePair*> victims_accepted_;

 private:
  struct Innocent {
    verbs::QueuePair *left, *right;
  };
  static constexpr std::size_t kRegion = 4096;
  bool consumer_waits_;
  bool consumer_strikes_ = false;
  Listener* listener_ = nullptr;
  std::vector<verbs::QueuePair*> accepted_;
  std::vector<Innocent> innocents_;
  Bytes memory_;
  std::uint32_t stag_ = 0;
  unsigned mark_ = 0;
};

std::string states(const engine::Engine& engine) {
  EngineStats stats;
  engine.fill_stats(&stats);
  std::string all;
  for (const ConnectionStats& s : stats.connections) all += " " + s.peer + " " + s.state;
  return all;
}

struct EveryStep : ::testing::TestWithParam<std::tuple<Fate, bool>> {};

TEST_P(EveryStep, OfAStartupCanFailWithoutHarmToOtherConnections) {
  const auto [fate, consumer_waits] = GetParam();
  for (unsigned step = 0; step < 64; ++step) {
    Life life(consumer_waits);
    const std::string when = "step " + std::to_string(step);
    const bool struck = life.strike(fate, step);
    life.innocents_work(when);
    if (HasFatalFailure()) return;
    // Each side knows what happened to the victim.
    if (life.victim_ != nullptr) {
      const verbs::QpState s = life.victim_->state;
      EXPECT_TRUE(s == verbs::QpState::Error || s == verbs::QpState::Rts) << when << verbs::name(s);
      EXPECT_EQ(s == verbs::QpState::Rts,
                life.left().iwarp().find(life.victim_->connection) != nullptr)
          << when;
    }
    std::size_t up = 0;
    for (const verbs::QueuePair* qp : life.victims_accepted_) {
      up += qp->state == verbs::QpState::Rts || qp->state == verbs::QpState::Rtr;
    }
    EXPECT_EQ(life.right().tables().connections - life.right().tables().time_wait, 3 + up)
        << when << states(life.right()) << " left:" << states(life.left());
    const engine::EngineTables l = life.left().tables();
    EXPECT_EQ(l.connections, l.flows);
    EXPECT_LE(l.connections - l.time_wait, 4u) << when;
    EXPECT_EQ(life.right().tables().pending, 0u) << when;
    // Slots are reused, each by one connection.
    for (int i = 0; i < 4; ++i) life.open_innocent();
    life.innocents_work(when + ", after others have come");
    if (HasFatalFailure() || HasNonfatalFailure() || !struck) {
      EXPECT_GT(step, 4u) << "a start-up has more frames than that";
      return;
    }
  }
  FAIL() << "the start-up never came to its end";
}

std::string name_of(const ::testing::TestParamInfo<EveryStep::ParamType>& info) {
  static constexpr const char* kNames[] = {
      "ResetReceiver", "ResetSender", "FinReceiver",     "FinSender",           "Vanish",
      "LeftDestroys",  "LeftAborts",  "LeftDisconnects", "RightClosesListener", "RightDestroys"};
  return std::string(kNames[static_cast<std::size_t>(std::get<0>(info.param))]) +
         (std::get<1>(info.param) ? "WhileARequestWaits" : "");
}
INSTANTIATE_TEST_SUITE_P(ConnectionLife, EveryStep,
                         ::testing::Combine(::testing::ValuesIn(kFates), ::testing::Bool()),
                         name_of);

// ---- no state for forged SYNs

struct Spoofed : ::testing::TestWithParam<const char*> {};

// SYNs from an address that no reply can reach: outside our networks, or without a host.
TEST_P(Spoofed, SynsLeaveNoState) {
  HandWire w;
  ASSERT_TRUE(w.right.engine().iwarp().listen(kVictim, 128));
  const engine::EngineTables before = w.right.engine().tables();
  WireSegment from;
  from.net.src_mac = MacAddress{{2, 0, 0, 0, 0, 9}};
  from.net.dst = *IpAddress::parse("10.0.0.2");
  for (std::uint32_t i = 0; i < 160; ++i) {
    from.net.src = *IpAddress::parse(GetParam() + std::to_string(10 + i));
    tcp::Segment syn;
    syn.flags = tcp::kSyn;
    syn.seq = tcp::Seq(i * 7919);
    syn.src_port = static_cast<std::uint16_t>(10000 + i);
    syn.dst_port = kVictim;
    w.send(forge(from, false, w.right.engine().interface().mac(), syn, {}), true);
    if (i % 16 == 15) w.run_for(Duration::us(50));
  }
  w.run_for(Duration::s(20));
  engine::EngineTables after = w.right.engine().tables();
  EXPECT_EQ(after.connections, 0u);
  EXPECT_EQ(after.half_open, 0u);
  EXPECT_EQ(after.pending, 0u);
  EXPECT_EQ(after.flows, before.flows);
  EXPECT_LE(after.timers, 1u);
  w.run_for(Duration::s(60));  // no timers are left either
  EXPECT_EQ(w.right.engine().tables().timers, 0u);
}
INSTANTIATE_TEST_SUITE_P(ConnectionLife, Spoofed, ::testing::Values("192.168.7.", "10.0.0."),
                         [](const auto& p) { return p.param[1] == '9' ? "OffNet" : "Unused"; });

// The peer loses power, and the consumer destroys the connections: the RST cannot be sent, and that
// must not delay the end.
TEST(ConnectionLife, ConnectionsOfAPeerThatIsGoneAreFreedWhenDestroyed) {
  Life life(false);
  auto& w = life.w;
  w.watch = [](Bytes, bool) -> std::vector<Bytes> { return {}; };
  // Data without acknowledgement makes the engine look for its neighbour, without success.
  life.post_to_all();
  w.run_for(Duration::s(30));
  life.destroy_all();
  w.run_for(Duration::s(5));
  EXPECT_EQ(life.left().tables().connections, 0u);
  w.run_for(Duration::s(60));  // no timers are left
  EXPECT_EQ(life.left().tables().timers, 0u);
}

// ---- statistics

// Iterating in pieces visits every connection once that exists all the time, even if others open
// and close.
TEST(ConnectionLife, StatisticsCanBeReadInPieces) {
  HandWire w;
  ASSERT_TRUE(w.right.engine().iwarp().listen(kVictim, 64));
  engine::Engine& left = w.left.engine();
  std::vector<verbs::QueuePair*> qps;
  const auto connect = [&] {
    qps.push_back(w.left.node->make_qp());
    ASSERT_TRUE(left.iwarp()
                    .connect(*qps.back(), *SocketAddress::parse("10.0.0.2:7001"),
                             left.iwarp().default_params(), w.now)
                    .ok());
    w.run_for(Duration::ms(1));
  };
  for (int i = 0; i < 20; ++i) connect();
  std::vector<std::uint32_t> numbers;
  for (const verbs::QueuePair* qp : qps) numbers.push_back(qp->number());
  std::multiset<std::uint32_t> seen;
  engine::StatsPlace place;
  std::vector<ConnectionStats> some;
  for (int piece = 0; add_connections(left, &place, 3, &some); ++piece) {
    EXPECT_LE(some.size(), 3u);
    for (const ConnectionStats& c : some) seen.insert(c.qp_number);
    some.clear();
    if (piece != 2) continue;
    for (const int gone : {0, 15})
      left.iwarp_control().destroy(qps[static_cast<std::size_t>(gone)], w.now);
    w.run_for(Duration::ms(1));
    connect();
  }
  EXPECT_LE(some.size(), 3u);
  for (const ConnectionStats& c : some) seen.insert(c.qp_number);
  for (std::size_t i = 0; i < 20; ++i) {
    if (i == 0 || i == 15) continue;
    EXPECT_EQ(seen.count(numbers[i]), 1u) << i;
  }
  EngineStats all;
  left.fill_stats(&all);
  EXPECT_EQ(all.connections.size(), 19u);
}

// ---- timers

// Connections that open and close faster than their deadlines leave a bounded list.
// proves: E-50
TEST(ConnectionLife, TimersOfEndedConnectionsAreRemoved) {
  HandWire w;
  const auto to = *SocketAddress::parse("10.0.0.2:9");  // no listener there
  engine::Engine& left = w.left.engine();
  verbs::QueuePair* qp = w.left.node->make_qp();
  for (std::size_t i = 1; i <= 4000; ++i) {
    ASSERT_TRUE(left.iwarp().connect(*qp, to, left.iwarp().default_params(), w.now).ok());
    w.run_for(Duration::us(50));
    left.iwarp_control().destroy(qp, w.now);
    qp = w.left.node->make_qp();
    ASSERT_LE(left.tables().timers, 1024u + 16) << i;
  }
  EXPECT_EQ(left.tables().connections, 0u);
  w.run_for(Duration::s(60));
  EXPECT_EQ(left.tables().timers, 0u);
  ASSERT_TRUE(left.iwarp().connect(*qp, to, left.iwarp().default_params(), w.now).ok());
}

// ---- max_connections

TEST(ConnectionLife, BeyondTheirLimitConnectionsAreRefusedAtOnce) {
  engine::Options options;
  options.max_connections = 2;
  HandWire w(options);
  ASSERT_TRUE(w.right.engine().iwarp().listen(kVictim, 16));
  const auto to = *SocketAddress::parse("10.0.0.2:7001");
  engine::Engine& left = w.left.engine();
  std::vector<verbs::QueuePair*> qps;
  for (int i = 0; i < 2; ++i) {
    qps.push_back(w.left.node->make_qp());
    ASSERT_TRUE(left.iwarp().connect(*qps.back(), to, left.iwarp().default_params(), w.now).ok());
  }
  const auto third =
      left.iwarp().connect(*w.left.node->make_qp(), to, left.iwarp().default_params(), w.now);
  ASSERT_FALSE(third.ok());
  EXPECT_NE(third.error().message.find("max_connections"), std::string::npos);
  ASSERT_TRUE(w.run_until([&] { return w.right.node->events.size() == 2; }, Duration::s(1)));
  // The other side is full as well: a new connection is refused at once, and no state is kept.
  std::vector<Bytes> answers;
  w.watch = [&](Bytes f, bool to_right) -> std::vector<Bytes> {
    if (!to_right) answers.push_back(f);
    return {std::move(f)};
  };
  WireSegment from;
  from.net.src_mac = w.left.engine().interface().mac();
  from.net.src = *IpAddress::parse("10.0.0.1");
  from.net.dst = *IpAddress::parse("10.0.0.2");
  tcp::Segment syn;
  syn.flags = tcp::kSyn;
  syn.src_port = 33;
  syn.dst_port = kVictim;
  w.send(forge(from, false, w.right.engine().interface().mac(), syn, {}), true);
  w.run_for(Duration::ms(1));
  // Among the frames between the two there is one reply to the forged SYN.
  std::erase_if(answers, [](const Bytes& f) {
    const auto a = WireSegment::of(f);
    return !a || a->seg.dst_port != 33;
  });
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(WireSegment::of(answers[0])->seg.has(tcp::kRst));
  EXPECT_EQ(w.right.engine().tables().connections, 2u);
  // After one has ended, another may connect.
  left.iwarp_control().destroy(qps[0], w.now);
  w.run_for(Duration::ms(10));
  EXPECT_TRUE(
      left.iwarp().connect(*w.left.node->make_qp(), to, left.iwarp().default_params(), w.now).ok());
  EXPECT_TRUE(w.run_until([&] { return w.right.node->events.size() == 3; }, Duration::s(1)));
}

// ---- requests that need no byte

// A local invalidation that fails is the last request: nothing will be cut for it.
TEST(ConnectionLife, ARequestThatFailsWithoutAByteEndsTheStream) {
  Life life(false);
  verbs::QueuePair* qp = life.first_left();
  verbs::SendWr wr;
  wr.wr_id = 9;
  wr.op = verbs::WrOp::LocalInv;
  wr.flags = verbs::kSignaled;
  wr.inv_key = 0x12345678;
  ASSERT_EQ(life.w.left.node->post_send(*qp, wr, life.w.now), verbs::Post::Ok);
  EXPECT_TRUE(life.w.run_until([&] { return qp->state >= verbs::QpState::Sqe; }, Duration::s(1)));
  life.w.left.node->drain_completions();
  ASSERT_FALSE(life.w.left.node->send_done.empty());
  EXPECT_EQ(life.w.left.node->send_done.back().completion.wr_id, 9u);
  EXPECT_EQ(life.w.left.node->send_done.back().completion.status, verbs::Status::LocalProtection);
}

}  // namespace
}  // namespace urnic::iwarp
