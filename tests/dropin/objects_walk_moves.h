// Steps of the walk over the objects of verbs other than queue pairs: domains, completion queues,
// channels, shared queues, memory and address handles.
#pragma once

#include "dropin/objects_walk_pairs.h"

namespace calls_walk {

class ObjectMoves {
 public:
  explicit ObjectMoves(Objects& world) : w_(world), pairs_(world) {}

  PairMoves& pairs() { return pairs_; }

  void make_domain(Dice& dice) {
    if (w_.domains.size() >= 4) return;
    Domain d;
    d.parent = dice.one_in(3) ? Objects::any(w_.domains, dice) : nullptr;
    if (d.parent != nullptr) {
      ibv_parent_domain_init_attr a{};
      a.pd = d.parent->pd;
      d.pd = ibv_alloc_parent_domain(w_.context, &a);
    } else {
      d.pd = ibv_alloc_pd(w_.context);
    }
    agree(d.pd != nullptr && d.pd->context == w_.context, "a domain is made");
    if (d.parent != nullptr) ++d.parent->users;
    w_.domains.push_back(d);
  }
  void make_channel(Dice&) {
    if (w_.channels.size() >= 3) return;
    Channel c;
    c.channel = ibv_create_comp_channel(w_.context);
    agree(c.channel != nullptr && c.channel->context == w_.context && c.channel->refcnt == 0,
          "a channel is made");
    w_.channels.push_back(c);
  }
  void make_queue(Dice& dice) {
    if (w_.queues.size() >= 5) return;
    errno = 0;
    agree_on(error_of(ibv_create_cq(w_.context, 0, nullptr, nullptr, 0)), EINVAL, "a queue of 0");
    agree_on(error_of(ibv_create_cq(w_.context, 9, nullptr, nullptr, 1)), EINVAL, "a vector");
    w_.queues.emplace_back();
    Queue& q = w_.queues.back();
    q.channel = dice.one_in(2) ? Objects::any(w_.channels, dice) : nullptr;
    const int entries = static_cast<int>(dice.between(40, 90));
    q.cq = ibv_create_cq(w_.context, entries, &q,
                         q.channel != nullptr ? q.channel->channel : nullptr, 0);
    if (q.cq == nullptr) w_.queues.pop_back();
    agree(q.cq != nullptr, "ibv_create_cq");
    agree(q.cq->cqe >= entries && q.cq->cq_context == &q && q.cq->context == w_.context,
          "what a queue shows");
    if (q.channel != nullptr) ++q.channel->users;
    agree_channel(q.channel);
  }
  void make_shared(Dice& dice) {
    Domain* const d = Objects::any(w_.domains, dice);
    if (d == nullptr || w_.shared.size() >= 3) return;
    ibv_srq_init_attr a{};
    agree_on(error_of(ibv_create_srq(d->pd, &a)), EINVAL, "a shared queue of 0");
    w_.shared.emplace_back();
    Shared& s = w_.shared.back();
    a.attr = {dice.between(5, 8), dice.between(2, 3), dice.between(1, 4)};
    a.srq_context = &s;
    s.srq = ibv_create_srq(d->pd, &a);
    if (s.srq == nullptr) w_.shared.pop_back();
    agree(s.srq != nullptr, "ibv_create_srq");
    s.domain = d;
    s.max_wr = a.attr.max_wr;
    s.max_sge = a.attr.max_sge;
    agree(s.srq->pd == d->pd && s.srq->srq_context == &s && s.srq->context == w_.context,
          "what a shared queue shows");
    ++d->users;
    agree_shared(s);
  }
  void make_region(Dice& dice) {
    Domain* const d = Objects::any(w_.domains, dice);
    if (d == nullptr || w_.regions.size() >= 5) return;
    agree_on(error_of(ibv_reg_mr(d->pd, w_.memory, 64, IBV_ACCESS_REMOTE_WRITE)), EINVAL,
             "a right without the one it needs");
    agree_on(error_of(ibv_reg_mr(d->pd, w_.memory, 64, IBV_ACCESS_ON_DEMAND)), EOPNOTSUPP,
             "memory on demand");
    agree_on(error_of(ibv_reg_mr(d->pd, nullptr, 64, 0)), EFAULT, "memory that is not there");
    Region r{nullptr, d, w_.memory + dice.below(1000), dice.between(1, 2000)};
    r.mr = ibv_reg_mr(d->pd, r.at, r.length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    agree(r.mr != nullptr, "ibv_reg_mr");
    ++d->users;
    w_.regions.push_back(r);
    agree_region(r);
  }
  void change_region(Dice& dice) {
    Region* const r = Objects::any(w_.regions, dice);
    if (r == nullptr) return;
    const std::uint32_t key = r->mr->lkey;
    int flags = 0;
    Domain* const d = Objects::any(w_.domains, dice);
    Region wanted = *r;
    if (dice.one_in(2)) {
      flags |= IBV_REREG_MR_CHANGE_TRANSLATION;
      wanted.at = w_.memory + dice.between(1001, 2000);
      wanted.length = dice.between(1, 1500);
    }
    if (dice.one_in(2)) {
      flags |= IBV_REREG_MR_CHANGE_PD;
      wanted.domain = d;
    }
    const bool rights = dice.one_in(2);
    if (rights) flags |= IBV_REREG_MR_CHANGE_ACCESS;
    if (dice.one_in(5)) {
      agree_on(ibv_rereg_mr(r->mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                            IBV_ACCESS_REMOTE_ATOMIC),
               int{IBV_REREG_MR_ERR_CMD}, "rights that do not fit");
      agree_region(*r);
    }
    if (flags == 0) return;
    agree_on(ibv_rereg_mr(r->mr, flags, d->pd, wanted.at, wanted.length,
                          rights ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ : 0),
             0, "ibv_rereg_mr");
    const bool is_elsewhere = &wanted.domain->root() != &r->domain->root();
    if (wanted.domain != r->domain) {
      --r->domain->users;
      ++wanted.domain->users;
    }
    *r = wanted;
    agree((r->mr->lkey != key) == ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 || is_elsewhere),
          "a new key for other memory and in another domain");
    agree_region(*r);
  }
  void make_window(Dice& dice) {
    Domain* const d = Objects::any(w_.domains, dice);
    if (d == nullptr || w_.windows.size() >= 4) return;
    const ibv_mw_type type = dice.one_in(2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
    agree_on(error_of(ibv_alloc_mw(d->pd, static_cast<ibv_mw_type>(3))), EINVAL, "a third type");
    ibv_mw* const mw = ibv_alloc_mw(d->pd, type);
    agree(mw != nullptr && mw->type == type && mw->pd == d->pd && mw->context == w_.context,
          "a window is made");
    ++d->users;
    w_.windows.push_back({mw, d});
  }
  void make_way(Dice& dice) {
    Domain* const d = Objects::any(w_.domains, dice);
    if (d == nullptr || w_.ways.size() >= 4) return;
    ibv_ah_attr a{};
    a.port_num = 1;
    a.is_global = 1;
    a.grh.dgid = w_.gid;
    if (!w_.is_roce) {
      agree_on(error_of(ibv_create_ah(d->pd, &a)), EOPNOTSUPP, "a way over iWARP");
      return;
    }
    a.port_num = 2;
    agree_on(error_of(ibv_create_ah(d->pd, &a)), EINVAL, "another port");
    a.port_num = 1;
    ibv_ah* const ah = ibv_create_ah(d->pd, &a);
    agree(ah != nullptr && ah->pd == d->pd && ah->context == w_.context, "ibv_create_ah");
    ++d->users;
    w_.ways.push_back({ah, d});
  }

  // ---- queues

  void arm(Dice& dice) {
    Queue* const q = Objects::any(w_.queues, dice);
    if (q == nullptr || !q->flushed.empty()) return;
    const int solicited = static_cast<int>(dice.below(2));
    agree_on(ibv_req_notify_cq(q->cq, solicited), 0, "ibv_req_notify_cq");
    q->armed = q->armed == 2 || solicited == 0 ? 2 : 1;  // both report errors
  }
  void poll(Dice& dice) {
    Queue* const q = Objects::any(w_.queues, dice);
    if (q == nullptr) return;
    ibv_wc wc[4]{};
    const int n = ibv_poll_cq(q->cq, static_cast<int>(dice.between(1, 4)), wc);
    agree(
        n >= 0 && static_cast<std::size_t>(n) <= q->flushed.size() && (n > 0 || q->flushed.empty()),
        "how many completions there are");
    for (int i = 0; i < n; ++i) {
      agree(wc[i].status == IBV_WC_WR_FLUSH_ERR && wc[i].opcode == IBV_WC_RECV,
            "what a flushed receive says");
      agree_on(wc[i].wr_id, q->flushed.front().wr_id, "wr_id");
      agree_on(wc[i].qp_num, q->flushed.front().qp_num, "qp_num");
      q->flushed.pop_front();
    }
  }
  void resize(Dice& dice) {
    Queue* const q = Objects::any(w_.queues, dice);
    if (q == nullptr) return;
    agree_on(ibv_resize_cq(q->cq, 0), EINVAL, "a queue without room");
    const int entries = static_cast<int>(dice.between(40, 200));
    agree_on(ibv_resize_cq(q->cq, entries), 0, "ibv_resize_cq");
    agree(q->cq->cqe >= entries && q->cq->cqe <= 2 * entries, "the room of a queue");
  }
  void acknowledge(Dice& dice) {
    Queue* const q = Objects::any(w_.queues, dice);
    if (q == nullptr || q->unacknowledged == 0) return;
    const unsigned n = dice.between(1, q->unacknowledged);
    ibv_ack_cq_events(q->cq, n);
    q->unacknowledged -= n;
  }

  // ---- shared queues

  void post_shared(Dice& dice) {
    Shared* const s = Objects::any(w_.shared, dice);
    if (s == nullptr) return;
    ibv_recv_wr wr{}, *bad = nullptr;
    const bool is_full = s->posted == s->max_wr;
    agree_on(ibv_post_srq_recv(s->srq, &wr, &bad), is_full ? ENOMEM : 0, "ibv_post_srq_recv");
    agree(!is_full || bad == &wr, "the receive that was not taken");
    if (!is_full) ++s->posted;
  }
  // If fewer receives than that are posted, the event arrives at once.
  void limit(Dice& dice) {
    Shared* const s = Objects::any(w_.shared, dice);
    if (s == nullptr) return;
    ibv_srq_attr a{};
    a.srq_limit = s->max_wr + 1;
    agree_on(ibv_modify_srq(s->srq, &a, IBV_SRQ_LIMIT), EINVAL, "a limit above the queue");
    agree_on(ibv_modify_srq(s->srq, &a, IBV_SRQ_MAX_WR), EOPNOTSUPP, "another size");
    agree_shared(*s);
    a.srq_limit = dice.below(s->max_wr + 1);
    agree_on(ibv_modify_srq(s->srq, &a, IBV_SRQ_LIMIT), 0, "ibv_modify_srq");
    s->limit = a.srq_limit;
    if (s->posted < a.srq_limit) {
      ibv_async_event e = w_.next_event();
      agree_on(int{e.event_type}, int{IBV_EVENT_SRQ_LIMIT_REACHED}, "an asynchronous event");
      agree(e.element.srq == s->srq, "whose event it is");
      s->limit = 0;
      if (dice.one_in(2)) {
        s->held.push_back(e);
      } else {
        ibv_ack_async_event(&e);
      }
    }
    agree_shared(*s);
  }

  // ---- destroying, in any order

  void destroy(Dice& dice) {
    switch (dice.below(8)) {
      case 0:
        if (Pair* const p = Objects::any(w_.pairs, dice); p != nullptr) pairs_.destroy(*p, dice);
        return;
      case 1:
        if (Domain* const d = Objects::any(w_.domains, dice); d != nullptr) drop(*d);
        return;
      case 2:
        if (Queue* const q = Objects::any(w_.queues, dice); q != nullptr) drop(*q);
        return;
      case 3:
        if (Channel* const c = Objects::any(w_.channels, dice); c != nullptr) drop(*c);
        return;
      case 4:
        if (Shared* const s = Objects::any(w_.shared, dice); s != nullptr) drop(*s);
        return;
      case 5:
        if (Region* const r = Objects::any(w_.regions, dice); r != nullptr) drop(*r);
        return;
      case 6:
        if (Window* const w = Objects::any(w_.windows, dice); w != nullptr) drop(*w);
        return;
      default:
        if (Way* const w = Objects::any(w_.ways, dice); w != nullptr) drop(*w);
    }
  }
  // Destroys everything, starting with objects without users.
  void destroy_all(Dice& dice) {
    while (!w_.pairs.empty()) pairs_.destroy(*Objects::any(w_.pairs, dice), dice);
    while (!w_.ways.empty()) drop(w_.ways.back());
    while (!w_.windows.empty()) drop(w_.windows.front());
    while (!w_.regions.empty()) drop(*Objects::any(w_.regions, dice));
    while (!w_.shared.empty()) drop(*Objects::any(w_.shared, dice));
    while (!w_.queues.empty()) drop(*Objects::any(w_.queues, dice));
    while (!w_.channels.empty()) drop(*Objects::any(w_.channels, dice));
    while (!w_.domains.empty()) drop(*Objects::any(w_.domains, dice));
    agree_on(ibv_close_device(w_.context), 0, "ibv_close_device");
    w_.context = nullptr;
  }

 private:
  static void agree_channel(const Channel* c) {
    if (c != nullptr) agree_on(c->channel->refcnt, c->users, "refcnt of a channel");
  }
  static void agree_shared(const Shared& s) {
    ibv_srq_attr a{};
    agree_on(ibv_query_srq(s.srq, &a), 0, "ibv_query_srq");
    agree_on(a.max_wr, s.max_wr, "max_wr");
    agree_on(a.max_sge, s.max_sge, "max_sge");
    agree_on(a.srq_limit, s.limit, "srq_limit");
  }
  static void agree_region(const Region& r) {
    agree(r.mr->addr == r.at && r.mr->length == r.length && r.mr->pd == r.domain->pd &&
              r.mr->rkey == r.mr->lkey,
          "what a region shows");
  }

  void drop(Domain& d) {
    const int must = Objects::busy(d);
    agree_on(ibv_dealloc_pd(d.pd), must, "ibv_dealloc_pd");
    if (must != 0) return;
    if (d.parent != nullptr) --d.parent->users;
    Objects::erase(w_.domains, &d);
  }
  void drop(Queue& q) {
    const int must = Objects::busy(q);
    const auto call = [&] { agree_on(ibv_destroy_cq(q.cq), must, "ibv_destroy_cq"); };
    if (must != 0 || q.unacknowledged == 0) {
      call();
    } else {
      destroy_waits(
          "ibv_destroy_cq", call, [&] { ibv_ack_cq_events(q.cq, q.unacknowledged); },
          [&] { q.unacknowledged = 0, q.cq = nullptr; });
    }
    if (must != 0) return;
    if (q.channel != nullptr) --q.channel->users;
    agree_channel(q.channel);
    Objects::erase(w_.queues, &q);
  }
  void drop(Channel& c) {
    const int must = Objects::busy(c);
    agree_on(ibv_destroy_comp_channel(c.channel), must, "ibv_destroy_comp_channel");
    if (must == 0) Objects::erase(w_.channels, &c);
  }
  void drop(Shared& s) {
    const int must = Objects::busy(s);
    const auto call = [&] { agree_on(ibv_destroy_srq(s.srq), must, "ibv_destroy_srq"); };
    if (must != 0 || s.held.empty()) {
      call();
    } else {
      destroy_waits(
          "ibv_destroy_srq", call,
          [&] {
            for (ibv_async_event& e : s.held) ibv_ack_async_event(&e);
          },
          [&] { s.held.clear(), s.srq = nullptr; });
    }
    if (must != 0) return;
    s.held.clear();
    --s.domain->users;
    Objects::erase(w_.shared, &s);
  }
  void drop(Region& r) {
    agree_on(ibv_dereg_mr(r.mr), 0, "ibv_dereg_mr");
    --r.domain->users;
    Objects::erase(w_.regions, &r);
  }
  void drop(Window& w) {
    agree_on(ibv_dealloc_mw(w.mw), 0, "ibv_dealloc_mw");
    --w.domain->users;
    Objects::erase(w_.windows, &w);
  }
  void drop(Way& w) {
    agree_on(ibv_destroy_ah(w.ah), 0, "ibv_destroy_ah");
    --w.domain->users;
    Objects::erase(w_.ways, &w);
  }

  Objects& w_;
  PairMoves pairs_;
};

}  // namespace calls_walk
