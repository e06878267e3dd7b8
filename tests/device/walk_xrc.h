// The steps of a walk over XRC: sending and receiving ends at both devices, two domains at each,
// and several shared receive queues, which are created and destroyed.
#pragma once

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/device/walk_world.h"

namespace urnic::test {

// A shared receive queue of XRC, with a completion queue of its own.
struct XrcQueue {
  static constexpr std::size_t kMost = 4;
  WalkEnd* end;
  unsigned domain;
  std::size_t slot;  // the first of its receives
  CompletionQueue cq;
  SharedReceiveQueue srq;
  std::deque<WalkReceive> receives;
  std::deque<Completion> wanted;
  std::uint32_t limit = 0;
};
// One of the two ends of a connection.
struct XrcPair {
  ~XrcPair() { end->add_up(&counts); }
  WalkEnd* end;
  bool sends;
  unsigned domain = 0;  // for a receiving end
  CompletionQueue cq;   // for a sending end
  QueuePair qp;
  XrcPair* peer = nullptr;
  QpState state = QpState::reset;
  std::uint32_t max_send = 0;
  std::deque<Completion> wanted;
  VerbsStats counts;
};

class XrcSteps {
 public:
  explicit XrcSteps(WalkWorld& world) : world_(world) {
    for (auto& e : world_.ends) {
      for (const char* const name : {"a", "b"}) {
        domains_[e->which].push_back(*e->device.open_xrc_domain(name));
      }
    }
  }

  void change_queues(Dice& dice) {
    if (queues_.size() > 2 && dice.one_in(3)) {
      const std::size_t at = dice.below(queues_.size());
      world_.tell("queue " + name(*queues_[at]) + " goes");
      gone_.push_back({queues_[at]->end, queues_[at]->srq.number()});
      queues_.erase(queues_.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    }
    WalkEnd& e = *world_.ends[dice.below(2)];
    const std::optional<std::size_t> slot = free_slot(e);
    if (!slot) return;
    queues_.push_back(std::make_unique<XrcQueue>());
    XrcQueue& q = *queues_.back();
    q.end = &e;
    q.domain = dice.below(2);
    q.slot = *slot;
    q.cq = *e.device.create_cq(32);
    SrqOptions o;
    o.max_receive = XrcQueue::kMost + 1;
    o.max_receive_sge = 3;
    o.events = e.events;
    o.context = &q;
    // Opening the domain by its name gives the same domain.
    o.xrc_domain = dice.one_in(2) ? domains_[e.which][q.domain]
                                  : *e.device.open_xrc_domain(q.domain == 0 ? "a" : "b");
    o.receive_cq = q.cq;
    auto made = e.device.create_srq(e.pd, o);
    agree(made.ok(), "a queue of XRC is made");
    q.srq = *made;
    agree(q.srq.number() != 0, "a queue of XRC has a number");
    world_.tell("queue " + name(q) + " of domain " + std::to_string(q.domain));
  }
  void post_receive(Dice& dice) {
    if (queues_.empty()) return;
    XrcQueue& q = *queues_[dice.below(queues_.size())];
    if (dice.one_in(6)) {
      q.limit = dice.between(0, 3);
      agree(q.srq.set_limit(q.limit).ok(), "a limit is set");
      look_at_limit(q);
      return;
    }
    if (q.receives.size() < XrcQueue::kMost) post_receive(q);
  }
  // Connects one end to the other, with new or reset queue pairs.
  void connect(Dice& dice) {
    WalkEnd& from = *world_.ends[dice.below(2)];
    XrcPair* const a = unused(from, true, dice);
    XrcPair* const b = unused(world_.other(from), false, dice);
    if (a == nullptr || b == nullptr) return;
    world_.tell("connect " + name(*a) + " to " + name(*b) + " of domain " +
                std::to_string(b->domain));
    const std::uint32_t psn = dice.below(1u << 24), mtu = 256u << dice.below(3);
    const std::uint32_t depth = dice.between(1, 8);
    QpAttributes init, rtr, rts;
    init.access = access_remote_write | access_remote_read | access_remote_atomic;
    for (XrcPair* p : {a, b}) agree(p->qp.modify(QpState::init, init).ok(), "an end to init");
    rtr.path.emplace();
    rtr.path_mtu = mtu;
    rtr.dest_qp = b->qp.number();
    rtr.path->remote = "10.77.0." + std::to_string(b->end->which + 1);
    rtr.rq_psn = dice.below(1u << 24);
    agree(a->qp.modify(QpState::rtr, rtr).ok(), "the sending end to rtr");
    rts.sq_psn = psn;
    rts.ack_timeout = dice.between(13, 15);
    rts.retry_count = 6;
    rts.rnr_retry = 7;
    rts.initiator_depth = depth;
    agree(a->qp.modify(QpState::rts, rts).ok(), "the sending end to rts");
    rtr.dest_qp = a->qp.number();
    rtr.path->remote = "10.77.0." + std::to_string(a->end->which + 1);
    rtr.rq_psn = psn;
    rtr.responder_depth = depth + dice.below(3);
    rtr.min_rnr_timer = dice.between(1, 12);
    agree(b->qp.modify(QpState::rtr, rtr).ok(), "the receiving end to rtr");
    a->state = QpState::rts;
    b->state = QpState::rtr;
    a->peer = b;
    b->peer = a;
  }
  // Resets or destroys one end, and the other with it.
  void end(Dice& dice) {
    if (pairs_.empty()) return;
    XrcPair& p = *pairs_[dice.below(pairs_.size())];
    XrcPair* const q = p.peer;
    const bool destroy = dice.one_in(3);
    world_.tell((destroy ? "destroy " : "reset ") + name(p));
    if (q != nullptr) reset(*q);
    if (!destroy) return reset(p);
    p.end->forget_events_of(&p);
    std::erase_if(pairs_, [&](const auto& x) { return x.get() == &p; });
  }

  // Valid requests, each for a queue of the peer's domain.
  void work(Dice& dice) {
    XrcPair* const p = ready(dice);
    if (p == nullptr) return;
    XrcQueue* const q = queue_for(dice, *p, true);
    if (q == nullptr) return;
    slot_ = dice.below(kSharedSlots);
    for (std::uint32_t many = dice.between(1, p->max_send); many != 0; --many) {
      one(*p, *queue_for(dice, *p, true), dice);
    }
  }
  // A request for a queue of another domain, or a destroyed one, which ends both queue pairs.
  void break_rules(Dice& dice) {
    XrcPair* const p = ready(dice);
    if (p == nullptr) return;
    std::uint32_t number = 0;
    WcStatus status = WcStatus::remote_invalid_rd_request;
    if (XrcQueue* const q = queue_for(dice, *p, false); q != nullptr && dice.one_in(2)) {
      number = q->srq.number();
    } else {
      status = WcStatus::remote_invalid_request;
      for (const Gone& g : gone_) {
        if (g.end == p->peer->end && !there(g)) number = g.number;
      }
      if (number == 0) return;
    }
    world_.tell("a request for a queue that is not " + name(*p) + "'s");
    const Sge sge = p->end->sge(0, 40);
    SendRequest r;
    r.wr_id = world_.next_id();
    r.sges = {&sge, 1};
    r.remote_srq = number;
    agree(p->qp.post_send(r).ok(), "a request is taken");
    want(*p, r, status);
    ++p->counts.sends_sent;
    p->counts.send_bytes_sent += 40;
    fails(*p, {});
    fails(*p->peer, EventKind::request_error);
  }

  void check() {
    for (auto& e : world_.ends) e->check();
    for (auto& q : queues_) {
      const std::string who = "queue " + name(*q) + ": ";
      poll(q->cq, &q->wanted, who);
      const auto is = q->srq.query();
      agree_on(is.posted, q->receives.size(), who + "posted");
      agree_on(is.limit, q->limit, who + "limit");
      agree_on(is.max_receive, XrcQueue::kMost + 1, who + "max_receive");
      agree_on(is.max_receive_sge, 3u, who + "max_receive_sge");
    }
    for (auto& p : pairs_) {
      const std::string who = name(*p) + ": ";
      if (p->sends) poll(p->cq, &p->wanted, who);
      agree_on(static_cast<int>(p->qp.state()), static_cast<int>(p->state), who + "state");
      const VerbsStats is = p->qp.stats().verbs;
      for (const WalkCounter& c : kWalkCounters) {
        agree_on(is.*c.member, p->counts.*c.member, who + c.name);
      }
    }
    for (auto& e : world_.ends) {
      std::size_t of_it = 0;
      for (auto& p : pairs_) of_it += p->end == e.get() ? 1 : 0;
      const engine::EngineTables t = engine_of(e->device).tables();
      agree_on(t.queue_pairs, of_it, "queue pairs of end " + std::to_string(e->which));
    }
  }
  void drop_all() {
    while (!pairs_.empty()) {
      auto& p = pairs_[pairs_.size() / 2];
      p->end->forget_events_of(p.get());
      pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(pairs_.size() / 2));
    }
    queues_.clear();
    for (auto& d : domains_) d.clear();
  }

 private:
  struct Gone {
    WalkEnd* end;
    std::uint32_t number;
  };
  static std::string name(const XrcQueue& q) {
    return std::to_string(q.srq.number()) + " of end " + std::to_string(q.end->which);
  }
  static std::string name(const XrcPair& p) {
    return std::to_string(p.qp.number()) + " of end " + std::to_string(p.end->which);
  }
  bool there(const Gone& g) const {
    return std::any_of(queues_.begin(), queues_.end(), [&](const auto& q) {
      return q->end == g.end && q->srq.number() == g.number;
    });
  }
  std::optional<std::size_t> free_slot(const WalkEnd& e) const {
    for (std::size_t s = kSharedSlots; s + XrcQueue::kMost <= kSrqSlot; s += XrcQueue::kMost) {
      const bool taken = std::any_of(queues_.begin(), queues_.end(),
                                     [&](const auto& q) { return q->end == &e && q->slot == s; });
      if (!taken) return s;
    }
    return std::nullopt;
  }
  XrcPair* unused(WalkEnd& e, bool sends, Dice& dice) {
    std::size_t many = 0;
    for (auto& p : pairs_) {
      if (p->end != &e || p->sends != sends) continue;
      ++many;
      if (p->state == QpState::reset && dice.one_in(2)) return p.get();
    }
    if (many == 4) return nullptr;
    pairs_.push_back(std::make_unique<XrcPair>());
    XrcPair& p = *pairs_.back();
    p.end = &e;
    p.sends = sends;
    p.domain = dice.below(2);
    p.max_send = dice.between(2, 6);
    QpOptions o;
    o.transport = Transport::roce;
    o.service = sends ? Service::xrc_send : Service::xrc_receive;
    o.events = e.events;
    o.context = &p;
    o.asynchronous_events = true;
    o.max_send = p.max_send;
    if (sends) {
      o.send_cq = p.cq = *e.device.create_cq(16);
    } else {
      o.xrc_domain = domains_[e.which][p.domain];
    }
    auto made = e.device.create_qp(e.pd, o);
    agree(made.ok(), "an end of XRC is made");
    p.qp = std::move(*made);
    return &p;
  }
  void reset(XrcPair& p) {
    agree(p.qp.modify(QpState::reset).ok(), "an end is reset");
    p.state = QpState::reset;
    p.wanted.clear();
    p.end->add_up(&p.counts);
    if (p.peer != nullptr) p.peer->peer = nullptr;
    p.peer = nullptr;
  }
  void fails(XrcPair& p, std::optional<EventKind> cause) {
    p.state = QpState::error;
    p.end->want(EventKind::failed, &p);
    if (cause) p.end->want(*cause, &p);
  }
  XrcPair* ready(Dice& dice) {
    std::vector<XrcPair*> found;
    for (auto& p : pairs_) {
      if (p->sends && p->state == QpState::rts && p->peer != nullptr) found.push_back(p.get());
    }
    XrcPair** const p = dice.any(found);
    return p == nullptr ? nullptr : *p;
  }
  // A queue of the peer's domain, or of the other domain.
  XrcQueue* queue_for(Dice& dice, const XrcPair& p, bool right) {
    std::vector<XrcQueue*> found;
    for (auto& q : queues_) {
      const bool same = q->domain == p.peer->domain;
      if (q->end == p.peer->end && same == right) found.push_back(q.get());
    }
    XrcQueue** const q = dice.any(found);
    return q == nullptr ? nullptr : *q;
  }
  void post_receive(XrcQueue& q) {
    std::size_t at = q.slot;
    const auto taken = [&](std::size_t s) {
      return std::any_of(q.receives.begin(), q.receives.end(),
                         [&](const WalkReceive& r) { return r.at == s * kSlot; });
    };
    while (taken(at)) ++at;
    const Sge two[] = {q.end->sge(at * kSlot, 700), q.end->sge(at * kSlot + 700, 2300)};
    const ReceiveRequest r{world_.next_id(), two};
    agree(q.srq.post_receive(r).ok(), "a receive is taken");
    q.receives.push_back({r.wr_id, at * kSlot, 3000});
  }
  static void look_at_limit(XrcQueue& q) {
    if (q.limit == 0 || q.receives.size() >= q.limit) return;
    q.limit = 0;
    q.end->want(EventKind::receive_limit, &q);
  }

  Completion& want(XrcPair& p, const SendRequest& r, WcStatus status) {
    Completion c;
    c.wr_id = r.wr_id;
    c.opcode = r.opcode;
    c.status = status;
    c.qp_number = p.qp.number();
    p.wanted.push_back(c);
    return p.wanted.back();
  }
  void one(XrcPair& p, XrcQueue& q, Dice& dice) {
    static constexpr Opcode kAll[] = {Opcode::send, Opcode::send_with_immediate, Opcode::write,
                                      Opcode::write_with_immediate, Opcode::read};
    WalkEnd &here = *p.end, &there = *q.end;
    const std::uint32_t length = dice.below(2900);
    const std::size_t at = slot_ % kSharedSlots * kSlot, far = (slot_ + 8) % kSharedSlots * kSlot;
    ++slot_;
    SendRequest r;
    r.wr_id = world_.next_id();
    r.opcode = kAll[dice.below(std::size(kAll))];
    r.flags = dice.one_in(2) ? send_signaled : 0u;
    r.remote_srq = q.srq.number();
    r.immediate = dice.number() & 0xffffffff;
    const Sge sge = here.sge(at, length);
    r.sges = {&sge, length == 0 ? 0u : 1u};
    r.rkey = there.regions.front()->mr.rkey();
    r.remote_address = there.regions.front()->area.base + far;
    const bool reads = r.opcode == Opcode::read;
    if (!reads) here.write(at, dice.bytes(length));
    const bool receives = !reads && r.opcode != Opcode::write;
    const bool late = receives && q.receives.empty() && dice.one_in(2);
    if (receives && q.receives.empty() && !late) post_receive(q);
    agree(p.qp.post_send(r).ok(), "a request is taken");
    world_.tell("request " + std::to_string(static_cast<int>(r.opcode)) + " of " +
                std::to_string(length) + " bytes by " + name(p) + " for " + name(q) +
                (late ? ", which has no receive" : ""));
    if (late) {
      world_.settle(3);
      post_receive(q);
    }
    if ((r.flags & send_signaled) != 0) {
      want(p, r, WcStatus::success).byte_len = reads ? length : 0;
    }
    count(p, *p.peer, r.opcode, length);
    const auto move = [&](WalkEnd& from, std::size_t a, WalkEnd& to, std::size_t b) {
      std::copy_n(from.model.begin() + static_cast<std::ptrdiff_t>(a), length,
                  to.model.begin() + static_cast<std::ptrdiff_t>(b));
    };
    if (reads) move(there, far, here, at);
    if (r.opcode == Opcode::write || r.opcode == Opcode::write_with_immediate) {
      move(here, at, there, far);
    }
    if (receives) {
      const WalkReceive into = q.receives.front();
      q.receives.pop_front();
      look_at_limit(q);
      Completion c;
      c.wr_id = into.id;
      c.opcode = Opcode::receive;
      c.qp_number = p.peer->qp.number();
      c.byte_len = length;
      c.behind_write = r.opcode == Opcode::write_with_immediate;
      c.with_immediate = r.opcode != Opcode::send;
      c.immediate = c.with_immediate ? r.immediate : 0;
      q.wanted.push_back(c);
      if (!c.behind_write) move(here, at, there, into.at);
    }
    world_.settle(4);
  }
  static void count(XrcPair& p, XrcPair& q, Opcode op, std::uint32_t length) {
    if (op == Opcode::read) {
      ++p.counts.reads_sent;
      p.counts.read_response_bytes_received += length;
      p.counts.payload_placed += length;
      ++q.counts.read_requests_received;
      ++q.counts.read_responses_sent;
      q.counts.read_response_bytes_sent += length;
      return;
    }
    q.counts.payload_placed += length;
    if (op != Opcode::write) ++q.counts.completion_cqe_writes;
    if (op == Opcode::write || op == Opcode::write_with_immediate) {
      ++p.counts.writes_sent;
      p.counts.write_bytes_sent += length;
      q.counts.write_bytes_received += length;
    } else {
      ++p.counts.sends_sent;
      ++q.counts.sends_received;
      p.counts.send_bytes_sent += length;
      q.counts.send_bytes_received += length;
    }
  }
  static void poll(CompletionQueue& cq, std::deque<Completion>* wanted, const std::string& who) {
    Completion is;
    while (cq.poll({&is, 1}) > 0) {
      agree(!wanted->empty(), who + "nothing was to complete");
      const Completion& c = wanted->front();
      agree_on(is.wr_id, c.wr_id, who + "wr_id");
      agree(is.status == c.status, who + "status " + to_string(is.status));
      agree_on(is.qp_number, c.qp_number, who + "qp_number");
      agree_on(static_cast<int>(is.opcode), static_cast<int>(c.opcode), who + "opcode");
      if (is.opcode == Opcode::receive || is.opcode == Opcode::read) {
        agree_on(is.byte_len, c.byte_len, who + "byte_len");
      }
      agree_on(is.behind_write, c.behind_write, who + "behind_write");
      agree_on(is.with_immediate, c.with_immediate, who + "with_immediate");
      agree_on(is.immediate, c.immediate, who + "immediate");
      wanted->pop_front();
    }
    agree(wanted->empty(), who + "completions that did not come");
  }

  WalkWorld& world_;
  std::vector<XrcDomain> domains_[2];
  std::vector<std::unique_ptr<XrcQueue>> queues_;
  std::vector<std::unique_ptr<XrcPair>> pairs_;
  std::vector<Gone> gone_;
  std::size_t slot_ = 0;
};

}  // namespace urnic::test
