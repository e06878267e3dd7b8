// Two RC queue pairs with work for each other, and a wire between them that loses, duplicates and
// reorders in both directions. Everything depends on a seed: what is posted and when, when receives
// are posted, and the faults of the wire.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ib/requester.h"
#include "ib/responder.h"
#include "ib/xrc_queues.h"
#include "tests/support/faulty_wire.h"
#include "verbs/completion_queue.h"

namespace urnic::ib::test::two_ends {

using urnic::test::FaultyWire;
using urnic::test::WireFaults;
using verbs::Completion;
using verbs::WrOp;
using Bytes = std::vector<std::uint8_t>;

inline constexpr std::uint32_t kSlot = 6 * 1024 + 64;  // of one message, in each buffer
inline constexpr std::uint32_t kCells = 4;  // eight bytes each for atomics, after the slots
inline constexpr verbs::PdId kPd = 9;

struct Case {
  explicit Case(std::uint64_t s) : seed(s), rng(s) {
    faults.loss = 0.01 * static_cast<double>(rng.between(1, 10));
    faults.duplication = 0.01 * static_cast<double>(rng.between(1, 10));
    faults.reordering = 0.01 * static_cast<double>(rng.between(1, 10));
    constexpr PathMtu kMtus[] = {PathMtu::k256, PathMtu::k512, PathMtu::k1024};
    for (QpAttributes* qp : {&qps[0], &qps[1]}) {
      qp->pd = kPd;
      qp->access = verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;
      qp->ack_timeout = 8;
      qp->min_rnr_timer = static_cast<std::uint8_t>(rng.between(1, 8));
      // Half of the cases wrap around soon.
      const std::uint64_t first = rng.chance(0.5) ? kMask24 - rng.below(60) : rng.next();
      qp->sq_psn = Psn(static_cast<std::uint32_t>(first));
    }
    const PathMtu pmtu = kMtus[rng.below(3)];
    for (int i = 0; i < 2; ++i) {
      qps[i].number = 0x100 + i;
      qps[i].dest_qp = 0x101 - i;
      qps[i].path_mtu = pmtu;
      qps[i].rq_psn = qps[1 - i].sq_psn;
      qps[i].initiator_depth = static_cast<std::uint8_t>(rng.between(1, 4));
      qps[1 - i].responder_depth = qps[i].initiator_depth;
      qps[i].tells_credits = rng.chance(0.5);
      rules[i].window = static_cast<std::uint32_t>(rng.between(1, 40));
      rules[i].ack_every = static_cast<std::uint32_t>(rng.between(1, 16));
      rules[i].obey_credits = rng.chance(0.7);
    }
  }
  Case& with_probe() {
    for (QpAttributes& qp : qps) {
      qp.probe = true;
      qp.ack_timeout = 14;  // 67 ms
    }
    return *this;
  }
  // Both ends, or one of them, keep packets past a gap; some stores are too small.
  Case& with_store() {
    for (QpAttributes& qp : qps) {
      qp.loss.type = rng.chance(0.8) ? ConnectionType::Fast : ConnectionType::Slow;
      constexpr std::uint32_t kStores[] = {1, 3, 8, 64, 512};
      qp.loss.store_packets = kStores[rng.below(std::size(kStores))];
      qp.loss.max_recovery_attempts =
          rng.chance(0.7) ? 32 : static_cast<std::uint32_t>(rng.below(4));
      qp.loss.upgrade_after = static_cast<std::uint32_t>(rng.between(1, 20));
      qp.probe = rng.chance(0.5);
      constexpr std::uint32_t kParks[] = {0, 1, 5, 64};
      qp.loss.rnr_park = kParks[rng.below(std::size(kParks))];
      qp.loss.rnr_park_time = Duration::us(static_cast<std::int64_t>(rng.between(20, 2000)));
    }
    return *this;
  }
  // Both ends are urnic and repeat selectively.
  Case& with_selective() {
    for (QpAttributes& qp : qps) {
      qp.selective = qp.peer_selective = true;
      qp.peer_parts = true;
      if (rng.chance(0.7)) qp.loss.type = ConnectionType::Fast;
      if (rng.chance(0.5)) qp.loss.out_of_order = OutOfOrder::Place;
      if (rng.chance(0.8)) qp.probe = true;
      if (rng.chance(0.5)) qp.ack_timeout = 14;
    }
    return *this;
  }
  // Each end has receives in three shared queues, and each request names one of the other end's.
  Case& with_xrc() {
    for (QpAttributes& qp : qps) {
      qp.service = ServiceType::Xrc;
      qp.tells_credits = false;
      qp.xrc.domain = 5;
    }
    return *this;
  }
  std::uint64_t seed;
  Rng rng;
  WireFaults faults;
  QpAttributes qps[2];
  SendRules rules[2];
  std::uint32_t messages = 30;
};

// A request and its expected result.
struct Work {
  WrOp op = WrOp::Send;
  std::uint8_t flags = 0;
  std::uint32_t length = 0;
  std::uint64_t remote = 0;  // offset in the peer's target
  std::uint32_t value = 0;   // Immediate Data, or the key that is invalidated
  std::size_t queue = 0;     // XRC: index of the peer's queue
  verbs::AtomicOperands atomic;
  bool takes_receive() const {
    return op == WrOp::Send || op == WrOp::SendImm || op == WrOp::SendInv || op == WrOp::WriteImm;
  }
};

struct End {
  End(const Case& c, int which)
      : qp(c.qps[which]),
        messages(c.messages),
        rq(c.qps[which].service == ServiceType::Xrc ? verbs::ReceiveQueue(&buffers, 0)
                                                    : verbs::ReceiveQueue(6, 4, 0)),
        requester(qp, c.rules[which], &sq, &table, &pool),
        responder(qp, &rq, &table, &pool) {
    Rng rng(c.seed * 2 + which);
    qp.xrc.queues = &xrc_queues;
    for (verbs::SharedReceiveQueue& queue : queues) {
      xrc_queues.open(&queue, qp.xrc.domain, &completions);
    }
    for (Bytes* b : {&local, &target, &inbox})
      b->resize(std::size_t{messages} * kSlot + 8 * kCells);
    for (Bytes* b : {&local, &target}) {
      for (std::uint8_t& byte : *b) byte = static_cast<std::uint8_t>(rng.next());
    }
    expected_local = local;
    expected_target = target;
    lkey = table.register_memory(kPd, local.data(), local.size(), verbs::kLocalWrite);
    inbox_key = table.register_memory(kPd, inbox.data(), inbox.size(), verbs::kLocalWrite);
    rkey = table.register_memory(
        kPd, {target.data(), 0, target.size()},
        verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic);
  }

  std::uint32_t small_region() {
    return table.register_memory(kPd, inbox.data(), 8, verbs::kLocalWrite);
  }

  // Plans the effects on the other end, and the expected contents afterwards.
  void plan(Rng* rng, End* peer) {
    other = peer;
    const std::uint32_t pmtu = qp.pmtu();
    const std::uint32_t lengths[] = {0, 1, pmtu - 1, pmtu, pmtu + 1, 3 * pmtu, 6 * pmtu};
    for (std::uint32_t i = 0; i < messages; ++i) {
      constexpr WrOp kOps[] = {WrOp::Send,     WrOp::SendInv,  WrOp::Write,   WrOp::Read,
                               WrOp::Read,     WrOp::LocalInv, WrOp::SendImm, WrOp::WriteImm,
                               WrOp::FetchAdd, WrOp::CmpSwap};
      Work w;
      w.op = kOps[rng->below(std::size(kOps))];
      w.flags = static_cast<std::uint8_t>((rng->chance(0.8) ? verbs::kSignaled : 0) |
                                          (rng->chance(0.1) ? verbs::kFence : 0));
      w.length = lengths[rng->below(std::size(lengths))];
      w.value = static_cast<std::uint32_t>(rng->next());
      w.remote = std::uint64_t{i} * kSlot;
      if (xrc()) w.queue = rng->below(std::size(queues));
      if (w.op == WrOp::SendInv) peer->gone.push_back(w.value = peer->small_region());
      if (w.op == WrOp::LocalInv) gone.push_back(w.value = small_region());
      if (verbs::is_atomic(w.op)) plan_atomic(rng, i, &w);
      if (w.op == WrOp::LocalInv) w.length = 0;
      if (w.op == WrOp::Read) {
        // From a slot that has been written or never will be: a READ may be executed twice.
        w.remote = rng->between(0, i) * kSlot;
        std::memcpy(&expected_local[i * kSlot], &peer->expected_target[w.remote], w.length);
      }
      if (w.op == WrOp::Write || w.op == WrOp::WriteImm) {
        std::memcpy(&peer->expected_target[w.remote], &local[i * kSlot], w.length);
      }
      if (w.takes_receive()) peer->takes.push_back(i);
      work.push_back(w);
    }
  }
  void plan_atomic(Rng* rng, std::uint32_t i, Work* w) {
    w->length = 8;
    w->remote = std::uint64_t{messages} * kSlot + 8 * rng->below(kCells);
    std::uint64_t cell;
    std::memcpy(&cell, &other->expected_target[w->remote], 8);
    std::memcpy(&expected_local[i * kSlot], &cell, 8);
    w->atomic.data = rng->next();
    w->atomic.compare = rng->chance(0.7) ? cell : cell + 1;
    if (w->op == WrOp::FetchAdd) {
      cell += w->atomic.data;
    } else if (cell == w->atomic.compare) {
      cell = w->atomic.data;
    }
    std::memcpy(&other->expected_target[w->remote], &cell, 8);
  }

  // ---- the consumer
  void post(Rng* rng) {
    while (receives < takes.size() && !rng->chance(0.4)) {
      const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(&inbox[receives * kSlot]), kSlot,
                           inbox_key};
      if (!post_receive({receives, {&sge, 1}})) break;
      ++receives;
    }
    while (posted < work.size() && !rng->chance(0.2)) {
      if (!post_work(rng, posted)) break;
      ++posted;
    }
  }
  bool post_receive(const verbs::RecvWr& wr) {
    if (!xrc()) return rq.post(wr) == verbs::ReceiveQueue::Post::Ok;
    verbs::SharedReceiveQueue& queue = queues[other->work[takes[receives]].queue];
    return queue.post(wr) == verbs::SharedReceiveQueue::Post::Ok;
  }
  bool post_work(Rng* rng, std::uint32_t i) {
    const Work& w = work[i];
    verbs::SendWr wr;
    wr.wr_id = i;
    wr.op = w.op;
    wr.flags = w.flags;
    wr.remote_address = w.remote;
    wr.rkey = other->rkey;
    wr.inv_key = w.value;
    wr.immediate = w.value;
    wr.atomic = w.atomic;
    wr.remote_srq = other->queues[w.queue].xrc.number;
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(&local[i * kSlot]);
    const auto cut = static_cast<std::uint32_t>(rng->between(0, w.length));
    const verbs::Sge sges[] = {{at, cut, lkey}, {at + cut, w.length - cut, lkey}};
    wr.sges = sges;
    if (w.length <= 64 && !verbs::awaits_response(w.op) && !verbs::is_local(w.op)) {
      wr.flags |= verbs::kInline;
    }
    return sq.post(wr) == verbs::Post::Ok;
  }

  // ---- the transport
  void take(ByteView datagram, Instant now) {
    const auto packet = parse_packet(datagram);
    ASSERT_TRUE(packet.ok());
    if (packet->header.row().response()) {
      requester.take(*packet, now);
    } else {
      Completion c;
      Received r = responder.take(*packet, &c);
      if (r.completed) received.push_back(c);
      if (r.more) take_held();
      look_at_parked(now);
    }
    report();
  }
  void take_held() {
    Completion c;
    for (Received r{Verdict::Accept, false, true}; r.more;) {
      r = responder.take_held(&c);
      if (r.completed) received.push_back(c);
    }
  }
  // A request that waits for a receive: there may be one now, or its time has passed.
  void look_at_parked(Instant now) {
    while (responder.receive_posted()) {
      take_held();
      park_until = Instant::never();
    }
    if (park_until <= now) responder.stop_waiting();
    if (!responder.parked()) {
      park_until = Instant::never();
    } else if (park_until.is_never()) {
      park_until = now + qp.loss.rnr_park_time;
    }
  }
  void report() {
    requester.report([this](const Completion& c) { sent.push_back(c); });
  }
  bool emit_request(Instant now, Bytes* bytes) {
    RequestPacket p;
    if (!requester.next_packet(now, true, &p)) return false;
    bytes->resize(packet_bytes(p.header.bth.opcode, p.length));
    Bytes payload(p.length);
    p.copy_payload(payload.data());
    emit_packet(p.header, payload, bytes->data());
    return true;
  }
  bool emit_response(Bytes* bytes) {
    ResponsePacket p;
    if (!responder.due() || !responder.next_response(&p)) return false;
    bytes->resize(packet_bytes(p.header.bth.opcode, p.payload.size()));
    emit_packet(p.header, p.payload, bytes->data());
    return true;
  }

  bool xrc() const { return qp.service == ServiceType::Xrc; }
  bool failed() const { return requester.failed() || responder.failed(); }
  bool done() const {
    return posted == work.size() && sq.empty() && requester.drained() &&
           received.size() >= takes.size();
  }

  // ---- the result; empty: everything is correct
  std::string wrong() const {
    std::size_t n = 0;
    for (std::uint32_t i = 0; i < work.size(); ++i) {
      if ((work[i].flags & verbs::kSignaled) == 0) continue;
      if (n == sent.size() || sent[n].wr_id != i) return "completions of requests: order or number";
      if (sent[n].status != verbs::Status::Success) return "a request failed";
      ++n;
    }
    if (n != sent.size()) return "more completions than requests";
    if (received.size() != takes.size()) return "more messages than were sent";
    for (std::uint32_t k = 0; k < received.size(); ++k) {
      if (std::string w = wrong_receive(k); !w.empty()) return w;
    }
    if (local != expected_local) return "what was read, or an atomic's result";
    if (target != expected_target) return "what was written, or an atomic";
    for (const std::uint32_t key : gone) {
      if (table.find(key) != nullptr) return "a key was not invalidated";
    }
    return "";
  }
  std::string wrong_receive(std::uint32_t k) const {
    const Completion& c = received[k];
    const Work& w = other->work[takes[k]];
    if (c.wr_id != k || c.status != verbs::Status::Success) return "a receive: order or status";
    if (c.byte_len != w.length) return "a receive: length";
    const bool immediate = w.op == WrOp::SendImm || w.op == WrOp::WriteImm;
    if (c.with_immediate != immediate || (immediate && c.immediate != w.value)) return "immediate";
    if (c.with_invalidate != (w.op == WrOp::SendInv)) return "a receive: invalidation";
    const std::uint32_t bytes = w.op == WrOp::WriteImm ? 0 : w.length;
    const Bytes& from = other->local;
    if (std::memcmp(&inbox[k * kSlot], &from[takes[k] * kSlot], bytes) != 0) return "bytes";
    for (std::uint32_t i = bytes; i < kSlot; ++i) {
      if (inbox[k * kSlot + i] != 0) return "bytes behind a message";
    }
    return "";
  }

  QpAttributes qp;
  std::uint32_t messages;
  verbs::MemoryTable table;
  HeldPool pool;
  verbs::SendQueue sq{12, 4, 64, sizeof(SendPart)};
  BufferPool buffers;
  verbs::CompletionQueue completions{1};  // unused: completions are in `received`
  verbs::SharedReceiveQueue queues[3] = {{kPd, 6, 4}, {kPd, 6, 4}, {kPd, 6, 4}};
  XrcQueues xrc_queues{SipKey{1, 2}};
  verbs::ReceiveQueue rq;
  Requester requester;
  Responder responder;
  Bytes local, target, inbox, expected_local, expected_target;
  std::uint32_t lkey = 0, rkey = 0, inbox_key = 0;
  End* other = nullptr;
  std::vector<Work> work;
  std::vector<std::uint32_t> takes;  // the peer's requests that use a receive here
  std::vector<std::uint32_t> gone;   // keys that are invalidated
  std::uint32_t posted = 0, receives = 0;
  Instant park_until = Instant::never();
  std::vector<Completion> sent, received;
};

class TwoEnds {
 public:
  explicit TwoEnds(const Case& c)
      : rng_(c.seed ^ 0x5eed), wire_(c.seed + 17, c.faults), ends_{End(c, 0), End(c, 1)} {
    for (int i = 0; i < 2; ++i) ends_[i].plan(&rng_, &ends_[1 - i]);
  }

  // Runs until everything is done and the wire is empty. Returns what is wrong, or an empty string.
  std::string run() {
    for (int steps = 0; steps < 1'000'000; ++steps) {
      if (ends_[0].failed() || ends_[1].failed()) return "a queue pair failed";
      const bool done = ends_[0].done() && ends_[1].done();
      if (done && wire_.next().is_never()) break;
      if (!step()) return "nothing happens any more";
      if (now_ > Instant::from_ns(0) + Duration::s(300)) return "it takes too long";
    }
    for (const End& e : ends_) {
      if (std::string w = e.wrong(); !w.empty()) return w;
    }
    return ends_[0].done() && ends_[1].done() ? "" : "it does not end";
  }

  const End& end(int i) const { return ends_[i]; }
  const FaultyWire& wire() const { return wire_; }
  const RequesterCounters& counters(int i) const { return ends_[i].requester.counters(); }
  const ResponderCounters& served(int i) const { return ends_[i].responder.counters(); }
  Instant now() const { return now_; }

 private:
  bool step() {
    Instant next = earlier(wire_.next(), consumer_);
    for (const End& e : ends_) next = earlier(next, earlier(e.requester.due(), e.park_until));
    next = earlier(next, sending_);
    if (next.is_never()) return false;
    now_ = std::max(now_, next);
    if (wire_.next() <= now_) {
      const auto [to, datagram] = wire_.take();
      ends_[to].take(datagram, now_);
    }
    for (End& e : ends_) {
      if (e.requester.due() <= now_) e.requester.on_time(now_);
      if (e.park_until <= now_) e.look_at_parked(now_);
    }
    if (consumer_ <= now_) {
      for (End& e : ends_) {
        e.post(&rng_);
        e.look_at_parked(now_);
      }
      const bool more = !ends_[0].done() || !ends_[1].done();
      consumer_ = more ? now_ + Duration::us(static_cast<std::int64_t>(rng_.between(5, 300)))
                       : Instant::never();
    }
    // Sometimes more arrives before anything is sent.
    if (sending_ > now_ && rng_.chance(0.3)) {
      sending_ = earlier(sending_, now_ + Duration::us(5));
      return true;
    }
    sending_ = Instant::never();
    for (int i = 0; i < 2; ++i) send(i);
    return true;
  }
  // Sends everything allowed, in turns of a few packets.
  void send(int i) {
    Bytes bytes;
    for (bool more = true; more;) {
      more = false;
      for (std::uint64_t n = rng_.between(1, 8); n != 0; --n) {
        if (!ends_[i].emit_request(now_, &bytes)) break;
        wire_.send(now_, 1 - i, bytes);
        more = true;
      }
      for (std::uint64_t n = rng_.between(1, 8); n != 0; --n) {
        if (!ends_[i].emit_response(&bytes)) break;
        wire_.send(now_, 1 - i, bytes);
        more = true;
      }
    }
    ends_[i].report();
  }

  Rng rng_;
  FaultyWire wire_;
  End ends_[2];
  Instant now_ = Instant::from_ns(0), consumer_ = now_, sending_ = Instant::never();
};

}  // namespace urnic::ib::test::two_ends
