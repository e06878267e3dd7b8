// InLogic before the real admit, place and deliver: Writes and Sends into registered memory, out of
// order, with receives posted late, downgrades and upgrades in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "ddp_rdma/stream.h"
#include "fastpath/hole_counters.h"
#include "fastpath/in_logic.h"
#include "mpa/fpdu.h"
#include "reassembly/extract.h"
#include "tcp/holes.h"
#include "tests/fastpath/fpdu_maker.h"

namespace urnic::testing {
namespace {

using fastpath::Outcome;

constexpr verbs::PdId kPd = 1;
constexpr std::uint32_t kReceive = 2048;  // octets of one posted receive
constexpr std::uint32_t kSends = 60;

struct Fpdu {
  std::uint64_t begin, end;
};

// What the peer sends, and what must come of it.
struct Script {
  Octets bytes;
  std::vector<Fpdu> fpdus;
  Octets written;             // the region Writes go to
  std::vector<Octets> sends;  // in order
};

class Peer {
 public:
  Peer(Rng& rng, std::uint32_t stag, std::uint64_t to) : rng_(rng), stag_(stag), to_(to) {}

  Script script(std::size_t messages) {
    for (std::size_t i = 0; i < messages; ++i) {
      if (s_.sends.size() < kSends && rng_.chance(0.6)) {
        send();
      } else {
        write();
      }
    }
    return std::move(s_);
  }

 private:
  void emit(const ddp::SegmentHeader& h, ByteView payload) {
    std::uint8_t header[ddp::kMaxHeader];
    const std::uint32_t n = ddp::emit_header(h, header);
    Octets ulpdu(header, header + n);
    append(ulpdu, payload);
    const std::uint64_t begin = s_.bytes.size();
    append(s_.bytes, make_fpdu(ulpdu));
    s_.fpdus.push_back({begin, s_.bytes.size()});
  }
  void send() {
    const Octets data = random_octets(rng_, rng_.below(kReceive + 1));
    ddp::SegmentHeader h;
    h.op = ddp::Opcode::Send;
    h.msn = static_cast<std::uint32_t>(s_.sends.size() + 1);
    std::uint32_t at = 0;
    do {
      const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(700, data.size() - at));
      h.mo = at;
      h.last = at + n == data.size();
      emit(h, ByteView(data).subspan(at, n));
      at += n;
    } while (at < data.size());
    s_.sends.push_back(data);
  }
  void write() {
    const Octets data = random_octets(rng_, 1 + rng_.below(1500));
    ddp::SegmentHeader h;
    h.op = ddp::Opcode::Write;
    h.stag = stag_;
    for (std::size_t at = 0; at < data.size(); at += 700) {
      const std::size_t n = std::min<std::size_t>(700, data.size() - at);
      h.to = to_ + s_.written.size() + at;
      h.last = at + n == data.size();
      emit(h, ByteView(data).subspan(at, n));
    }
    append(s_.written, data);
  }

  Rng& rng_;
  std::uint32_t stag_;
  std::uint64_t to_;
  Script s_;
};

enum class Got { Taken, Stored, Dropped, NoReceive, Ignored };

struct Receiver {
  explicit Receiver(const fastpath::ContextConfig& config)
      : region(256 * 1024, 0), receives(kSends * kReceive, 0) {
    context.config = config;
    context.type = config.initiated_as;
    context.upgrade_needed = config.upgrade_after;
    ddp::StreamConfig sc;
    sc.pd = kPd;
    stream = std::make_unique<ddp::Stream>(sc, &shared);
    stag = table.register_memory(kPd, region.data(), region.size(),
                                 verbs::kLocalWrite | verbs::kRemoteWrite);
    receive_stag = table.register_memory(kPd, receives.data(), receives.size(), verbs::kLocalWrite);
  }
  std::uint64_t to() const { return reinterpret_cast<std::uintptr_t>(region.data()); }

  void post_one() {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(receives.data()) + posted * kReceive,
                         kReceive, receive_stag};
    verbs::RecvWr wr;
    wr.wr_id = posted;
    wr.sges = {&sge, 1};
    stream->rq.post(wr);
    ++posted;
  }

  Got arrive(std::uint64_t begin, ByteView payload) {
    const StreamOffset b(begin), e = b + payload.size();
    if (!list.any_new(b, e)) return Got::Ignored;
    fastpath::validate(payload, validation);
    fastpath::SegmentFacts f;
    f.arrival = !list.all_new(b, e)   ? tcp::Arrival::Overlap
                : b == list.rcv_nxt() ? tcp::Arrival::InOrder
                                      : tcp::Arrival::OutOfOrder;
    f.at_rcv_nxt = b == list.rcv_nxt();
    f.sn = tcp::Seq(static_cast<std::uint32_t>(begin));
    f.reassembly_empty = buffer.empty();
    f.validation = &validation;
    // Overlaps are the other test's; here they are left to the retransmission that fits.
    if (f.arrival == tcp::Arrival::Overlap && context.type == fastpath::ConnectionType::Fast) {
      return Got::Ignored;
    }
    const fastpath::Verdict v = fastpath::decide(context, f);
    switch (v.outcome) {
      case Outcome::Keep:  // E-41: not with `place`, which all of these run
        ADD_FAILURE() << "a detour";
        return Got::Ignored;
      case Outcome::Drop:
        fastpath::apply(context, v, f);
        return Got::Dropped;
      case Outcome::Fast: {
        const Got got = cut_through(b, payload, f.at_rcv_nxt);
        if (got == Got::Taken) fastpath::apply(context, v, f);
        return got;
      }
      case Outcome::Downgrade:
        fastpath::apply(context, v, f);
        ++downgrades;
        list.forget();
        counters.discard();
        buffer.reset(list.rcv_nxt());
        break;
      case Outcome::Store:
        fastpath::apply(context, v, f);
        break;
    }
    store(b, payload);
    return Got::Stored;
  }

  // All FPDUs are admitted before the first is placed (E-5).
  Got cut_through(StreamOffset b, ByteView payload, bool in_order) {
    ddp::Admitter admitter(*stream, in_order);
    std::vector<ddp::Admission> all;
    for (const auto& frame : validation.frames) {
      all.push_back(admitter.next(mpa::ulpdu_of(payload.subspan(frame.offset, frame.length))));
      if (all.back().what == ddp::Admit::NoReceive) return Got::NoReceive;
      EXPECT_EQ(all.back().what, ddp::Admit::Place);
      if (all.back().what != ddp::Admit::Place) return Got::Ignored;
    }
    ddp::MessageCounts ends, own;
    for (const ddp::Admission& a : all) ends += ddp::place(*stream, a);
    const auto behind = counters.on_commit(list.insert(b, b + payload.size()), ends, &own);
    deliver(own);
    deliver(behind);
    return Got::Taken;
  }

  void store(StreamOffset b, ByteView payload) {
    while (!payload.empty()) {
      std::size_t n = 0;
      while (n < payload.size() && list.all_new(b, b + (n + 1))) ++n;
      if (n != 0) {
        ASSERT_TRUE(buffer.store(b, payload.first(n), b == list.rcv_nxt()));
        ddp::MessageCounts own;
        counters.on_commit(list.insert(b, b + n), {}, &own);
      }
      const std::size_t skip = std::max<std::size_t>(n, 1);
      payload = payload.subspan(skip);
      b += skip;
    }
    drain();
  }

  void drain() {
    ByteView ulpdu;
    std::uint32_t len = 0;
    while (extractor.next(buffer, list.rcv_nxt(), &ulpdu, &len) == reassembly::Extracted::Fpdu) {
      const ddp::Admission a = ddp::Admitter(*stream, true).next(ulpdu);
      ASSERT_EQ(a.what, ddp::Admit::Place) << "receives are posted before SLOW needs them";
      const ddp::MessageCounts ends = ddp::place(*stream, a);
      buffer.consume(buffer.read_position() + len);
      deliver(ends);
    }
  }

  void deliver(const ddp::MessageCounts& counts) {
    const auto violation = ddp::deliver(
        *stream, counts, [&](const verbs::Completion& c) { completions.push_back(c); });
    EXPECT_EQ(violation, ddp::Violation::None);
  }

  bool complete(const Script& s) const {
    const bool fast = context.type == fastpath::ConnectionType::Fast;
    return (fast ? list.rcv_nxt() : buffer.read_position()) == StreamOffset(s.bytes.size());
  }

  Octets region, receives;
  std::uint32_t stag = 0, receive_stag = 0;
  std::uint64_t posted = 0;
  std::uint32_t downgrades = 0;
  verbs::MemoryTable table;
  ddp::SharedState shared{&table};
  std::unique_ptr<ddp::Stream> stream;
  tcp::HoleList list;
  fastpath::ConnectionContext context;
  fastpath::HoleCounters counters;
  fastpath::Validation validation;
  reassembly::Pool pool{64u << 20};
  reassembly::Buffer buffer{&pool, 1u << 20};
  reassembly::Extractor extractor;
  std::vector<verbs::Completion> completions;
};

void expect_result(const Receiver& r, const Script& s) {
  EXPECT_TRUE(std::equal(s.written.begin(), s.written.end(), r.region.begin()));
  ASSERT_EQ(r.completions.size(), s.sends.size());
  for (std::size_t i = 0; i < s.sends.size(); ++i) {
    EXPECT_EQ(r.completions[i].wr_id, i) << "R-109: in MSN order";
    EXPECT_EQ(r.completions[i].byte_len, s.sends[i].size());
    const auto at = r.receives.begin() + static_cast<std::ptrdiff_t>(i * kReceive);
    EXPECT_TRUE(std::equal(s.sends[i].begin(), s.sends[i].end(), at));
  }
}

TEST(RdmaReceiver, R113_R114_R115_NoReceiveDropsLeaveNoTraceAndAreNoRecoveryAttempt) {
  Rng rng(1);
  fastpath::ContextConfig config;
  config.max_recovery_attempts = 1;
  Receiver r(config);
  const Script s = Peer(rng, r.stag, r.to()).script(20);
  ASSERT_FALSE(s.sends.empty());
  const auto first_send = std::ranges::find_if(s.fpdus, [&](const Fpdu& f) {
    return (s.bytes[f.begin + 3] & 0x0f) == static_cast<int>(ddp::Opcode::Send);
  });
  ASSERT_NE(first_send, s.fpdus.end());
  const ByteView piece =
      ByteView(s.bytes).subspan(first_send->begin, first_send->end - first_send->begin);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(r.arrive(first_send->begin, piece), Got::NoReceive);
  }
  EXPECT_EQ(r.context.recovery_attempts, 0u);
  EXPECT_EQ(r.context.same_count, 0u);
  EXPECT_EQ(r.context.type, fastpath::ConnectionType::Fast);
  EXPECT_EQ(r.list.size(), 0u);
  EXPECT_TRUE(std::ranges::all_of(r.receives, [](std::uint8_t b) { return b == 0; }));
  while (r.posted < kSends) r.post_one();
  EXPECT_EQ(r.arrive(first_send->begin, piece), Got::Taken);
  for (const Fpdu& f : s.fpdus) {
    r.arrive(f.begin, ByteView(s.bytes).subspan(f.begin, f.end - f.begin));
  }
  ASSERT_TRUE(r.complete(s));
  expect_result(r, s);
}

class RdmaReceiverNetwork : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RdmaReceiverNetwork, R102_AnyArrivalGivesTheSameMemoryAndCompletions) {
  SCOPED_TRACE(::testing::Message() << "seed " << GetParam());
  Rng rng(GetParam());
  fastpath::ContextConfig config;
  config.max_recovery_attempts = static_cast<std::uint32_t>(1 + rng.below(8));
  config.upgrade_after = static_cast<std::uint32_t>(1 + rng.below(3));
  if (rng.chance(0.1)) config.initiated_as = fastpath::ConnectionType::Slow;
  Receiver r(config);
  const Script s = Peer(rng, r.stag, r.to()).script(90);
  // Either all receives are there, or they come late on a connection that nothing makes SLOW.
  const bool late = config.initiated_as == fastpath::ConnectionType::Fast && rng.chance(0.4);
  const bool cutting = !late && rng.chance(0.5);
  while (!late && r.posted < kSends) r.post_one();
  std::uint64_t no_receive = 0;
  for (int arrivals = 0; !r.complete(s); ++arrivals) {
    ASSERT_LT(arrivals, 50000) << "no end";
    const std::uint64_t una = r.list.rcv_nxt().value();
    auto f = std::ranges::find_if(s.fpdus, [&](const Fpdu& x) { return x.end > una; });
    if (rng.chance(0.6))
      f += static_cast<std::ptrdiff_t>(
          rng.below(std::min<std::uint64_t>(10, static_cast<std::uint64_t>(s.fpdus.end() - f))));
    std::uint64_t begin = f->begin, end = f->end;
    if (rng.chance(0.3) && f + 1 != s.fpdus.end()) end = (f + 1)->end;
    if (cutting && rng.chance(0.1)) end = begin + 1 + rng.below(end - begin);
    const Got got = r.arrive(begin, ByteView(s.bytes).subspan(begin, end - begin));
    if (::testing::Test::HasFailure()) return;
    if (got == Got::NoReceive) {
      ++no_receive;
      if (r.posted < kSends && rng.chance(0.3)) r.post_one();
    }
  }
  if (late) {
    EXPECT_GT(no_receive, 0u);
    EXPECT_EQ(r.downgrades, 0u);
  }
  expect_result(r, s);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RdmaReceiverNetwork, ::testing::Range<std::uint64_t>(1, 201));

}  // namespace
}  // namespace urnic::testing
