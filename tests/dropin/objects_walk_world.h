// The objects of verbs in a walk: their attributes, which objects use them, and which may be
// destroyed.
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <optional>

#include "dropin/calls_walk.h"

namespace calls_walk {

// An object that has users and may only be destroyed when it has none.
struct Object {
  int users = 0;
};
struct Domain : Object {
  ibv_pd* pd = nullptr;
  Domain* parent = nullptr;
  // A parent domain is another handle of this domain.
  const Domain& root() const { return parent != nullptr ? parent->root() : *this; }
};
struct Channel : Object {
  ibv_comp_channel* channel = nullptr;
};
struct Queue : Object {
  ibv_cq* cq = nullptr;
  Channel* channel = nullptr;
  int armed = 0;  // 1: for solicited completions, 2: for all
  unsigned unacknowledged = 0;
  struct Done {
    std::uint64_t wr_id;
    std::uint32_t qp_num;
  };
  std::deque<Done> flushed;  // completions that were not polled
};
struct Shared : Object {
  ibv_srq* srq = nullptr;
  Domain* domain = nullptr;
  std::uint32_t max_wr = 0, max_sge = 0, limit = 0, posted = 0;
  std::vector<ibv_async_event> held;
};
struct Region {
  ibv_mr* mr = nullptr;
  Domain* domain = nullptr;
  std::uint8_t* at = nullptr;
  std::size_t length = 0;
};
struct Window {
  ibv_mw* mw = nullptr;
  Domain* domain = nullptr;
};
struct Way {
  ibv_ah* ah = nullptr;
  Domain* domain = nullptr;
};
struct Pair {
  ibv_qp* qp = nullptr;
  ibv_qp_type type = IBV_QPT_RC;
  Domain* domain = nullptr;
  Queue *send = nullptr, *receive = nullptr;
  Shared* shared = nullptr;
  ibv_qp_cap cap{};
  bool signals_all = false;
  ibv_qp_state state = IBV_QPS_RESET;
  ibv_qp_attr given{};  // other attributes that a query returns
  int known = 0;        // bits of `given` that were set since the last RESET
  std::deque<std::uint64_t> receives;
  std::vector<ibv_async_event> held;
};

class Objects {
 public:
  Objects(bool roce, std::vector<std::string>* told) : is_roce(roce), told_(*told) {
    ibv_device** const list = ibv_get_device_list(nullptr);
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    agree(context != nullptr, "ibv_open_device");
    agree_on(ibv_query_gid(context, 1, 0, &gid), 0, "ibv_query_gid");
  }
  ~Objects() {  // also runs after a disagreement
    for (Pair& p : pairs) {
      for (ibv_async_event& e : p.held) ibv_ack_async_event(&e);
      if (p.qp != nullptr) ibv_destroy_qp(p.qp);
    }
    for (Way& w : ways) ibv_destroy_ah(w.ah);
    for (Window& w : windows) ibv_dealloc_mw(w.mw);
    for (Region& r : regions) ibv_dereg_mr(r.mr);
    for (Shared& s : shared) {
      for (ibv_async_event& e : s.held) ibv_ack_async_event(&e);
      if (s.srq != nullptr) ibv_destroy_srq(s.srq);
    }
    for (Queue& q : queues) {
      if (q.cq == nullptr) continue;
      ibv_ack_cq_events(q.cq, q.unacknowledged);
      ibv_destroy_cq(q.cq);
    }
    for (Channel& c : channels) ibv_destroy_comp_channel(c.channel);
    for (auto d = domains.rbegin(); d != domains.rend(); ++d) ibv_dealloc_pd(d->pd);
    if (context != nullptr) ibv_close_device(context);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  void tell(const std::string& what) { told_.push_back(what); }
  template <class T>
  static T* any(std::list<T>& of, Dice& dice) {
    if (of.empty()) return nullptr;
    return &*std::next(of.begin(), dice.below(of.size()));
  }
  template <class T>
  static void erase(std::list<T>& of, const T* one) {
    of.remove_if([one](const T& each) { return &each == one; });
  }
  // The result of destroying an object that may have users.
  static int busy(const Object& o) { return o.users != 0 ? EBUSY : 0; }

  // The next asynchronous event.
  ibv_async_event next_event() {
    agree(Patience::is_readable(context->async_fd), "no asynchronous event");
    ibv_async_event e{};
    agree_on(error_of(ibv_get_async_event(context, &e)), 0, "ibv_get_async_event");
    return e;
  }
  // Handles the event of an armed queue after a completion.
  void has_come(Queue& q, Dice& dice) {
    if (q.channel == nullptr) return;
    if (q.armed == 0) return;
    q.armed = 0;
    agree(Patience::is_readable(q.cq->channel->fd), "a queue that is armed tells");
    ibv_cq* which = nullptr;
    void* its = nullptr;
    agree_on(error_of(ibv_get_cq_event(q.cq->channel, &which, &its)), 0, "ibv_get_cq_event");
    agree(which == q.cq && its == &q, "the queue that tells");
    if (dice.one_in(2)) {
      ++q.unacknowledged;
    } else {
      ibv_ack_cq_events(which, 1);
    }
  }

  const bool is_roce;
  ibv_context* context = nullptr;
  ibv_gid gid{};
  std::list<Domain> domains;
  std::list<Channel> channels;
  std::list<Queue> queues;
  std::list<Shared> shared;
  std::list<Region> regions;
  std::list<Window> windows;
  std::list<Way> ways;
  std::list<Pair> pairs;
  std::uint8_t memory[4096] = {};

 private:
  std::vector<std::string>& told_;
};

}  // namespace calls_walk
