// Every message in every state: the next state, the messages sent, the events of the owner. And the
// same messages with random changes.
#include <gmock/gmock.h>

#include <optional>

#include "base/rng.h"
#include "ib_cm/end.h"

namespace urnic::ib_cm {
namespace {

using test::attributes_of;
using test::kinds_of;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

constexpr std::uint64_t kTransaction = 0x1234;  // of the REQ that a passive end receives
constexpr std::uint32_t kPeerId = 0x4444, kPeerQpn = 0x55, kOwnQpn = 0x66;

// One end, brought to a state by its owner and by handmade MADs.
class StatesTest : public ::testing::Test {
 protected:
  struct Made {
    test::End end{3};
    Handle h = 0;
    std::uint64_t transaction = kTransaction;  // of the current exchange
    Instant now = Instant::from_ns(1000);

    void take(const Mad& m) { end.manager.take(end.to(test::host(2)), m, now); }
    Connections& c() { return end.manager.connections(); }
    const Connection* connection() { return end.manager.find(h); }
  };

  static Mad req() {
    std::array<std::uint8_t, kIpHeaderBytes> ip;
    write_ip_header({test::host(2), test::host(3), 1}, ip.data());
    Req r;
    r.local_id = kPeerId;
    r.service = test::kService;
    r.qpn = kPeerQpn;
    r.pkey = 0xffff;
    r.path_mtu = 3;
    r.remote_timeout = r.local_timeout = 20;
    r.max_cm_retries = 15;
    r.primary.local = gid_of(test::host(2));
    r.primary.remote = gid_of(test::host(3));
    r.primary.ack_timeout = 19;
    r.private_data = ip;
    return write(kTransaction, r);
  }
  static Mad rep(const Made& m) {
    Rep r;
    r.local_id = kPeerId;
    r.remote_id = m.h;
    r.qpn = kPeerQpn;
    return write(m.transaction, r);
  }
  static QpValues values() { return {kOwnQpn, ib::Psn(1), 1, 1, 7, false, false}; }

  static std::unique_ptr<Made> make(State s, bool active) {
    auto m = std::make_unique<Made>();
    m->end.manager.listen({test::kService, {}, Transport::Rc, 4});
    if (active) {
      m->h = *m->c().connect(m->end.connect_to(test::host(2), kOwnQpn), {}, m->now);
      m->transaction = read_header(m->end.mads().at(0).mad)->transaction;
      if (s != State::ReqSent) m->take(rep(*m));
      if (s == State::Refused) m->c().reject(m->h, Reason::Consumer, {}, m->now);
      if (s != State::ReqSent && s != State::RepReceived) m->c().confirm(m->h, {});
    } else {
      m->take(req());
      m->h = m->end.events().at(0).handle;
      if (s == State::Refused) m->c().reject(m->h, Reason::Consumer, {}, m->now);
      if (s != State::ReqReceived) m->c().accept(m->h, values(), {}, m->now);
      if (s != State::ReqReceived && s != State::RepSent)
        m->take(write_rtu(1, {kPeerId, m->h, {}}));
    }
    if (s == State::DreqSent || s == State::TimeWait) m->c().disconnect(m->h, {}, m->now);
    if (s == State::DreqSent) m->transaction = m->connection()->transaction;
    if (s == State::TimeWait)
      m->take(write_drep(m->connection()->transaction, {kPeerId, m->h, {}}));
    m->end.mads();
    m->end.events();
    EXPECT_EQ(m->connection()->state, s);
    return m;
  }

  static Mad message(const Made& m, const char* which) {
    const std::string w = which;
    if (w == "REQ") return req();
    if (w == "MRA of REQ") return write(m.transaction, Mra{kPeerId, m.h, Which::Req, 20, {}});
    if (w == "MRA of REP") return write(m.transaction, Mra{kPeerId, m.h, Which::Rep, 20, {}});
    if (w == "REJ") return write(m.transaction, Rej{kPeerId, m.h, Which::Req, Reason::Consumer});
    if (w == "REP") return rep(m);
    if (w == "RTU") return write_rtu(m.transaction, {kPeerId, m.h, {}});
    if (w == "DREQ") return write(99, Dreq{kPeerId, m.h, kOwnQpn, {}});
    return write_drep(m.transaction, {kPeerId, m.h, {}});
  }
};

struct Cell {
  const char* message;
  std::optional<State> becomes;  // nullopt: it is released
  std::vector<Attribute> sent;
  std::vector<EventKind> told;
};
struct StateRow {
  State state;
  bool active;
  std::vector<Cell> cells;  // a combination not listed is dropped and counted
};

std::vector<StateRow> table() {
  using enum EventKind;
  using A = Attribute;
  using S = State;
  const Cell again_dreq = {"DREQ", S::TimeWait, {A::Drep}, {}};
  return {
      {S::ReqSent,
       true,
       {{"REP", S::RepReceived, {}, {Accepted}},
        {"REJ", {}, {}, {Rejected, Released}},
        {"MRA of REQ", S::ReqSent, {}, {}},
        {"REQ", S::ReqSent, {}, {ConnectRequest}}}},
      {S::RepReceived,
       true,
       {{"REP", S::RepReceived, {A::Mra}, {}},
        {"REJ", S::TimeWait, {}, {Rejected}},
        {"DREQ", S::TimeWait, {A::Drep}, {Disconnected}},
        {"REQ", S::TimeWait, {A::Rej}, {Rejected}}}},
      {S::ReqReceived,
       false,
       {{"REQ", S::ReqReceived, {A::Mra}, {}}, {"REJ", {}, {}, {Rejected, Released}}}},
      {S::RepSent,
       false,
       {{"REQ", S::RepSent, {A::Rep}, {}},
        {"RTU", S::Established, {}, {Established}},
        {"MRA of REP", S::RepSent, {}, {}},
        {"REJ", S::TimeWait, {}, {Rejected}},
        {"DREQ", S::TimeWait, {A::Drep}, {Disconnected}}}},
      {S::Established,
       true,
       {{"REP", S::Established, {A::Rtu}, {}},
        {"REJ", S::TimeWait, {}, {Disconnected}},
        {"DREQ", S::TimeWait, {A::Drep}, {Disconnected}},
        {"REQ", S::DreqSent, {A::Dreq, A::Rej}, {Disconnected}}}},
      {S::Established,
       false,
       {{"REJ", S::TimeWait, {}, {Disconnected}},
        {"DREQ", S::TimeWait, {A::Drep}, {Disconnected}}}},
      {S::DreqSent,
       false,
       {{"DREP", S::TimeWait, {}, {Disconnected}},
        {"DREQ", S::TimeWait, {A::Drep}, {Disconnected}},
        {"REJ", S::TimeWait, {}, {Disconnected}},
        {"REQ", S::DreqSent, {A::Rej}, {}}}},
      {S::TimeWait, false, {again_dreq, {"REQ", S::TimeWait, {A::Rej}, {}}}},
      {S::TimeWait, true, {again_dreq, {"REQ", S::TimeWait, {A::Rej}, {}}}},
      {S::Refused,
       true,
       {{"REP", S::Refused, {A::Rej}, {}},
        {"REQ", S::Refused, {A::Rej}, {}},
        {"DREQ", S::Refused, {A::Drep}, {}}}},
      {S::Refused, false, {{"REQ", S::Refused, {A::Rej}, {}}, {"RTU", S::Refused, {A::Rej}, {}}}},
  };
}
constexpr const char* kMessages[] = {"REQ", "MRA of REQ", "MRA of REP", "REJ",
                                     "REP", "RTU",        "DREQ",       "DREP"};

TEST_F(StatesTest, EveryMessageHasTheEffectInTheTable) {
  for (const StateRow& row : table()) {
    for (const char* which : kMessages) {
      SCOPED_TRACE(std::to_string(static_cast<int>(row.state)) +
                   (row.active ? " active, " : " passive, ") + which);
      const auto m = make(row.state, row.active);
      const std::uint64_t stale = m->end.manager.counters().stale;
      Cell want = {which, row.state, {}, {}};
      bool dropped = true;
      for (const Cell& cell : row.cells) {
        if (std::string(cell.message) != which) continue;
        want = cell;
        dropped = false;
      }
      m->take(message(*m, which));
      std::uint64_t drops = 0;
      for (std::size_t d = 0; d < kDrops; ++d) {
        drops += m->end.manager.counters().of(static_cast<Drop>(d));
      }
      EXPECT_EQ(drops, dropped ? 1u : 0u);
      EXPECT_LE(m->end.manager.counters().stale, stale + 1);
      EXPECT_THAT(attributes_of(m->end.mads()), ElementsAreArray(want.sent));
      EXPECT_THAT(kinds_of(m->end.events()), ElementsAreArray(want.told));
      const Connection* const c = m->connection();
      ASSERT_EQ(c != nullptr, want.becomes.has_value());
      if (c != nullptr) {
        EXPECT_EQ(c->state, *want.becomes);
      }
    }
  }
}

// With any bytes of a MAD replaced or made up: every event of the owner can be answered, each MAD
// causes at most two, and everything ends.
TEST_F(StatesTest, RandomMessagesDoNoHarm) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    const auto rows = table();
    const StateRow& row = rows[rng.below(rows.size())];
    const auto m = make(row.state, row.active);
    for (int i = 0; i < 60; ++i) {
      Mad mad = message(*m, kMessages[rng.below(std::size(kMessages))]);
      mad[17] = static_cast<std::uint8_t>(rng.chance(0.3) ? 0x10 + rng.below(11) : mad[17]);
      for (std::uint64_t n = rng.below(4); n != 0; --n) {
        mad[rng.below(mad.size())] = static_cast<std::uint8_t>(rng.next());
      }
      const std::size_t bytes = rng.chance(0.9) ? mad.size() : rng.below(mad.size());
      const test::Bytes exact(mad.begin(), mad.begin() + static_cast<std::ptrdiff_t>(bytes));
      m->end.manager.take(m->end.to(test::host(rng.chance(0.9) ? 2 : 7)), exact, m->now);
      ASSERT_LE(m->end.mads().size(), 3u) << "seed " << seed;
      for (const Event& e : m->end.events()) {
        if (e.kind == EventKind::ConnectRequest && rng.chance(0.7)) {
          m->c().accept(e.handle, {0x100 + static_cast<std::uint32_t>(i)}, {}, m->now);
        }
        if (e.kind == EventKind::Accepted) m->c().confirm(e.handle, {});
      }
      if (rng.chance(0.1) && !m->end.manager.due().is_never()) {
        m->end.manager.on_time(m->now = m->end.manager.due());
      }
    }
    ASSERT_LE(m->end.manager.size(), 62u) << "seed " << seed;
    for (int i = 0; i < 10'000 && !m->end.manager.due().is_never(); ++i) {
      m->end.manager.on_time(m->now = m->end.manager.due());
      m->end.mads();
      m->end.events();
    }
    ASSERT_TRUE(m->end.manager.due().is_never()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace urnic::ib_cm
