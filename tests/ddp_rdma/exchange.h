// Two streams connected to each other: random messages in both directions over a wire that cuts,
// repeats, reorders and forgets. Every result is compared with the request.
#pragma once

#include "ddp_rdma/stream.h"

#include <gtest/gtest.h>

#include <array>

#include "ddp_rdma/stream_pair.h"

namespace urnic::ddp::test {

inline constexpr std::uint32_t kIrd = 5, kOrd = 4;

struct Options {
  std::uint32_t first_msn = 1;
  bool out_of_order = false;
  bool must_cut = false;  // segments may end anywhere
  bool invalidations = true;
  int messages = 300;
  std::uint32_t max_len = 9000;
  mpa::Policy policy = mpa::Policy::NoMarkers;
};

class Exchange {
 public:
  Exchange(std::uint64_t seed, const Options& o) : o_(o), rng_(seed) {
    for (int i = 0; i < 2; ++i) {
      StreamConfig c;
      c.id = 3 + static_cast<StreamId>(i);
      c.pd = 7;
      c.max_send_wr = 24;
      c.max_recv_wr = 13;
      c.keep_below = rng_.chance(0.3) ? 4000 : 256;
      c.max_inline = 300;
      c.pack_partial = rng_.chance(0.3);
      peers_.push_back(std::make_unique<Peer>(c, o.first_msn));
      Peer& p = *peers_.back();
      p.source = random_bytes(rng_, kArena);
      p.readable = random_bytes(rng_, 1 << 16);
      p.writable = p.expected = random_bytes(rng_, kArena);
      p.landing.resize(kArena);
      p.receives.resize(kArena);
      p.source_key = p.end.add(p.source, 0);
      p.readable_key = p.end.add(p.readable, kRemoteRead);
      p.writable_key = p.end.add(p.writable, kLocalWrite | kRemoteWrite | kZeroBased);
      p.landing_key = p.end.add(p.landing, kLocalWrite);
      p.receives_key = p.end.add(p.receives, kLocalWrite);
      p.counters_key =
          p.end.memory.register_memory(c.pd, reinterpret_cast<std::uint8_t*>(p.counters.data()),
                                       sizeof p.counters, kLocalWrite | verbs::kRemoteAtomic);
      p.end.stream.set_limits(kIrd, kOrd);
      // Any position in the grid is valid: the first FPDU lies at offset 0.
      p.out.framing = {o.policy, static_cast<std::uint32_t>(rng_.below(1u << 30)) * 4};
      p.end.stream.sender.set_framing(p.out.framing);
      p.end.stream.sender.start(true);
    }
  }

  void run() {
    int posted = 0;
    while (posted < o_.messages && !::testing::Test::HasFailure()) {
      const std::size_t i = rng_.below(2);
      switch (rng_.below(8)) {
        case 0:
          posted += post(i) ? 1 : 0;
          break;
        case 1:
          post_receive(i);
          break;
        case 2:
        case 3:
          transmit(i);
          break;
        case 4:
          retransmit(i);
          break;
        case 5:
          acknowledge(i, false);
          break;
        case 6:
          receive(i);
          break;
        default:
          if (o_.out_of_order) reorder(i);
          break;
      }
    }
    for (int k = 0; k < 20000 && !settled() && !::testing::Test::HasFailure(); ++k) {
      for (std::size_t i = 0; i < 2; ++i) {
        transmit(i);
        if (peer(i).posted_receives.size() < 3) post_receive(i);
        receive(i);
        acknowledge(i, true);
      }
    }
    ASSERT_FALSE(::testing::Test::HasFailure());
    ASSERT_TRUE(settled());
    for (std::size_t i = 0; i < 2; ++i) check_end(i);
  }

  // The most Reads outstanding at one time.
  std::uint64_t most_reads() const { return std::max(peers_[0]->max_reads, peers_[1]->max_reads); }
  std::uint64_t placed_early() const { return placed_early_; }
  std::uint64_t repeated() const { return repeated_; }

 private:
  static constexpr std::size_t kArena = 4 << 20;

  struct Asked {
    std::uint64_t id;
    WrOp op;
    bool signaled;
    std::uint64_t at;  // within its slice of `source` or `landing`
    std::uint32_t len;
    std::uint64_t remote;        // Read: offset in the other's `readable`
    std::uint64_t original = 0;  // atomic: the old value
  };
  struct Coming {
    std::vector<std::uint8_t> bytes;
    bool solicited;
    std::uint32_t inv_stag;
    bool with_immediate;
    std::uint64_t immediate;
  };
  struct Posted {
    std::uint64_t id;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> pieces;
  };
  struct Peer {
    Peer(const StreamConfig& c, std::uint32_t first_msn) : end(c, first_msn) {}
    std::vector<std::uint8_t> source, readable, writable, expected, landing, receives;
    std::uint32_t source_key = 0, readable_key = 0, writable_key = 0, landing_key = 0,
                  receives_key = 0, counters_key = 0;
    // Changed only by the other end's atomics: the current values, and the expected final ones.
    std::array<std::uint64_t, 8> counters{}, model{};
    End end;
    Wire out;
    std::size_t seen = 0;       // completions checked
    std::deque<Asked> asked;    // send requests not completed
    std::deque<Coming> coming;  // Sends the other end has posted
    std::deque<Posted> posted_receives;
    std::uint64_t source_at = 0, write_at = 0, landing_at = 0, receive_at = 0, next_id = 1;
    std::set<std::uint32_t> invalidated;  // STags that must be unusable at the end
    std::uint64_t max_reads = 0;
  };

  Peer& peer(std::size_t i) { return *peers_[i]; }

  std::uint32_t random_length() { return std::min(draw_length(), o_.max_len); }
  std::uint32_t draw_length() {
    switch (rng_.below(6)) {
      case 0:
        return 0;
      case 1:
        return static_cast<std::uint32_t>(rng_.between(1, 16));
      case 2:
        return static_cast<std::uint32_t>(rng_.between(17, 300));
      case 3:
        return static_cast<std::uint32_t>(rng_.between(301, 1600));
      default:
        return static_cast<std::uint32_t>(rng_.between(1, o_.max_len));
    }
  }

  // Splits [at, at+len) into up to four SGEs, some of them empty.
  std::vector<Sge> split(const std::vector<std::uint8_t>& arena, std::uint64_t at,
                         std::uint32_t len, std::uint32_t key) {
    std::vector<Sge> sges;
    const std::size_t n = rng_.below(5);
    for (std::size_t k = 0; k < n && len != 0; ++k) {
      const auto part = static_cast<std::uint32_t>(k + 1 == n ? len : rng_.between(0, len));
      sges.push_back({End::address(arena.data() + at), part, part != 0 ? key : 0xdead});
      at += part;
      len -= part;
    }
    if (len != 0) {
      if (sges.size() == 4) sges.pop_back();
      sges.clear();
    }
    return sges;
  }

  bool post(std::size_t i) {
    Peer& p = peer(i);
    Peer& q = peer(1 - i);
    SendWr wr;
    std::uint32_t len = random_length();
    static constexpr WrOp kAny[] = {WrOp::Send,     WrOp::SendInv, WrOp::Write,    WrOp::Read,
                                    WrOp::LocalInv, WrOp::SendImm, WrOp::WriteImm, WrOp::FetchAdd,
                                    WrOp::CmpSwap,  WrOp::Swap};
    wr.op = kAny[rng_.below(std::size(kAny))];
    if (!o_.invalidations && (wr.op == WrOp::SendInv || wr.op == WrOp::LocalInv)) {
      wr.op = WrOp::Send;
    }
    wr.immediate = rng_.next();
    if (wr.op == WrOp::LocalInv) len = 0;
    if (is_atomic(wr.op)) len = kAtomicBytes;
    wr.wr_id = p.next_id;
    const bool signaled = rng_.chance(0.7);
    if (signaled) wr.flags |= kSignaled;
    if (rng_.chance(0.1)) wr.flags |= kFence;
    const bool reads = awaits_response(wr.op);
    auto& arena = reads ? p.landing : p.source;
    std::uint64_t& at = reads ? p.landing_at : p.source_at;
    if (at + len > arena.size()) return false;
    std::vector<Sge> sges = split(arena, at, len, reads ? p.landing_key : p.source_key);
    if (sges.empty() && len != 0) {
      sges = {{End::address(arena.data() + at), len, reads ? p.landing_key : p.source_key}};
    }
    const bool send = wr.op == WrOp::Send || wr.op == WrOp::SendInv || wr.op == WrOp::SendImm;
    const bool write = wr.op == WrOp::Write || wr.op == WrOp::WriteImm;
    const bool immediate = wr.op == WrOp::SendImm || wr.op == WrOp::WriteImm;
    if ((send || write) && len <= 300 && rng_.chance(0.5)) {
      wr.flags |= kInline;
      for (Sge& s : sges) s.lkey = 0;
    }
    if ((send || immediate) && rng_.chance(0.3)) wr.flags |= kSolicited;
    wr.sges = sges;
    Asked asked{wr.wr_id, wr.op, signaled, at, len, 0};
    if (write) {
      wr.remote_address = p.write_at;
      wr.rkey = q.writable_key;
      if (len == 0) wr.rkey = 0x12345678;  // not checked
      if (p.write_at + len > q.writable.size()) return false;
    }
    std::uint64_t after = 0;
    const std::size_t counter = rng_.below(q.counters.size());
    if (is_atomic(wr.op)) {
      wr.remote_address = End::address(&q.counters[counter]);
      wr.rkey = q.counters_key;
      wr.atomic = {rng_.below(1000), rng_.below(3), 0, rng_.next(), 3};
      asked.original = q.model[counter];
      const std::uint64_t kept = asked.original & ~wr.atomic.data_mask;
      after = wr.op == WrOp::FetchAdd ? asked.original + wr.atomic.data
              : wr.op == WrOp::CmpSwap && (asked.original & 3) != wr.atomic.compare
                  ? asked.original
                  : kept | (wr.atomic.data & wr.atomic.data_mask);
    } else if (reads) {
      asked.remote = rng_.below(q.readable.size() - o_.max_len);
      wr.remote_address = End::address(q.readable.data()) + asked.remote;
      wr.rkey = len != 0 ? q.readable_key : 0x11;
    }
    if (wr.op == WrOp::SendInv) {
      wr.inv_key = q.end.add(q.source, kRemoteRead);
      if (rng_.chance(0.2)) {
        const auto gone = q.end.memory.invalidate(wr.inv_key, q.end.stream.config.pd);
        EXPECT_EQ(gone, MemoryTable::Invalidate::Ok);
      }
    }
    if (wr.op == WrOp::LocalInv) wr.inv_key = p.end.add(p.source, kRemoteRead);
    const auto result = p.end.stream.sq.post(wr);
    if (result != verbs::Post::Ok) {
      EXPECT_EQ(result, verbs::Post::Full);
      if (wr.op == WrOp::SendInv) q.end.memory.deregister(wr.inv_key);
      if (wr.op == WrOp::LocalInv) p.end.memory.deregister(wr.inv_key);
      return false;
    }
    if (wr.op == WrOp::SendInv) q.invalidated.insert(wr.inv_key);
    if (wr.op == WrOp::LocalInv) p.invalidated.insert(wr.inv_key);
    ++p.next_id;
    if (is_atomic(wr.op)) q.model[counter] = after;
    if (write) {
      std::copy_n(p.source.begin() + static_cast<std::ptrdiff_t>(at), len,
                  q.expected.begin() + static_cast<std::ptrdiff_t>(p.write_at));
      p.write_at += len;
    }
    if (send || immediate) {
      const auto* b = p.source.data() + at;
      q.coming.push_back({{b, b + (send ? len : 0)},
                          (wr.flags & kSolicited) != 0,
                          wr.inv_key,
                          immediate,
                          immediate ? wr.immediate : 0});
    }
    if ((wr.flags & kInline) != 0) std::memset(p.source.data() + at, 0x55, len);
    at += len;
    p.asked.push_back(asked);
    check(i);
    return true;
  }

  void post_receive(std::size_t i) {
    Peer& p = peer(i);
    Posted posted{p.next_id, {}};
    // Always room for the longest message, in up to four pieces.
    std::uint32_t left = o_.max_len;
    const std::size_t n = rng_.between(1, 4);
    std::vector<Sge> sges;
    if (p.receive_at + left > p.receives.size()) p.receive_at = 0;  // checked long ago
    for (std::size_t k = 0; k < n; ++k) {
      const auto part = static_cast<std::uint32_t>(k + 1 == n ? left : rng_.between(0, left));
      posted.pieces.emplace_back(p.receive_at, part);
      sges.push_back({End::address(p.receives.data() + p.receive_at), part, p.receives_key});
      p.receive_at += part;
      left -= part;
    }
    const auto result = p.end.stream.rq.post({posted.id, sges});
    EXPECT_EQ(result,
              p.posted_receives.size() < 13 ? ReceiveQueue::Post::Ok : ReceiveQueue::Post::Full);
    if (result != ReceiveQueue::Post::Ok) return;
    ++p.next_id;
    p.posted_receives.push_back(posted);
  }

  std::uint32_t random_emss() {
    switch (rng_.below(4)) {
      case 0:
        return 536;
      case 1:
        return 8960;
      case 2:
        return static_cast<std::uint32_t>(rng_.between(140, 3000));
      default:
        return 1460;
    }
  }

  void transmit(std::size_t i) {
    if (rng_.chance(0.05)) emss_ = random_emss();
    std::uint32_t limit = emss_;
    const bool must_cut = o_.must_cut && rng_.chance(0.3);
    if (must_cut || rng_.chance(0.1)) {
      limit = static_cast<std::uint32_t>(rng_.between(1, emss_));
    }
    Peer& p = peer(i);
    send_new(p.end, p.out, limit, emss_, must_cut, nullptr, peer(1 - i).out.position);
    check(i);
    Sender::ReadCursor c = p.end.stream.sender.outstanding_reads();
    p.max_reads = std::max<std::uint64_t>(p.max_reads, c.left);
    EXPECT_LE(c.left, kOrd);
  }

  void retransmit(std::size_t i) {
    Wire& w = peer(i).out;
    if (w.una == w.log.size()) return;
    const std::uint64_t begin = rng_.chance(0.5) ? w.una : rng_.between(w.una, w.log.size() - 1);
    const auto limit = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(rng_.between(1, emss_), w.log.size() - begin));
    EXPECT_NE(send_segment(peer(i).end, w, begin, limit, emss_), 0u);
    ++repeated_;
  }

  void acknowledge(std::size_t i, bool all) {
    Peer& p = peer(i);
    Wire& w = p.out;
    w.una = all || rng_.chance(0.4) ? w.position : rng_.between(w.una, w.position);
    p.end.stream.sender.acked(StreamOffset(w.una), p.end.sink());
    check(i);
  }

  // The other end of peer i's wire accepts the in-order bytes.
  void receive(std::size_t i) {
    Wire& w = peer(i).out;
    Peer& q = peer(1 - i);
    std::uint64_t end = w.log.size();
    if (!w.placed.empty()) end = std::min(end, w.placed.begin()->first);
    if (end > w.position && rng_.chance(0.7)) end = rng_.between(w.position + 1, end);
    take_ack(1 - i, end);
    Violation v = Violation::None;
    const Took took = take_in_order(q.end, w, end, &v);
    EXPECT_NE(took, Took::Violation) << violation_row(v).name;
    while (!w.placed.empty() && w.placed.begin()->first == w.position) {
      const auto [to, counts] = w.placed.begin()->second;
      w.placed.erase(w.placed.begin());
      w.position = to;
      EXPECT_EQ(deliver(q.end.stream, counts, q.end.sink()), Violation::None);
    }
    check(1 - i);
  }

  // The ACK that came with bytes of the other direction is processed before them.
  void take_ack(std::size_t i, std::uint64_t end) {
    Peer& p = peer(i);
    p.out.una = std::max(p.out.una, peer(1 - i).out.ack_with(end));
    p.end.stream.sender.acked(StreamOffset(p.out.una), p.end.sink());
    check(i);
  }

  void reorder(std::size_t i) {
    Wire& w = peer(i).out;
    if (rng_.chance(0.03)) w.placed.clear();  // downgrade (section 5)
    if (w.edges.size() < 3) return;
    const std::size_t k = rng_.between(1, w.edges.size() - 1);
    const std::uint64_t begin = w.edges[k - 1], end = w.edges[k];
    if (begin <= w.position) return;
    for (const auto& [b, block] : w.placed) {
      if (begin < block.first && b < end) return;
    }
    take_ack(1 - i, end);
    if (take_out_of_order(peer(1 - i).end, w, begin, end)) ++placed_early_;
  }

  // Compares the completions with the requests.
  void check(std::size_t i) {
    Peer& p = peer(i);
    Peer& q = peer(1 - i);
    for (; p.seen < p.end.completions.size(); ++p.seen) {
      const Completion& c = p.end.completions[p.seen];
      EXPECT_EQ(c.status, Status::Success);
      if (c.receive) {
        ASSERT_FALSE(p.posted_receives.empty());
        ASSERT_FALSE(p.coming.empty());
        const Posted r = p.posted_receives.front();
        const Coming m = p.coming.front();
        p.posted_receives.pop_front();
        p.coming.pop_front();
        EXPECT_EQ(c.wr_id, r.id);
        EXPECT_EQ(c.byte_len, m.bytes.size());
        EXPECT_EQ(c.solicited, m.solicited);
        EXPECT_EQ(c.with_invalidate, m.inv_stag != 0);
        EXPECT_EQ(c.inv_key, m.inv_stag);
        EXPECT_EQ(c.with_immediate, m.with_immediate);
        EXPECT_EQ(c.immediate, m.immediate);
        EXPECT_EQ(p.end.memory.find(m.inv_stag), nullptr);
        std::vector<std::uint8_t> got;
        for (const auto& [at, len] : r.pieces) {
          got.insert(got.end(), p.receives.begin() + static_cast<std::ptrdiff_t>(at),
                     p.receives.begin() + static_cast<std::ptrdiff_t>(at + len));
        }
        got.resize(m.bytes.size());
        EXPECT_EQ(got, m.bytes);
        continue;
      }
      while (!p.asked.empty() && !p.asked.front().signaled) p.asked.pop_front();
      ASSERT_FALSE(p.asked.empty());
      const Asked a = p.asked.front();
      p.asked.pop_front();
      EXPECT_EQ(c.wr_id, a.id);
      EXPECT_EQ(c.op, a.op);
      if (a.op == WrOp::Read) {
        EXPECT_TRUE(std::equal(p.landing.begin() + static_cast<std::ptrdiff_t>(a.at),
                               p.landing.begin() + static_cast<std::ptrdiff_t>(a.at + a.len),
                               q.readable.begin() + static_cast<std::ptrdiff_t>(a.remote)));
      } else if (is_atomic(a.op)) {
        std::uint64_t got;
        std::memcpy(&got, p.landing.data() + a.at, sizeof got);
        EXPECT_EQ(got, a.original);
      } else if (rng_.chance(0.5)) {
        // The buffer is the consumer's again; bytes that may still be retransmitted were copied.
        std::memset(p.source.data() + a.at, 0x99, a.len);
      }
    }
  }

  bool settled() {
    for (std::size_t i = 0; i < 2; ++i) {
      Peer& p = peer(i);
      if (!p.end.stream.sender.idle() || p.out.position != p.out.log.size()) return false;
    }
    return true;
  }

  void check_end(std::size_t i) {
    Peer& p = peer(i);
    EXPECT_TRUE(p.coming.empty());
    for (const Asked& a : p.asked) EXPECT_FALSE(a.signaled);
    EXPECT_EQ(p.writable, p.expected);
    EXPECT_EQ(p.counters, p.model);
    EXPECT_TRUE(p.end.stream.sender.drained());
    EXPECT_EQ(p.end.stream.sender.available().value(), p.out.log.size());
    EXPECT_EQ(p.end.stream.sender.kept_chunks(), 0u);
    EXPECT_EQ(p.end.stream.sender.ledger_size(), 0u);
    EXPECT_EQ(p.end.shared.pool.in_use(), 0u) << "an idle stream owns no scratch memory (P7)";
    for (const std::uint32_t stag : p.invalidated) {
      EXPECT_EQ(p.end.memory.find(stag), nullptr);
      EXPECT_TRUE(p.end.memory.deregister(stag));
    }
    EXPECT_EQ(p.end.memory.in_use(), 6u) << "read sinks leak";
    for (const std::uint32_t key : {p.source_key, p.readable_key, p.writable_key, p.landing_key,
                                    p.receives_key, p.counters_key}) {
      EXPECT_EQ(p.end.memory.at_index(key)->uses, 0u);
    }
  }

  Options o_;
  Rng rng_;
  std::uint32_t emss_ = 1460;
  std::uint64_t placed_early_ = 0, repeated_ = 0;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace urnic::ddp::test
