// RoCE identifiers without a queue pair in the walk over rdma_cm: their connections carry the
// numbers that the program names, and rdma_init_qp_attr returns how to move its queue pair.
#pragma once

#include "dropin/cm_walk_world.h"

namespace calls_walk {

class CmNumbers {
 public:
  explicit CmNumbers(CmWorld& world) : world_(world) {}

  // One connection from start to end.
  void meet(Dice& dice) {
    if (!world_.is_roce) return;
    world_.settle(dice);
    Id& listener = world_.make(*dice.any(world_.channels));
    agree_on(error_of(rdma_listen(listener.id, 1)), 0, "rdma_listen");
    listener.stage = Stage::listening;
    listener.port = rdma_get_src_port(listener.id);
    Id& c = world_.make(*dice.any(world_.channels));
    ask(c, listener, dice);
    Id& s = *c.peer;
    agree_on(error_of(rdma_establish(c.id)), EINVAL, "establishing what is not answered");
    agree_on(attributes(c, IBV_QPS_RTR).error, EINVAL, "how to move before the answer");
    if (dice.one_in(4)) {
      agree_on(error_of(rdma_reject(s.id, "no", 2)), 0, "rdma_reject");
      std::string why = "no";
      why.resize(kRefusalBytes);
      c.want(RDMA_CM_EVENT_REJECTED, kRejected, {}, why);
    } else {
      answer(c, s, dice);
    }
    world_.settle(dice);
    for (Id* i : {&c, &s, &listener}) {
      world_.acknowledge_all(*i);
      agree_on(error_of(rdma_destroy_id(i->id)), 0, "rdma_destroy_id");
      world_.forget(*i);
    }
  }

 private:
  struct Told {
    int error, mask;
    ibv_qp_attr a;
  };
  static Told attributes(const Id& i, ibv_qp_state state) {
    Told t{};
    t.a.qp_state = state;
    t.error = error_of(rdma_init_qp_attr(i.id, &t.a, &t.mask));
    return t;
  }
  static rdma_conn_param numbered(Words& w, Dice& dice) {
    // A number in time-wait would be refused because it belongs to another connection, also when a
    // walk is repeated.
    static std::uint32_t last = 2;
    w.given = true;
    w.p.qp_num = last = (last + 79193) & 0xffffff;
    w.p.srq = static_cast<std::uint8_t>(dice.below(2));
    return *w.param();
  }

  void ask(Id& c, Id& listener, Dice& dice) {
    c.wants_port = listener.port;
    sockaddr_in to = world_.at(c.wants_port);
    agree_on(error_of(rdma_resolve_addr(c.id, nullptr, CmWorld::any(to), 2000)), 0, "resolving");
    agree_on(error_of(rdma_resolve_route(c.id, 2000)), 0, "rdma_resolve_route");
    c.want(RDMA_CM_EVENT_ADDR_RESOLVED);
    c.want(RDMA_CM_EVENT_ROUTE_RESOLVED);
    c.ask = Words::request(dice, true);
    if (!c.ask.given) c.ask.p.retry_count = 3;
    rdma_conn_param p = numbered(c.ask, dice);
    rdma_conn_param wrong = p;
    wrong.qp_num = dice.below(2);
    agree_on(error_of(rdma_connect(c.id, &wrong)), EINVAL, "a number that is none's");
    world_.tell("connect " + CmWorld::name(c) + " by the number " + std::to_string(p.qp_num));
    agree_on(error_of(rdma_connect(c.id, &p)), 0, "rdma_connect");
    c.stage = Stage::connecting;
    rdma_conn_param seen = p;
    seen.responder_resources = std::min(p.initiator_depth, kIrd);
    seen.initiator_depth = std::min(p.responder_resources, kOrd);
    listener.wanted.push_back(
        {RDMA_CM_EVENT_CONNECT_REQUEST, 0, seen, c.ask.padded(true, kRequestBytes), &c, false});
    world_.settle(dice);
  }
  void answer(Id& c, Id& s, Dice& dice) {
    s.answer = Words::reply(dice, true);
    if (!s.answer.given) s.answer.p.rnr_retry_count = 6;
    rdma_conn_param p = numbered(s.answer, dice);
    agree_on(error_of(rdma_accept(s.id, &p)), 0, "rdma_accept");
    const Depths d(c.ask, s.answer, true);
    rdma_conn_param seen{};
    seen.responder_resources = d.client_serves;
    seen.initiator_depth = d.client_asks;
    seen.rnr_retry_count = p.rnr_retry_count;
    seen.flow_control = p.flow_control;
    seen.srq = p.srq;
    seen.qp_num = p.qp_num;
    c.want(RDMA_CM_EVENT_CONNECT_RESPONSE, 0, seen, s.answer.padded(true, kReplyBytes));
    world_.settle(dice);
    agree_attributes(c, s, d);
    if (dice.one_in(4)) {
      agree_on(error_of(rdma_reject(c.id, "late", 4)), 0, "rejecting an answer");
      std::string why = "late";
      why.resize(kRefusalBytes);
      s.want(RDMA_CM_EVENT_REJECTED, kRejected, {}, why);
      return;
    }
    agree_on(error_of(rdma_notify(s.id, IBV_EVENT_QP_FATAL)), EINVAL, "another event");
    if (dice.one_in(2)) {
      agree_on(error_of(rdma_notify(s.id, IBV_EVENT_COMM_EST)), 0, "rdma_notify");
    } else {
      agree_on(error_of(rdma_establish(c.id)), 0, "rdma_establish");
      agree_on(error_of(rdma_establish(c.id)), EINVAL, "establishing twice");
    }
    s.want(RDMA_CM_EVENT_ESTABLISHED);
    world_.settle(dice);
    agree_on(error_of(rdma_notify(s.id, IBV_EVENT_COMM_EST)), EISCONN, "what is established");
    agree_attributes(c, s, d);
    rdma_establish(c.id);  // needed if the server used rdma_notify
    Id& goes = dice.one_in(2) ? c : s;
    agree_on(error_of(rdma_disconnect(goes.id)), 0, "rdma_disconnect");
    for (Id* i : {&c, &s}) {
      i->want(RDMA_CM_EVENT_DISCONNECTED);
      i->want(RDMA_CM_EVENT_TIMEWAIT_EXIT);
      i->wanted.back().optional = true;
    }
    world_.settle(dice);
    agree_on(error_of(rdma_disconnect(goes.id)), 0, "rdma_disconnect again");
    agree_on(attributes(c, IBV_QPS_RTR).error, EINVAL, "how to move behind the end");
  }
  // Each end gets the attributes of the other.
  static void agree_attributes(const Id& c, const Id& s, const Depths& d) {
    constexpr int kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    constexpr int kRts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                         IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    const Told cr = attributes(c, IBV_QPS_RTR), cs = attributes(c, IBV_QPS_RTS);
    const Told sr = attributes(s, IBV_QPS_RTR), ss = attributes(s, IBV_QPS_RTS);
    agree(cr.mask == kRtr && sr.mask == kRtr && cs.mask == kRts && ss.mask == kRts, "the masks");
    agree_on(cr.a.dest_qp_num, s.answer.p.qp_num, "dest_qp_num of the client");
    agree_on(sr.a.dest_qp_num, c.ask.p.qp_num, "dest_qp_num of the server");
    agree_on(cr.a.rq_psn, ss.a.sq_psn, "rq_psn of the client");
    agree_on(sr.a.rq_psn, cs.a.sq_psn, "rq_psn of the server");
    agree_on(cr.a.max_dest_rd_atomic, d.client_serves, "max_dest_rd_atomic of the client");
    agree_on(sr.a.max_dest_rd_atomic, d.server_serves, "max_dest_rd_atomic of the server");
    agree_on(cs.a.max_rd_atomic, d.client_asks, "max_rd_atomic of the client");
    agree_on(ss.a.max_rd_atomic, d.server_asks, "max_rd_atomic of the server");
    agree_on(cs.a.retry_cnt, c.ask.p.retry_count, "retry_cnt of the client");
    agree_on(ss.a.retry_cnt, c.ask.p.retry_count, "retry_cnt of the server");
    agree_on(cs.a.rnr_retry, s.answer.p.rnr_retry_count, "rnr_retry of the client");
    agree_on(ss.a.rnr_retry, c.ask.p.rnr_retry_count, "rnr_retry of the server");
    agree_on(int{cr.a.path_mtu}, int{sr.a.path_mtu}, "path_mtu");
  }

  CmWorld& world_;
};

}  // namespace calls_walk
