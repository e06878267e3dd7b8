// The calls that HandVerbs (hand_verbs.h) implements.
#pragma once

#include "rsockets/hand_verbs.h"

namespace urnic::rsockets::hand {

inline HandVerbs* HandVerbs::the = nullptr;

struct Calls {
  static HandVerbs& v() { return *HandVerbs::the; }
  template <class T, class Base>
  static T* own(Base* base) {
    return reinterpret_cast<T*>(base);
  }
  static int fail(int e) {
    errno = e;
    return -1;
  }
  template <class T>
  static T* none(int e) {
    errno = e;
    return nullptr;
  }

  // ---- memory and queues

  static ibv_mr* reg_mr(ibv_pd* pd, void* at, std::size_t n, int access) {
    if (v().refused()) return none<ibv_mr>(ENOMEM);
    auto mr = std::make_unique<Mr>();
    mr->access = access;
    const std::uint32_t key = v().last_key_ += 2;
    mr->base = {pd->context, pd, at, n, 0, key, key + 1};
    return &(v().regions_[key / 2] = std::move(mr))->base;
  }
  static int dereg_mr(ibv_mr* mr) {
    if (v().regions_.erase(mr->lkey / 2) == 0) v().blame("a region goes twice");
    return 0;
  }
  static ibv_cq* create_cq(ibv_context* c, int depth, void* cookie, ibv_comp_channel* channel,
                           int) {
    if (v().refused()) return none<ibv_cq>(ENOMEM);
    if (channel->context != c) v().blame("a queue tells the channel of another device");
    auto cq = std::make_unique<Cq>();
    cq->base.context = c;
    cq->base.channel = channel;
    cq->base.cq_context = cookie;
    cq->depth = static_cast<std::size_t>(depth);
    ibv_cq* const made = &cq->base;
    v().queues_[made] = std::move(cq);
    return made;
  }
  static int destroy_cq(ibv_cq* cq) {
    for (const auto& [id, of] : v().ids_) {
      if (of->qp != nullptr && (of->qp->base.send_cq == cq || of->qp->base.recv_cq == cq)) {
        v().blame("a queue goes that a queue pair has");
      }
    }
    std::erase(own<Channel>(cq->channel)->events, own<Cq>(cq));
    if (v().queues_.erase(cq) == 0) v().blame("a queue goes twice");
    return 0;
  }
  static ibv_comp_channel* create_comp_channel(ibv_context* c) {
    if (v().refused()) return none<ibv_comp_channel>(ENOMEM);
    auto made = std::make_unique<Channel>();
    made->base.context = c;
    made->base.fd = epoll_create1(EPOLL_CLOEXEC);
    v().channels_.push_back(std::move(made));
    return &v().channels_.back()->base;
  }
  static int destroy_comp_channel(ibv_comp_channel* c) {
    close(c->fd);
    std::erase_if(v().channels_, [&](const auto& of) { return &of->base == c; });
    return 0;
  }
  static int get_cq_event(ibv_comp_channel* c, ibv_cq** cq, void** cookie) {
    auto& events = own<Channel>(c)->events;
    if (events.empty()) return fail(EAGAIN);
    *cq = &events.front()->base;
    *cookie = (*cq)->cq_context;
    events.pop_front();
    ++v().cq_events_;
    return 0;
  }
  static void ack_cq_events(ibv_cq*, unsigned n) { v().cq_events_ -= n; }
  static int poll_cq(ibv_cq* cq, int most, ibv_wc* out) {
    auto& done = own<Cq>(cq)->done;
    int n = 0;
    for (; n < most && !done.empty(); ++n) {
      out[n] = done.front().first;
      if (done.front().second != nullptr &&
          own<Cq>(done.front().second->base.send_cq) == own<Cq>(cq)) {
        --done.front().second->sends;
      }
      done.pop_front();
    }
    return n;
  }
  static int req_notify(ibv_cq* cq, int) {
    own<Cq>(cq)->armed = true;
    return 0;
  }

  // ---- posting

  static int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    Qp& q = *own<Qp>(qp);
    for (; wr != nullptr; wr = wr->next) {
      *bad = wr;
      if (q.sends >= q.cap.max_send_wr) {
        v().blame("a send queue is overrun");
        return ENOMEM;
      }
      if (wr->num_sge > static_cast<int>(q.cap.max_send_sge)) v().blame("too many parts");
      ++q.sends;
      Item item;
      item.kind = wr->opcode == IBV_WR_SEND ? Item::send : Item::write;
      item.wr_id = wr->wr_id;
      item.address = wr->wr.rdma.remote_addr;
      item.key = wr->wr.rdma.rkey;
      item.from.assign(wr->sg_list, wr->sg_list + wr->num_sge);
      if ((wr->send_flags & IBV_SEND_INLINE) != 0) take_inline(q, &item);
      Line* const line = q.id->line;
      if (line == nullptr || line->down) {
        v().complete(q, false, item.wr_id, IBV_WC_WR_FLUSH_ERR, 0);
      } else {
        line->way[q.id->side].push_back(std::move(item));
      }
    }
    return 0;
  }
  static void take_inline(const Qp& q, Item* item) {
    for (const ibv_sge& s : item->from) {
      const auto* at = reinterpret_cast<const std::uint8_t*>(s.addr);
      item->bytes.insert(item->bytes.end(), at, at + s.length);
    }
    item->from.clear();
    if (item->bytes.size() > q.cap.max_inline_data) v().blame("more inline than there may be");
  }
  static int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr**) {
    Qp& q = *own<Qp>(qp);
    if (q.receives.size() >= q.cap.max_recv_wr) v().blame("a receive queue is overrun");
    const Line* const line = q.id->line;
    if (line != nullptr && line->down) {
      v().complete(q, true, wr->wr_id, IBV_WC_WR_FLUSH_ERR, 0);
      return 0;
    }
    q.places.push_back(*wr->sg_list);
    q.receives.push_back(*wr);
    return 0;
  }
  static int create_qp(rdma_cm_id* id, ibv_pd*, ibv_qp_init_attr* a) {
    if (v().refused()) return fail(ENOMEM);
    Id& own_id = *own<Id>(id);
    auto q = std::make_unique<Qp>();
    q->base.context = id->verbs;
    q->base.send_cq = a->send_cq;
    q->base.recv_cq = a->recv_cq;
    q->cap = a->cap;
    q->id = &own_id;
    id->qp = &q->base;
    if (a->sq_sig_all == 0) v().blame("work whose end nobody is told");
    own_id.qp = std::move(q);
    return 0;
  }
  // Data posted before a FIN is still sent.
  static void destroy_qp(rdma_cm_id* id) {
    Id& own_id = *own<Id>(id);
    if (own_id.qp == nullptr) return v().blame("a queue pair goes twice");
    if (own_id.line != nullptr) {
      for (Item& i : own_id.line->way[own_id.side]) v().gather(*own_id.qp, &i);
      own_id.line->acks[own_id.side].clear();
    }
    for (auto& [cq, of] : v().queues_) {
      std::erase_if(of->done, [&](const auto& d) { return d.second == own_id.qp.get(); });
    }
    own_id.qp.reset();
    id->qp = nullptr;
  }

  // ---- identifiers

  static int create_id(rdma_event_channel* channel, rdma_cm_id** out, void* cookie,
                       rdma_port_space) {
    if (v().refused()) return fail(ENOMEM);
    auto id = std::make_unique<Id>();
    id->base.channel = channel;
    id->base.context = cookie;
    source_of(&id->base).sin_family = destination_of(&id->base).sin_family = AF_INET;
    rdma_cm_id* const made = &id->base;
    v().ids_[made] = std::move(id);
    *out = made;  // set when nothing can fail any more
    return 0;
  }
  static int destroy_id(rdma_cm_id* id) {
    if (v().ids_.count(id) == 0) {
      v().blame("an identifier goes twice");
      return 0;
    }
    if (own<Id>(id)->qp != nullptr) v().blame("an identifier goes with its queue pair");
    v().drop(own<Id>(id));
    return 0;
  }
  static int migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
    id->channel = channel;
    return 0;
  }
  static int set_option(rdma_cm_id* id, int, int name, void* value, std::size_t) {
    if (name == RDMA_OPTION_ID_REUSEADDR) own<Id>(id)->reuse = *static_cast<int*>(value) != 0;
    return 0;
  }
  static int bind_addr(rdma_cm_id* id, sockaddr* a) {
    sockaddr_in to = *reinterpret_cast<sockaddr_in*>(a);
    const std::uint32_t ip = ntohl(to.sin_addr.s_addr);
    if (ip != INADDR_ANY && ip != INADDR_LOOPBACK && ip != INADDR_LOOPBACK + 1) return fail(ENODEV);
    if (to.sin_port == 0) to.sin_port = htons(++v().last_port_);
    for (const auto& [other, of] : v().ids_) {
      sockaddr_in& theirs = source_of(&of->base);
      if (other == id || of->line != nullptr || theirs.sin_port != to.sin_port) continue;
      if (!(of->reuse && own<Id>(id)->reuse)) return fail(EADDRINUSE);
    }
    source_of(id) = to;
    return 0;
  }
  static int resolve_addr(rdma_cm_id* id, sockaddr*, sockaddr* to, int) {
    destination_of(id) = *reinterpret_cast<sockaddr_in*>(to);
    const std::uint32_t ip = ntohl(destination_of(id).sin_addr.s_addr);
    if (ip != INADDR_LOOPBACK && ip != INADDR_LOOPBACK + 1) return fail(EHOSTUNREACH);
    if (source_of(id).sin_port == 0) source_of(id).sin_port = htons(++v().last_port_);
    source_of(id).sin_addr.s_addr = htonl(ip);
    give_device(id, ip);
    return 0;
  }
  static void give_device(rdma_cm_id* id, std::uint32_t ip) {
    id->verbs = &v().contexts_[ip - INADDR_LOOPBACK];
    id->pd = &v().domains_[ip - INADDR_LOOPBACK];
  }
  static int resolve_route(rdma_cm_id*, int) { return v().refused() ? fail(ENOMEM) : 0; }
  static int listen(rdma_cm_id* id, int) {
    if (source_of(id).sin_port == 0) source_of(id).sin_port = htons(++v().last_port_);
    for (const auto& [other, of] : v().ids_) {
      if (of->listens && source_of(&of->base).sin_port == source_of(id).sin_port)
        return fail(EADDRINUSE);
    }
    own<Id>(id)->listens = true;
    return 0;
  }

  // ---- connections

  static std::string said(const rdma_conn_param& p) {
    if (p.retry_count != 7 || p.rnr_retry_count != 7) v().blame("it does not try for ever");
    if (p.responder_resources != 1 || p.initiator_depth != 1) v().blame("other depths of reads");
    return {static_cast<const char*>(p.private_data), p.private_data_len};
  }
  static int connect(rdma_cm_id* id, rdma_conn_param* p) {
    if (v().refused()) return fail(ENOMEM);
    Id& own_id = *own<Id>(id);
    Line& line = v().lines_.emplace_back();
    line.end[0] = &own_id;
    own_id.line = &line;
    line.way[0].push_back({Item::request, said(*p), 0, 0, 0, {}, {}});
    return 0;
  }
  static int accept(rdma_cm_id* id, rdma_conn_param* p) {
    if (v().refused()) return fail(ENOMEM);
    Id& own_id = *own<Id>(id);
    own_id.answered = true;
    if (own_id.line->down) {
      v().tell(&own_id, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
    } else {
      own_id.line->way[1].push_back({Item::reply, said(*p), 0, 0, 0, {}, {}});
    }
    return 0;
  }
  static int reject(rdma_cm_id* id, const void*, std::uint8_t) {
    Id& own_id = *own<Id>(id);
    if (own_id.answered) return fail(EINVAL);
    own_id.answered = true;
    own_id.line->way[1].push_back({Item::reject, {}, 0, 0, 0, {}, {}});
    return 0;
  }
  static int disconnect(rdma_cm_id* id) {
    Id& own_id = *own<Id>(id);
    if (own_id.line == nullptr || own_id.line->down) return fail(EINVAL);
    if (own_id.side == 1 && !own_id.answered) return fail(EINVAL);
    own_id.line->way[own_id.side].push_back({});
    return 0;
  }

  // ---- events

  static rdma_event_channel* create_event_channel() { return &v().events_channel_; }
  static int get_cm_event(rdma_event_channel*, rdma_cm_event** out) {
    if (v().events_.empty()) return fail(EAGAIN);
    *out = &v().events_.front().release()->base;
    v().events_.pop_front();
    ++v().unacknowledged_;
    return 0;
  }
  static int ack_cm_event(rdma_cm_event* e) {
    --v().unacknowledged_;
    delete own<Event>(e);
    return 0;
  }
  static int start(Service&) { return v().refused() ? EAGAIN : 0; }
};

}  // namespace urnic::rsockets::hand
