// Queue pairs of identifiers in a walk: created in every way, and the results of queries.
#pragma once

#include "dropin/cm_walk_world.h"

namespace calls_walk {

class CmQueues {
 public:
  explicit CmQueues(CmWorld& world) : world_(world) {}

  // The id has a device and no queue pair.
  void make(Id& i, Dice& dice) {
    rdma_cm_id* const id = i.id;
    Queues& q = i.q;
    if (q.mr == nullptr) {
      constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
      q.mr = ibv_reg_mr(id->pd, q.memory, sizeof q.memory, kAll);
      agree(q.mr != nullptr, "ibv_reg_mr");
    }
    if (dice.one_in(4)) fail(id, dice);
    ibv_qp_init_attr a = attributes(dice);
    a.qp_context = &q;
    if (dice.one_in(3)) a.recv_cq = q.own_receive = own_queue(id, dice);
    if (dice.one_in(3))
      a.send_cq = q.own_send =
          dice.one_in(2) && q.own_receive != nullptr ? q.own_receive : own_queue(id, dice);
    choose_srq(i, &a, dice);
    const ibv_qp_init_attr asked = a;
    agree_on(error_of(rdma_create_qp(id, dice.one_in(2) ? id->pd : nullptr, &a)), 0,
             "rdma_create_qp");
    q.qp = id->qp;
    q.signals_all = asked.sq_sig_all != 0;
    q.cap = asked.cap;
    if (q.has_srq) q.cap.max_recv_wr = q.cap.max_recv_sge = 0;
    q.cap.max_inline_data = std::max(asked.cap.max_inline_data, 16 * asked.cap.max_send_sge);
    agree_cap(a.cap, q.cap, "rdma_create_qp");
    agree_made(i, a, asked);
    world_.tell(CmWorld::name(i) + " has a queue pair " + std::to_string(q.qp->qp_num) +
                (q.has_srq ? " with a shared queue" : ""));
    ibv_qp_attr shown = query(i);
    agree_on(int{shown.qp_state}, int{IBV_QPS_INIT}, "the state of a queue pair that is made");
    ibv_qp_init_attr again = a;
    agree_on(error_of(rdma_create_qp(id, nullptr, &again)), EINVAL, "a second queue pair");
    agree(id->qp == q.qp && again.send_cq == a.send_cq, "what a refused call changes");
  }

  // rdma_destroy_qp, and the objects that the program has created.
  void destroy(Id& i) {
    const bool has_events = std::any_of(i.q.unacknowledged.begin(), i.q.unacknowledged.end(),
                                        [](const auto& of) { return of.second != 0; });
    if (has_events) {
      destroy_waits(
          "rdma_destroy_qp", [&] { rdma_destroy_qp(i.id); }, [&] { acknowledge(i.q); },
          [&] { i.q.unacknowledged.clear(); });
    } else {
      rdma_destroy_qp(i.id);
    }
    agree(i.id->qp == nullptr && i.id->send_cq == nullptr && i.id->recv_cq == nullptr &&
              i.id->send_cq_channel == nullptr && i.id->recv_cq_channel == nullptr,
          "what an id shows without its queue pair");
    i.q.qp = nullptr;
    free_others(i);
  }
  static void acknowledge(Queues& q) {
    for (auto& [cq, n] : q.unacknowledged) ibv_ack_cq_events(cq, n);
    q.unacknowledged.clear();
  }
  // Call it after the queue pair is destroyed.
  void free_others(Id& i) {
    if (i.id != nullptr && i.id->srq != nullptr) {
      rdma_destroy_srq(i.id);
      agree(i.id->srq == nullptr, "rdma_destroy_srq");
    }
    Queues& q = i.q;
    if (q.own_srq != nullptr) agree_on(ibv_destroy_srq(q.own_srq), 0, "ibv_destroy_srq");
    if (q.own_send != nullptr) agree_on(ibv_destroy_cq(q.own_send), 0, "ibv_destroy_cq");
    if (q.own_receive != nullptr && q.own_receive != q.own_send) {
      agree_on(ibv_destroy_cq(q.own_receive), 0, "ibv_destroy_cq");
    }
    if (q.mr != nullptr) agree_on(ibv_dereg_mr(q.mr), 0, "ibv_dereg_mr");
    q.own_srq = nullptr;
    q.own_send = q.own_receive = nullptr;
    q.mr = nullptr;
    q.has_srq = false;
    q.receives.clear();
    q.armed.clear();
    q.unacknowledged.clear();
    q.loose = 0;
  }

  ibv_qp_attr query(const Id& i) const {
    ibv_qp_attr a{};
    ibv_qp_init_attr init{};
    agree_on(ibv_query_qp(i.q.qp, &a, 0, &init), 0, "ibv_query_qp");
    agree_cap(a.cap, i.q.cap, "ibv_query_qp");
    agree_cap(init.cap, i.q.cap, "ibv_query_qp's init");
    agree(init.qp_context == &i.q && init.send_cq == i.q.qp->send_cq &&
              init.recv_cq == i.q.qp->recv_cq && init.srq == i.q.qp->srq,
          "the objects of a queue pair");
    agree_on(init.sq_sig_all, i.q.signals_all ? 1 : 0, "sq_sig_all");
    agree_on(int{init.qp_type}, int{IBV_QPT_RC}, "qp_type");
    agree_on(a.port_num, 1, "port_num");
    agree_on(int{a.cur_qp_state}, int{a.qp_state}, "cur_qp_state");
    return a;
  }

  // Both ends show the agreed values: each its own and those of the peer.
  void agree_connected(const Id& c, const Id& s) const {
    const ibv_qp_attr a = query(c), b = query(s);
    agree_on(int{a.qp_state}, int{IBV_QPS_RTS}, "the state of the client");
    agree_on(int{b.qp_state}, int{IBV_QPS_RTS}, "the state of the server");
    if (c.timeout) agree_on(a.timeout, *c.timeout, "the time-out of the client");
    if (s.timeout) agree_on(b.timeout, *s.timeout, "the time-out of the server");
    if (!world_.is_roce) return;
    const Depths d(c.ask, s.answer, true);
    agree_on(a.dest_qp_num, s.q.qp->qp_num, "dest_qp_num of the client");
    agree_on(b.dest_qp_num, c.q.qp->qp_num, "dest_qp_num of the server");
    agree_on(a.rq_psn, b.sq_psn, "rq_psn of the client");
    agree_on(b.rq_psn, a.sq_psn, "rq_psn of the server");
    agree_on(a.max_rd_atomic, d.client_asks, "max_rd_atomic of the client");
    agree_on(b.max_rd_atomic, d.server_asks, "max_rd_atomic of the server");
    agree_on(a.max_dest_rd_atomic, d.client_serves, "max_dest_rd_atomic of the client");
    agree_on(b.max_dest_rd_atomic, d.server_serves, "max_dest_rd_atomic of the server");
    agree_on(a.retry_cnt, c.ask.p.retry_count, "retry_cnt of the client");
    agree_on(b.retry_cnt, c.ask.p.retry_count, "retry_cnt of the server");
    agree_on(a.rnr_retry, s.answer.p.rnr_retry_count, "rnr_retry of the client");
    agree_on(b.rnr_retry, c.ask.p.rnr_retry_count, "rnr_retry of the server");
    agree_on(a.ah_attr.grh.traffic_class, c.tos.value_or(0), "traffic class of the client");
    agree_on(b.ah_attr.grh.traffic_class, s.tos.value_or(c.tos.value_or(0)),
             "traffic class of the server");
    agree_on(int{a.path_mtu}, int{b.path_mtu}, "path_mtu");
    for (const ibv_qp_attr& q : {a, b}) {
      agree_on(q.min_rnr_timer, 0, "min_rnr_timer");
      agree_on(q.ah_attr.is_global, 1, "is_global");
      agree_on(q.ah_attr.grh.hop_limit, 64, "hop_limit");
      agree_on(q.qp_access_flags & IBV_ACCESS_REMOTE_READ, unsigned{IBV_ACCESS_REMOTE_READ},
               "the right to read");
    }
  }

 private:
  static ibv_qp_init_attr attributes(Dice& dice) {
    ibv_qp_init_attr a{};
    a.qp_type = IBV_QPT_RC;
    a.cap.max_send_wr = dice.between(4, 7);
    a.cap.max_recv_wr = dice.between(8, 11);
    a.cap.max_send_sge = dice.between(2, 3);
    a.cap.max_recv_sge = dice.between(4, 5);
    a.cap.max_inline_data = dice.one_in(2) ? 0 : dice.between(60, 90);
    a.sq_sig_all = static_cast<int>(dice.below(2));
    return a;
  }
  static ibv_cq* own_queue(rdma_cm_id* id, Dice& dice) {
    ibv_cq* const cq =
        ibv_create_cq(id->verbs, static_cast<int>(dice.between(30, 60)), nullptr, nullptr, 0);
    agree(cq != nullptr, "ibv_create_cq");
    return cq;
  }
  static void choose_srq(Id& i, ibv_qp_init_attr* a, Dice& dice) {
    ibv_srq_init_attr s{};
    s.attr.max_wr = dice.between(12, 15);
    s.attr.max_sge = dice.between(1, 2);
    switch (dice.below(4)) {
      case 0:  // through the id
        agree_on(error_of(rdma_create_srq(i.id, nullptr, &s)), 0, "rdma_create_srq");
        agree(i.id->srq != nullptr && i.id->srq->pd == i.id->pd, "the shared queue of an id");
        agree_on(error_of(rdma_create_srq(i.id, nullptr, &s)), EINVAL, "a second shared queue");
        i.q.has_srq = true;
        break;
      case 1:
        a->srq = i.q.own_srq = ibv_create_srq(i.id->pd, &s);
        agree(a->srq != nullptr, "ibv_create_srq");
        i.q.has_srq = true;
        break;
      default:
        i.q.has_srq = false;
    }
  }
  // A failed call changes nothing.
  static void fail(rdma_cm_id* id, Dice& dice) {
    ibv_qp_init_attr a = attributes(dice);
    int error = EINVAL;
    switch (dice.below(4)) {
      case 0:
        a.qp_type = IBV_QPT_UD;
        error = EOPNOTSUPP;
        break;
      case 1:
        a.cap.max_send_wr = 65537;
        break;
      case 2:
        a.cap.max_recv_sge = 33;
        break;
      default:
        a.cap.max_inline_data = 4097;
    }
    const ibv_qp_init_attr asked = a;
    agree_on(error_of(rdma_create_qp(id, nullptr, &a)), error, "a queue pair that cannot be made");
    agree(a.send_cq == nullptr && a.recv_cq == nullptr && id->send_cq == nullptr &&
              id->recv_cq == nullptr && id->qp == nullptr,
          "what a queue pair that was not made has left");
    agree(std::memcmp(&a.cap, &asked.cap, sizeof a.cap) == 0, "what the program had said");
  }
  static void agree_cap(const ibv_qp_cap& is, const ibv_qp_cap& must, const std::string& what) {
    agree_on(is.max_send_wr, must.max_send_wr, what + ": max_send_wr");
    agree_on(is.max_recv_wr, must.max_recv_wr, what + ": max_recv_wr");
    agree_on(is.max_send_sge, must.max_send_sge, what + ": max_send_sge");
    agree_on(is.max_recv_sge, must.max_recv_sge, what + ": max_recv_sge");
    agree_on(is.max_inline_data, must.max_inline_data, what + ": max_inline_data");
  }
  static void agree_made(const Id& i, const ibv_qp_init_attr& a, const ibv_qp_init_attr& asked) {
    const rdma_cm_id* const id = i.id;
    const ibv_qp* const qp = i.q.qp;
    agree(qp->send_cq == a.send_cq && qp->recv_cq == a.recv_cq && a.send_cq != nullptr &&
              a.recv_cq != nullptr,
          "the queues of a queue pair");
    agree(qp->pd == id->pd && qp->context == id->verbs && qp->qp_context == a.qp_context,
          "the domain of a queue pair");
    agree((qp->srq != nullptr) == i.q.has_srq && (id->srq == nullptr || qp->srq == id->srq),
          "the shared queue of a queue pair");
    const auto agree_own = [&](ibv_cq* brought, ibv_cq* own, ibv_comp_channel* channel,
                               ibv_cq* has) {
      agree((brought == nullptr) == (own != nullptr), "a queue is made for who brings none");
      if (brought != nullptr) {
        agree(has == brought, "the queue that was brought");
      } else {
        agree(has == own && own->channel == channel && own->cq_context == id, "the queue made");
      }
    };
    agree_own(asked.send_cq, id->send_cq, id->send_cq_channel, qp->send_cq);
    agree_own(asked.recv_cq, id->recv_cq, id->recv_cq_channel, qp->recv_cq);
  }

  CmWorld& world_;
};

}  // namespace calls_walk
