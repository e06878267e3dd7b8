// The identifiers and channels of a walk over rdma_cm, and the comparison of their events with the
// model.
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>

#include <cstring>
#include <set>

#include "dropin/cm_walk_ids.h"

namespace calls_walk {

class CmWorld {
 public:
  CmWorld(bool roce, const std::string& address, std::vector<std::string>* told)
      : is_roce(roce), address_(address), told_(*told) {
    for (int i = 0; i < 3; ++i) channels.push_back(rdma_create_event_channel());
    for (rdma_event_channel* c : channels) agree(c != nullptr, "a channel is made");
  }
  ~CmWorld() {  // also runs after a disagreement
    for (auto& i : ids) acknowledge_all(*i);
    while (!ids.empty()) {
      Id& i = *ids.back();
      for (auto& [cq, n] : i.q.unacknowledged) ibv_ack_cq_events(cq, n);
      if (i.id != nullptr) {
        rdma_destroy_qp(i.id);
        rdma_destroy_srq(i.id);
        rdma_destroy_id(i.id);
        i.q.qp = nullptr;
      }
      free_queues(i);
      ids.pop_back();
    }
    for (rdma_event_channel* c : channels) rdma_destroy_event_channel(c);
  }
  CmWorld(const CmWorld&) = delete;
  CmWorld& operator=(const CmWorld&) = delete;

  void tell(const std::string& what) { told_.push_back(what); }
  static std::string name(const Id& i) { return "#" + std::to_string(i.name); }
  sockaddr_in at(__be16 port) const {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    inet_pton(AF_INET, address_.c_str(), &a.sin_addr);
    a.sin_port = port;
    return a;
  }
  static sockaddr* any(sockaddr_in& a) { return reinterpret_cast<sockaddr*>(&a); }

  // ---- identifiers

  Id& make(rdma_event_channel* channel) {
    auto i = std::make_unique<Id>();
    i->name = ++last_name_;
    i->channel = channel;
    i->context = i.get();
    agree_on(error_of(rdma_create_id(channel, &i->id, i.get(), RDMA_PS_TCP)), 0, "rdma_create_id");
    agree(i->id->channel == channel && i->id->context == i.get(), "what a new id shows");
    agree(i->id->verbs == nullptr && i->id->qp == nullptr, "a new id has no device");
    agree(i->id->ps == RDMA_PS_TCP && i->id->qp_type == IBV_QPT_RC, "the port space of a new id");
    ids.push_back(std::move(i));
    return *ids.back();
  }
  std::vector<Id*> those(Stage stage) {
    std::vector<Id*> found;
    for (auto& i : ids) {
      if (i->stage == stage) found.push_back(i.get());
    }
    return found;
  }
  Id* one(Dice& dice, Stage stage) {
    auto found = those(stage);
    Id** const i = dice.any(found);
    return i == nullptr ? nullptr : *i;
  }
  void forget(const Id& gone) {
    for (auto& i : ids) {
      if (i->peer == &gone) i->peer = nullptr;
      if (i->listener == &gone) i->listener = nullptr;
      for (Wanted& w : i->wanted) {
        if (w.client == &gone) w.client = nullptr;
      }
    }
    std::erase_if(ids, [&](const auto& i) { return i.get() == &gone; });
  }

  // ---- events

  // Fetches every event that must arrive. `dice` decides which are acknowledged late.
  void settle(Dice& dice) {
    for (rdma_event_channel* c : channels) {
      while (has_news(c)) {
        const std::string missing = news_of(c);
        agree(Patience::is_readable(c->fd), "there is no event: " + missing);
        take(c, dice);
      }
      while (is_readable_now(c->fd)) take(c, dice);
    }
  }
  void acknowledge(Id& i, std::size_t at) {
    const Held h = i.held[at];
    compare(*h.event, h.was, i);  // it must be unchanged
    i.held.erase(i.held.begin() + static_cast<std::ptrdiff_t>(at));
    agree_on(rdma_ack_cm_event(h.event), 0, "rdma_ack_cm_event");
  }
  void acknowledge_all(Id& i) {
    for (const Held& h : i.held) rdma_ack_cm_event(h.event);
    i.held.clear();
  }

  // ---- queues

  static void free_queues(Id& i) {
    Queues& q = i.q;
    if (q.qp != nullptr) ibv_destroy_qp(q.qp);
    if (q.own_srq != nullptr) ibv_destroy_srq(q.own_srq);
    if (q.own_send != nullptr) ibv_destroy_cq(q.own_send);
    if (q.own_receive != nullptr && q.own_receive != q.own_send) ibv_destroy_cq(q.own_receive);
    if (q.mr != nullptr) ibv_dereg_mr(q.mr);
    q = {};
  }

  const bool is_roce;
  std::vector<rdma_event_channel*> channels;
  std::vector<std::unique_ptr<Id>> ids;
  std::set<__be16> ports;  // of all bound identifiers

 private:
  bool has_news(const rdma_event_channel* c) const {
    return std::any_of(ids.begin(), ids.end(),
                       [&](const auto& i) { return i->channel == c && i->has_news(); });
  }
  std::string news_of(const rdma_event_channel* c) const {
    std::string all;
    for (const auto& i : ids) {
      if (i->channel != c || !i->has_news()) continue;
      all += name(*i) + " " + rdma_event_str(i->wanted.front().type) + " ";
    }
    return all;
  }
  Id* find(const rdma_cm_id* id) {
    for (auto& i : ids) {
      if (i->id == id) return i.get();
    }
    return nullptr;
  }

  void take(rdma_event_channel* c, Dice& dice) {
    rdma_cm_event* e = nullptr;
    agree_on(error_of(rdma_get_cm_event(c, &e)), 0, "rdma_get_cm_event");
    // Acknowledged also after a disagreement, because its id is destroyed then.
    std::unique_ptr<rdma_cm_event, void (*)(rdma_cm_event*)> taken(
        e, [](rdma_cm_event* event) { rdma_ack_cm_event(event); });
    const bool asks = e->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    Id* const i = find(asks ? e->listen_id : e->id);
    agree(i != nullptr && i->channel == c, "an event of another channel's id");
    const Wanted* const w = wanted_by(*i, *e);
    const Wanted was = *w;
    i->wanted.erase(i->wanted.begin() + (w - &i->wanted.front()));
    compare(*e, was, *i);
    if (asks) be_asked(*i, *e, *was.client);
    if (dice.one_in(4)) i->held.push_back({taken.release(), was});
  }
  // The next event that must arrive, or an earlier optional one; for requests, the one that
  // arrived.
  const Wanted* wanted_by(Id& i, const rdma_cm_event& e) const {
    for (Wanted& w : i.wanted) {
      if (w.client != nullptr && e.event == w.type) {
        if (rdma_get_dst_port(e.id) == rdma_get_src_port(w.client->id)) return &w;
        continue;
      }
      if (w.type == e.event) return &w;
      if (!w.optional) break;
    }
    throw urnic::test::Disagreement(
        name(i) + " has an event that does not come: " + rdma_event_str(e.event) + " " +
        std::to_string(e.status) + "; instead of " + news_of(i.channel));
  }
  void compare(const rdma_cm_event& e, const Wanted& w, const Id& i) const {
    const std::string what = name(i) + " " + rdma_event_str(w.type) + " ";
    const rdma_conn_param &is = e.param.conn, &must = w.conn;
    agree_on(e.status, w.status, what + "status");
    agree_on(is.responder_resources, must.responder_resources, what + "responder_resources");
    agree_on(is.initiator_depth, must.initiator_depth, what + "initiator_depth");
    agree_on(is.flow_control, must.flow_control, what + "flow_control");
    agree_on(is.retry_count, must.retry_count, what + "retry_count");
    agree_on(is.rnr_retry_count, must.rnr_retry_count, what + "rnr_retry_count");
    agree_on(is.srq, must.srq, what + "srq");
    agree_on(is.qp_num, must.qp_num, what + "qp_num");
    agree_on(is.private_data_len, w.data.size(), what + "private_data_len");
    agree(w.data.empty() || std::memcmp(is.private_data, w.data.data(), w.data.size()) == 0,
          what + "private data");
    const bool asks = w.type == RDMA_CM_EVENT_CONNECT_REQUEST;
    agree(e.listen_id == (asks ? i.id : nullptr), what + "listen_id");
  }

  // Creates the new id of a request.
  void be_asked(Id& listener, const rdma_cm_event& e, Id& client) {
    auto made = std::make_unique<Id>();
    Id& s = *made;
    s.name = ++last_name_;
    s.id = e.id;
    s.channel = listener.channel;
    s.context = listener.context;
    s.stage = Stage::requested;
    s.is_passive = true;
    s.peer = &client;
    s.listener = &listener;
    s.ask = client.ask;
    client.peer = &s;
    agree(s.id->channel == s.channel, "a request's id has the listener's channel");
    agree(s.id->context == s.context, "a request's id has the listener's context");
    agree(s.id->ps == RDMA_PS_TCP && s.id->qp_type == IBV_QPT_RC, "the port space of a request");
    agree(s.id->verbs == client.id->verbs && s.id->pd == client.id->pd, "the device of a request");
    agree(s.id->qp == nullptr && s.id->port_num == 1, "what a request's id shows");
    agree_on(rdma_get_src_port(s.id), client.wants_port, "the port of a request");
    agree_on(rdma_get_dst_port(client.id), client.wants_port, "the port that is asked");
    agree_path(s);
    tell(name(client) + " has asked " + name(listener) + ": " + name(s));
    ids.push_back(std::move(made));
  }

 public:
  // Both of its addresses are the device's only one; over RoCE it has one path.
  void agree_path(const Id& i) const {
    const rdma_route& r = i.id->route;
    sockaddr_in own = at(rdma_get_src_port(i.id)), other = at(rdma_get_dst_port(i.id));
    agree(std::memcmp(rdma_get_local_addr(i.id), &own, sizeof own) == 0, "the own address");
    agree(std::memcmp(rdma_get_peer_addr(i.id), &other, sizeof other) == 0, "the peer's address");
    agree_on(r.num_paths, is_roce ? 1 : 0, "num_paths");
    if (!is_roce) return;
    const ibv_sa_path_rec& p = *r.path_rec;
    ibv_port_attr port{};
    agree_on(ibv_query_port(i.id->verbs, 1, &port), 0, "ibv_query_port");
    ibv_gid gid{};
    agree_on(ibv_query_gid(i.id->verbs, 1, 0, &gid), 0, "ibv_query_gid");
    agree(
        std::memcmp(&p.sgid, &gid, sizeof gid) == 0 && std::memcmp(&p.dgid, &gid, sizeof gid) == 0,
        "the GIDs of a path");
    agree_on(p.mtu, port.active_mtu, "the MTU of a path");
    agree_on(p.pkey, 0xffff, "the P_Key of a path");
    agree_on(p.hop_limit, 64, "the hop limit of a path");
  }

 private:
  const std::string address_;
  std::vector<std::string>& told_;
  unsigned last_name_ = 0;
};

}  // namespace calls_walk
