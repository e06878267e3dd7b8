// Two ends of RD with requests for each other: several queue pairs each over one or two EE
// contexts, and a wire that loses, duplicates and reorders. Some requests are intentionally bad,
// some find no receive or run out of retries; stopped queue pairs are recovered. Everything derives
// from a seed.
//
// Each message identifies itself: bytes 0..3 the sender's queue pair, 4..7 its number in order of
// posting there, 8..11 its receiver's queue pair, 12.. a pattern derived from these.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/rd/rd_host.h"
#include "tests/support/faulty_wire.h"

namespace urnic::sim::test::rd_ends {

using namespace ib;
using urnic::test::FaultyWire;
using urnic::test::WireFaults;
using verbs::QpState;
using verbs::Status;
using verbs::WrOp;
using Bytes = std::vector<std::uint8_t>;

inline constexpr verbs::PdId kPd = 9;
inline constexpr std::uint32_t kRdd = 3, kQkey = 0x77, kSlot = 8 * 1024, kHead = 12;
inline constexpr std::uint32_t kQueuePairs = 4, kContexts = 2, kMessages = 24;
// After the slots of messages: eight bytes for atomics for each queue pair.
inline constexpr std::size_t kCells = std::size_t{kQueuePairs} * kMessages * kSlot;

struct Case {
  explicit Case(std::uint64_t s) : seed(s), rng(s) {
    faults.loss = 0.01 * static_cast<double>(rng.between(1, 8));
    faults.duplication = 0.01 * static_cast<double>(rng.between(1, 8));
    faults.reordering = 0.01 * static_cast<double>(rng.between(1, 8));
    constexpr PathMtu kMtus[] = {PathMtu::k256, PathMtu::k512, PathMtu::k1024};
    mtu = kMtus[rng.below(3)];
    constexpr OnRnr kWays[] = {OnRnr::Retry, OnRnr::Suspend, OnRnr::Abandon};
    rules.on_rnr = kWays[rng.below(3)];
    rules.window = static_cast<std::uint32_t>(rng.between(1, 20));
    rules.ack_every = static_cast<std::uint32_t>(rng.between(1, 8));
    retry_count = static_cast<std::uint8_t>(rng.between(1, 5));
    rnr_retry = static_cast<std::uint8_t>(rng.between(1, 7));
    first_psn = rng.chance(0.5) ? kMask24 - static_cast<std::uint32_t>(rng.below(60))
                                : static_cast<std::uint32_t>(rng.next());
    bad = rng.chance(0.5) ? 0.1 : 0;
    if (rng.chance(0.3)) scarce = 0.2;
  }
  std::uint64_t seed;
  Rng rng;
  WireFaults faults;
  PathMtu mtu;
  EeRules rules;
  std::uint8_t retry_count, rnr_retry;
  std::uint32_t first_psn;
  double bad;         // fraction of messages that the peer refuses
  double scarce = 0;  // fraction of turns in which no receive is posted
};

struct Sent {
  std::uint32_t length = 0;
  bool bad = false;  // must not succeed
  WrOp op = WrOp::Send;
  int completions = 0;
  bool succeeded = false;
};

inline std::uint8_t pattern(std::uint32_t qp, std::uint32_t message, std::uint32_t i) {
  return static_cast<std::uint8_t>(qp * 31 + message * 7 + i * 13 + (i >> 8));
}

class End {
 public:
  End(const Case& c, int which) : which_(which), rng_(c.seed * 2 + static_cast<unsigned>(which)) {
    RdHooks hooks;
    hooks.context = this;
    hooks.completion = [](void* self, const RdQueuePair& qp, const verbs::Completion& done) {
      static_cast<End*>(self)->completed(qp, done);
    };
    host_ = std::make_unique<RdHost>(&table_, hooks);
    memory_.resize(std::size_t{kQueuePairs} * (16 + 16 + 1) * kSlot);
    lkey_ = table_.register_memory(kPd, memory_.data(), memory_.size(), verbs::kLocalWrite);
    target_.resize(kCells + std::size_t{kQueuePairs} * 8);
    for (std::size_t i = 0; i < target_.size(); ++i) target_[i] = static_cast<std::uint8_t>(i * 5);
    std::memset(target_.data() + kCells, 0, std::size_t{kQueuePairs} * 8);
    rkey = table_.register_memory(
        kPd, {target_.data(), 0, target_.size()},
        verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic);
    for (std::uint32_t e = 0; e < kContexts; ++e) make_context(c, e);
    for (std::uint32_t q = 0; q < kQueuePairs; ++q) make_queue_pair(c, q);
  }

  void make_context(const Case& c, std::uint32_t e) {
    EeAttributes a;
    a.number = 0x50 + e;
    a.dest_ee = 0x50 + e;
    a.rdd = kRdd;
    a.av.remote = IpAddress::v4(10, 0, 0, static_cast<std::uint8_t>(2 - which_));
    a.path_mtu = c.mtu;
    a.sq_psn = Psn(c.first_psn + (which_ == 0 ? 0 : 1000) + e * 5000);
    a.rq_psn = Psn(c.first_psn + (which_ == 0 ? 1000 : 0) + e * 5000);
    a.ack_timeout = 8;  // 1 ms
    a.retry_count = c.retry_count;
    a.rnr_retry = c.rnr_retry;
    a.rules = c.rules;
    EeContext& made = *host_->make_context(a);
    for (const auto s : {QpState::Init, QpState::Rtr, QpState::Rts}) host_->modify(made, s);
  }
  void make_queue_pair(const Case&, std::uint32_t q) {
    Queues& own = queues_.emplace_back();
    QpAttributes a;
    a.service = ServiceType::Rd;
    a.number = 0x100 + q;
    a.pd = kPd;
    a.qkey = kQkey;
    a.access = verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;
    a.responder_depth = a.initiator_depth = 1;  // equal: RD has at most one outstanding request
    a.min_rnr_timer = 6;
    RdQueuePair& made = *host_->make_queue_pair(a, kRdd, &own.sq, &own.rq);
    for (const auto s : {QpState::Init, QpState::Rtr, QpState::Rts}) {
      host_->modify(made, s, rd_attributes(made.state, s).required | verbs::kQpAttrState);
    }
    sent_.emplace_back();
    received_.emplace_back();
  }

  // ---- the consumer
  void step(const Case& c, const End& peer) {
    for (std::uint32_t q = 0; q < kQueuePairs; ++q) {
      RdQueuePair& qp = *host_->queue_pair(0x100 + q);
      if (qp.state == QpState::Sqe && rng_.chance(0.3)) {
        host_->modify(qp, QpState::Rts, verbs::kQpAttrState);
        ++brought_back;
      }
      if (!rng_.chance(c.scarce)) post_receives(q, qp);
      while (qp.state == QpState::Rts && sent_[q].size() < kMessages && rng_.chance(0.7)) {
        if (!post(q, qp, c, peer)) break;
      }
    }
  }
  void post_receives(std::uint32_t q, RdQueuePair& qp) {
    Queues& own = queues_[q];
    while (own.posted - own.taken < 6) {
      const std::uint64_t slot = std::uint64_t{q} * 33 + own.posted % 16;
      const verbs::Sge sge{at(slot), kSlot, lkey_};
      if (qp.rq->post({own.posted, {&sge, 1}}) != verbs::ReceiveQueue::Post::Ok) return;
      ++own.posted;
    }
  }
  bool post(std::uint32_t q, RdQueuePair& qp, const Case& c, const End& peer) {
    const std::uint32_t n = static_cast<std::uint32_t>(sent_[q].size());
    if (n - done_[q] >= 8) return false;
    Sent s;
    const std::uint32_t pmtu = bytes(c.mtu);
    const std::uint32_t lengths[] = {kHead, 100, pmtu, pmtu + 1, 3 * pmtu + 9, 6 * pmtu};
    s.length = lengths[rng_.below(std::size(lengths))];
    constexpr WrOp kOps[] = {WrOp::Send,  WrOp::Send, WrOp::SendImm,
                             WrOp::Write, WrOp::Read, WrOp::FetchAdd};
    s.op = kOps[rng_.below(std::size(kOps))];
    s.bad = rng_.chance(c.bad);
    const bool atomic = s.op == WrOp::FetchAdd;
    if (atomic) s.length = 8;
    const std::uint32_t to = 0x100 + static_cast<std::uint32_t>(rng_.below(kQueuePairs));
    const std::uint64_t slot = std::uint64_t{q} * 33 + 16 + n % 16;
    std::uint8_t* const bytes_ = memory_.data() + slot * kSlot;
    const std::uint32_t head[3] = {qp.attributes.number, n, to};
    if (!atomic) std::memcpy(bytes_, head, kHead);
    for (std::uint32_t i = kHead; i < s.length; ++i) {
      bytes_[i] = pattern(qp.attributes.number, n, i);
    }
    const verbs::Sge sge{at(slot), s.length, lkey_};
    verbs::SendWr wr;
    wr.wr_id = n;
    wr.op = s.op;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.remote_address = (std::uint64_t{q} * kMessages + n) * kSlot;
    if (atomic) wr.remote_address = kCells + std::uint64_t{q} * 8;
    wr.atomic.data = 1;
    wr.rkey = s.bad ? peer.rkey ^ 1 : peer.rkey;
    wr.immediate = n;
    RdTo way{0x50 + static_cast<std::uint32_t>(rng_.below(kContexts)), to, kQkey};
    const bool needs_key = s.op == WrOp::Write || s.op == WrOp::Read || atomic;
    if (s.bad && !needs_key) way.qkey = kQkey + 1;
    if (qp.sender.post(wr, way) != verbs::Post::Ok) return false;
    sent_[q].push_back(s);
    return true;
  }
  void completed(const RdQueuePair& qp, const verbs::Completion& done) {
    const std::uint32_t q = qp.attributes.number - 0x100;
    if (done.receive) return took(q, done);
    if (done.wr_id != done_[q]) fail("completions of requests: order or number");
    ++done_[q];
    Sent& s = sent_[q].at(done.wr_id);
    ++s.completions;
    s.succeeded = done.status == Status::Success;
    if (s.succeeded && s.bad) fail("a bad request succeeded");
    ++(s.succeeded ? succeeded : failed);
    if (s.succeeded && s.op == WrOp::FetchAdd) check_add(q, done.wr_id);
    if (s.succeeded && s.op == WrOp::Read) check_read(q, static_cast<std::uint32_t>(done.wr_id));
  }
  void check_read(std::uint32_t q, std::uint32_t n) {
    const std::uint64_t slot = std::uint64_t{q} * 33 + 16 + n % 16;
    const std::uint8_t* const got = memory_.data() + slot * kSlot;
    const std::uint64_t from = (std::uint64_t{q} * kMessages + n) * kSlot;
    for (std::uint32_t i = 0; i < sent_[q][n].length; ++i) {
      if (got[i] != static_cast<std::uint8_t>((from + i) * 5)) return fail("what was read");
    }
  }
  // Each completed request has added one, so the value before it grows.
  void check_add(std::uint32_t q, std::uint64_t n) {
    std::uint64_t was = 0;
    std::memcpy(&was, memory_.data() + (std::uint64_t{q} * 33 + 16 + n % 16) * kSlot, 8);
    if (was < added_[q]) fail("an atomic's result");
    added_[q] = was + 1;
  }
  // Each message must be complete, for this queue pair, received once, and in order among those of
  // its sender.
  void took(std::uint32_t q, const verbs::Completion& done) {
    Queues& own = queues_[q];
    if (done.wr_id != own.taken++) fail("receives: order or number");
    if (done.status != Status::Success) {
      ++aborted_receives;
      return;
    }
    ++delivered;
    const std::uint64_t slot = std::uint64_t{q} * 33 + done.wr_id % 16;
    const std::uint8_t* const got = memory_.data() + slot * kSlot;
    std::uint32_t head[3];
    std::memcpy(head, got, kHead);
    const auto [from, message, to] = std::tuple(head[0], head[1], head[2]);
    if (to != 0x100 + q) fail("a message went to another queue pair");
    if (from < 0x100 || from >= 0x100 + kQueuePairs || message >= kMessages) return fail("torn");
    for (std::uint32_t i = kHead; i < done.byte_len; ++i) {
      if (got[i] != pattern(from, message, i)) return fail("torn");
    }
    Delivered& seen = received_[q][from];
    if (seen.any && message <= seen.last) fail("a message came twice or out of order");
    seen = {true, message};
    lengths_[{from, message}] = done.byte_len;
  }
  void fail(const std::string& what) {
    if (wrong.empty()) wrong = what + ", end " + std::to_string(which_);
  }

  bool all_posted() const {
    for (const auto& s : sent_) {
      if (s.size() != kMessages) return false;
    }
    return true;
  }
  bool all_done() const {
    for (std::uint32_t q = 0; q < kQueuePairs; ++q) {
      if (done_[q] != sent_[q].size()) return false;
    }
    return all_posted();
  }
  // At the end: every completed message has arrived completely.
  void check(const End& peer) {
    for (std::uint32_t q = 0; q < kQueuePairs; ++q) {
      check_sum(q, peer);
      for (std::uint32_t n = 0; n < sent_[q].size(); ++n) {
        const Sent& s = sent_[q][n];
        if (s.completions != 1) fail("a request completed not exactly once");
        const auto came = peer.lengths_.find({0x100 + q, n});
        const bool is_send = s.op == WrOp::Send || s.op == WrOp::SendImm;
        if (is_send && s.succeeded && came == peer.lengths_.end()) fail("done, and never came");
        if (came != peer.lengths_.end() && came->second != s.length) fail("of another length");
        if (came != peer.lengths_.end() && s.bad) fail("a bad one was delivered");
        if (s.op == WrOp::Write && s.succeeded) check_write(q, n, peer);
      }
    }
  }
  // The sum includes all completed requests, and possibly some failed ones.
  void check_sum(std::uint32_t q, const End& peer) {
    std::uint64_t sum = 0, least = 0, most = 0;
    std::memcpy(&sum, peer.target_.data() + kCells + std::size_t{q} * 8, 8);
    for (const Sent& s : sent_[q]) {
      if (s.op != WrOp::FetchAdd) continue;
      least += s.succeeded ? 1 : 0;
      most += s.bad ? 0 : 1;
    }
    if (sum < least || sum > most) fail("a sum of atomics");
  }
  void check_write(std::uint32_t q, std::uint32_t n, const End& peer) {
    const std::uint8_t* const got = peer.target_.data() + (std::size_t{q} * kMessages + n) * kSlot;
    for (std::uint32_t i = kHead; i < sent_[q][n].length; ++i) {
      if (got[i] != pattern(0x100 + q, n, i)) return fail("what was written");
    }
  }

  // ---- packets
  bool emit(Instant now, Bytes* bytes) {
    RequestPacket p;
    ResponsePacket r;
    const EeContext* whose = nullptr;
    if (rng_.chance(0.5) && host_->next_response(&r, &whose)) return emit_response(r, bytes);
    if (host_->next_request(now, &p, &whose)) {
      Bytes payload(p.length);
      p.copy_payload(payload.data());
      bytes->resize(packet_bytes(p.header.bth.opcode, p.length));
      emit_packet(p.header, payload, bytes->data());
      return true;
    }
    return host_->next_response(&r, &whose) && emit_response(r, bytes);
  }
  static bool emit_response(const ResponsePacket& r, Bytes* bytes) {
    bytes->resize(packet_bytes(r.header.bth.opcode, r.payload.size()));
    emit_packet(r.header, r.payload, bytes->data());
    return true;
  }
  void take(ByteView datagram, Instant now) {
    const auto p = parse_packet(datagram);
    ASSERT_TRUE(p.ok());
    host_->take(*p, IpAddress::v4(10, 0, 0, static_cast<std::uint8_t>(2 - which_)), now);
  }

  RdHost& host() { return *host_; }
  // Notifies the peer's owner that an EE context is unusable.
  void lose_contexts_of(End& peer) {
    for (std::uint32_t e = 0; e < kContexts; ++e) {
      EeContext& mine = *host_->context(0x50 + e);
      const bool gone = peer.host_->context(0x50 + e)->state == QpState::Error;
      if (gone && mine.state != QpState::Error) host_->modify(mine, QpState::Error);
    }
  }
  std::uint32_t rkey = 0;
  std::string wrong;
  std::uint64_t succeeded = 0, failed = 0, delivered = 0, aborted_receives = 0, brought_back = 0;

 private:
  struct Queues {
    verbs::SendQueue sq{16, 1, 0, sizeof(RdTo)};
    verbs::ReceiveQueue rq{16, 1, 0};
    std::uint64_t posted = 0, taken = 0;
  };
  struct Delivered {
    bool any = false;
    std::uint32_t last = 0;
  };
  std::uintptr_t at(std::uint64_t slot) {
    return reinterpret_cast<std::uintptr_t>(memory_.data() + slot * kSlot);
  }

  int which_;
  Rng rng_;
  verbs::MemoryTable table_;
  Bytes memory_, target_;  // 16 receives and 16 messages for each queue pair
  std::uint32_t lkey_ = 0;
  std::deque<Queues> queues_;
  std::vector<std::vector<Sent>> sent_;
  std::uint32_t done_[kQueuePairs] = {};
  std::uint64_t added_[kQueuePairs] = {};
  std::vector<std::map<std::uint32_t, Delivered>> received_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> lengths_;
  std::unique_ptr<RdHost> host_;
};

class TwoEnds {
 public:
  explicit TwoEnds(const Case& c) : case_(c), rng_(c.seed ^ 0x5eed), wire_(c.seed + 17, c.faults) {
    for (int i = 0; i < 2; ++i) ends_[i] = std::make_unique<End>(c, i);
  }

  // Runs until everything is done and the wire is empty. Returns the errors; empty if there are
  // none.
  std::string run() {
    for (int steps = 0; steps < 2'000'000; ++steps) {
      for (const auto& e : ends_) {
        if (!e->wrong.empty()) return e->wrong;
      }
      if (over()) break;
      if (!step()) return "nothing happens any more";
      if (now_ > Instant::from_ns(0) + Duration::s(600)) return "it takes too long";
    }
    if (!over()) return "it does not end";
    for (int i = 0; i < 2; ++i) ends_[i]->check(*ends_[1 - i]);
    for (const auto& e : ends_) {
      if (!e->wrong.empty()) return e->wrong;
    }
    return "";
  }

  const FaultyWire& wire() const { return wire_; }
  End& end(int i) { return *ends_[i]; }
  Instant now() const { return now_; }

 private:
  // An EE context whose RESYNCs were lost too often is in Error: requests that name it fail.
  bool over() const {
    return ends_[0]->all_done() && ends_[1]->all_done() && wire_.next().is_never();
  }
  bool step() {
    Instant next = earlier(wire_.next(), consumer_);
    for (const auto& e : ends_) next = earlier(next, e->host().due());
    if (next.is_never()) return false;
    now_ = std::max(now_, next);
    if (wire_.next() <= now_) {
      const auto [to, datagram] = wire_.take();
      ends_[to]->take(datagram, now_);
    }
    for (const auto& e : ends_) {
      if (e->host().due() <= now_) e->host().on_time(now_);
    }
    if (consumer_ <= now_) {
      for (int i = 0; i < 2; ++i) {
        ends_[i]->lose_contexts_of(*ends_[1 - i]);
        ends_[i]->step(case_, *ends_[1 - i]);
      }
      const bool more = !ends_[0]->all_done() || !ends_[1]->all_done();
      consumer_ = more ? now_ + Duration::us(static_cast<std::int64_t>(rng_.between(20, 400)))
                       : Instant::never();
    }
    Bytes bytes;
    for (int i = 0; i < 2; ++i) {
      while (ends_[i]->emit(now_, &bytes)) wire_.send(now_, 1 - i, bytes);
    }
    return true;
  }

  const Case& case_;
  Rng rng_;
  FaultyWire wire_;
  std::unique_ptr<End> ends_[2];
  Instant now_ = Instant::from_ns(0), consumer_ = now_;
};

}  // namespace urnic::sim::test::rd_ends
