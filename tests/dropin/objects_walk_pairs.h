// Queue pairs of the walk over the objects of verbs: every move of their states, each time with
// other values, and the results of queries.
#pragma once

#include "dropin/objects_walk_world.h"

namespace calls_walk {

class PairMoves {
 public:
  explicit PairMoves(Objects& world) : w_(world) {}

  void make(Dice& dice) {
    Domain* const d = Objects::any(w_.domains, dice);
    Queue *const send = Objects::any(w_.queues, dice), *const receive =
                                                           Objects::any(w_.queues, dice);
    if (d == nullptr || send == nullptr || w_.pairs.size() >= 6) return;
    Pair p;
    const ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    p.type = types[w_.is_roce && dice.one_in(2) ? dice.below(3) : 0];
    p.domain = d;
    p.send = send;
    p.receive = receive;
    if (dice.one_in(3) && p.type == IBV_QPT_RC) p.shared = Objects::any(w_.shared, dice);
    ibv_qp_init_attr a{};
    a.qp_type = p.type;
    a.send_cq = send->cq;
    a.recv_cq = receive->cq;
    a.srq = p.shared != nullptr ? p.shared->srq : nullptr;
    a.cap = {dice.between(3, 5), dice.between(6, 9), dice.between(1, 2), dice.between(3, 4),
             dice.between(20, 99)};
    p.signals_all = dice.one_in(2);
    a.sq_sig_all = p.signals_all ? 1 : 0;
    p.cap = a.cap;
    p.cap.max_inline_data = std::max(a.cap.max_inline_data, 16 * a.cap.max_send_sge);
    if (p.shared != nullptr) p.cap.max_recv_wr = p.cap.max_recv_sge = 0;
    if (dice.one_in(5)) {
      ibv_qp_init_attr wrong = a;
      int error = EINVAL;
      switch (dice.below(4)) {
        case 0:
          wrong.qp_type = IBV_QPT_RAW_PACKET;
          error = EOPNOTSUPP;
          break;
        case 1:
          wrong.send_cq = nullptr;
          break;
        case 2:
          wrong.cap.max_send_sge = 33;
          break;
        default:
          wrong.cap.max_send_wr = 65537;
      }
      agree_on(error_of(ibv_create_qp(d->pd, &wrong)), error, "a queue pair that cannot be had");
    }
    w_.pairs.push_back(p);
    Pair& made = w_.pairs.back();
    a.qp_context = &made;
    made.qp = ibv_create_qp(d->pd, &a);
    if (made.qp == nullptr) w_.pairs.pop_back();
    agree(made.qp != nullptr, "ibv_create_qp");
    agree(std::memcmp(&a.cap, &made.cap, sizeof a.cap) == 0, "what a queue pair was granted");
    agree_on(int{made.qp->state}, int{IBV_QPS_RESET}, "the state that a new queue pair shows");
    made.state = w_.is_roce ? IBV_QPS_RESET : IBV_QPS_INIT;
    use(made, 1);
    w_.tell("make queue pair " + std::to_string(made.qp->qp_num) + " of type " +
            std::to_string(p.type));
    agree_query(made);
  }
  void destroy(Pair& p, Dice& dice) {
    w_.tell("destroy queue pair " + std::to_string(p.qp->qp_num));
    const auto call = [&] { agree_on(ibv_destroy_qp(p.qp), 0, "ibv_destroy_qp"); };
    forget_completions(p);
    if (p.held.empty()) {
      call();
    } else {
      destroy_waits(
          "ibv_destroy_qp", call,
          [&] {
            for (ibv_async_event& e : p.held) ibv_ack_async_event(&e);
          },
          [&] { p.held.clear(), p.qp = nullptr; });
    }
    p.held.clear();
    use(p, -1);
    Objects::erase(w_.pairs, &p);
    (void)dice;
  }

  void receive(Dice& dice) {
    Pair* const p = Objects::any(w_.pairs, dice);
    if (p == nullptr || p->shared != nullptr) return;
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = dice.number();
    int must = p->state == IBV_QPS_RESET ? EINVAL : 0;
    if (p->receives.size() >= p->cap.max_recv_wr && must == 0) must = ENOMEM;
    if (p->state == IBV_QPS_ERR) return;
    agree_on(ibv_post_recv(p->qp, &wr, &bad), must, "ibv_post_recv");
    agree(must == 0 || bad == &wr, "the receive that was not taken");
    if (must == 0) p->receives.push_back(wr.wr_id);
  }

  void move(Dice& dice) {
    Pair* const p = Objects::any(w_.pairs, dice);
    if (p == nullptr) return;
    ibv_qp_attr a = attributes(dice);
    const ibv_qp_state to = next_state(*p, dice);
    a.qp_state = to;
    const int mask = mask_of(*p, to);
    if (dice.one_in(3)) misuse(*p, a, mask, dice);
    w_.tell("move " + std::to_string(p->qp->qp_num) + " from " + std::to_string(p->state) + " to " +
            std::to_string(to));
    agree_on(ibv_modify_qp(p->qp, &a, mask), 0, "ibv_modify_qp");
    const ibv_qp_state was = std::exchange(p->state, to);
    agree_on(int{p->qp->state}, int{to}, "the state that is shown");
    if (to == IBV_QPS_RESET) {
      p->receives.clear();
      if (w_.is_roce) p->given = {};
      if (w_.is_roce) p->known = 0;
      forget_completions(*p);
    } else {
      remember(*p, a, mask);
    }
    if (to == IBV_QPS_ERR && was != IBV_QPS_ERR) in_error(*p, was, dice);
    agree_query(*p);
  }
  void agree_query(const Pair& p) {
    ibv_qp_attr a{};
    ibv_qp_init_attr init{};
    agree_on(ibv_query_qp(p.qp, &a, IBV_QP_STATE, &init), 0, "ibv_query_qp");
    const ibv_qp_attr& g = p.given;
    agree_on(int{a.qp_state}, int{p.state}, "qp_state");
    agree(init.qp_context == &p && init.send_cq == p.send->cq && init.recv_cq == p.receive->cq &&
              init.srq == (p.shared != nullptr ? p.shared->srq : nullptr) &&
              init.qp_type == p.type && init.sq_sig_all == (p.signals_all ? 1 : 0),
          "what a queue pair was made with");
    agree(std::memcmp(&a.cap, &p.cap, sizeof a.cap) == 0 &&
              std::memcmp(&init.cap, &p.cap, sizeof a.cap) == 0,
          "cap of a query");
    // Over RoCE the device chooses attributes that were not set.
    const auto shows = [&](int bit, auto ibv_qp_attr::*field, const char* name) {
      if (!w_.is_roce || (p.known & bit) != 0) agree_on(a.*field, g.*field, name);
    };
    shows(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num, "dest_qp_num");
    shows(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn, "rq_psn");
    shows(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn, "sq_psn");
    shows(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout, "timeout");
    shows(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt, "retry_cnt");
    shows(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry, "rnr_retry");
    shows(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer, "min_rnr_timer");
    shows(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic, "max_rd_atomic");
    shows(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic, "max_dest_rd_atomic");
    shows(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags, "qp_access_flags");
    shows(IBV_QP_QKEY, &ibv_qp_attr::qkey, "qkey");
    if ((p.known & IBV_QP_PATH_MTU) != 0) agree_on(int{a.path_mtu}, int{g.path_mtu}, "path_mtu");
    agree_on(a.ah_attr.grh.traffic_class, g.ah_attr.grh.traffic_class, "traffic_class");
    agree_on(a.ah_attr.grh.flow_label, g.ah_attr.grh.flow_label, "flow_label");
    agree_on(a.port_num, 1, "port_num");
  }

 private:
  void use(Pair& p, int by) {
    p.domain->users += by;
    p.send->users += by;
    p.receive->users += by;
    if (p.shared != nullptr) p.shared->users += by;
  }
  ibv_qp_attr attributes(Dice& dice) const {
    ibv_qp_attr a{};
    a.port_num = 1;
    a.qp_access_flags = dice.one_in(2) ? IBV_ACCESS_REMOTE_WRITE
                                       : IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    a.qkey = dice.between(1, 0x7fffffff);
    a.path_mtu = static_cast<ibv_mtu>(dice.between(1, 4));
    a.dest_qp_num = dice.between(2, 0xffffff);
    a.rq_psn = dice.below(0x1000000);
    a.sq_psn = dice.below(0x1000000);
    a.max_rd_atomic = static_cast<std::uint8_t>(dice.between(1, 3));
    a.max_dest_rd_atomic = static_cast<std::uint8_t>(dice.between(4, 6));
    a.retry_cnt = static_cast<std::uint8_t>(dice.between(1, 3));
    a.rnr_retry = static_cast<std::uint8_t>(dice.between(4, 7));
    a.min_rnr_timer = static_cast<std::uint8_t>(dice.between(8, 13));
    a.timeout = static_cast<std::uint8_t>(dice.between(14, 20));
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.dgid = w_.gid;
    a.ah_attr.grh.hop_limit = 7;
    a.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(dice.between(1, 60) * 4);
    a.ah_attr.grh.flow_label = dice.between(1, 0xfffff);
    return a;
  }
  ibv_qp_state next_state(const Pair& p, Dice& dice) const {
    if (p.state != IBV_QPS_RESET && dice.one_in(4)) {
      if (p.state == IBV_QPS_ERR || dice.one_in(2)) return IBV_QPS_RESET;
      return IBV_QPS_ERR;
    }
    switch (p.state) {
      case IBV_QPS_RESET:
        return IBV_QPS_INIT;
      case IBV_QPS_INIT:
        return w_.is_roce && !dice.one_in(4) ? IBV_QPS_RTR
               : dice.one_in(2)              ? IBV_QPS_INIT
                                             : IBV_QPS_ERR;
      case IBV_QPS_RTR:
        return IBV_QPS_RTS;
      case IBV_QPS_RTS:
        return dice.one_in(2) ? IBV_QPS_RTS : IBV_QPS_ERR;
      default:
        return IBV_QPS_RESET;
    }
  }
  int mask_of(const Pair& p, ibv_qp_state to) const {
    const bool rc = p.type == IBV_QPT_RC, ud = p.type == IBV_QPT_UD;
    const int own = ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    switch (to) {
      case IBV_QPS_INIT:
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own;
      case IBV_QPS_RTR:
        return ud ? IBV_QP_STATE
                  : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
      case IBV_QPS_RTS:
        if (p.state == IBV_QPS_RTS) return IBV_QP_STATE | own;
        return IBV_QP_STATE | IBV_QP_SQ_PSN |
               (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                   : 0);
      default:
        return IBV_QP_STATE;
    }
  }
  // Without a required attribute, or with a foreign one, nothing changes.
  void misuse(Pair& p, ibv_qp_attr a, int mask, Dice& dice) {
    int error = EINVAL;
    if (dice.one_in(3)) {
      mask |= IBV_QP_ALT_PATH;
      error = EOPNOTSUPP;
    } else if (dice.one_in(2) || !w_.is_roce) {
      mask |= IBV_QP_PORT;
      a.port_num = 2;
    } else {
      std::vector<int> bits;
      for (int bit = 2; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        if ((mask & bit) != 0) bits.push_back(bit);
      }
      if (bits.empty() || p.state == a.qp_state) return;
      mask &= ~*dice.any(bits);
    }
    agree_on(ibv_modify_qp(p.qp, &a, mask), error, "a wrong move");
    agree_query(p);
  }
  void remember(Pair& p, const ibv_qp_attr& a, int mask) {
    ibv_qp_attr& g = p.given;
    p.known |= mask;
    const auto take = [&](int bit, auto ibv_qp_attr::*field) {
      if ((mask & bit) != 0) g.*field = a.*field;
    };
    take(IBV_QP_AV, &ibv_qp_attr::ah_attr);
    take(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
    take(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
    take(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
    take(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
    take(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
    take(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
    take(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
    take(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
    take(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
    take(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
    take(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
    take(IBV_QP_QKEY, &ibv_qp_attr::qkey);
  }
  // Its receives are flushed; with a shared queue an event reports that it uses no more receives.
  void in_error(Pair& p, ibv_qp_state was, Dice& dice) {
    if (p.shared != nullptr && was != IBV_QPS_RESET) {
      ibv_async_event e = w_.next_event();
      agree_on(int{e.event_type}, int{IBV_EVENT_QP_LAST_WQE_REACHED}, "an asynchronous event");
      agree(e.element.qp == p.qp, "whose event it is");
      if (dice.one_in(2)) {
        p.held.push_back(e);
      } else {
        ibv_ack_async_event(&e);
      }
    }
    const bool had = !p.receives.empty();
    for (const std::uint64_t id : p.receives) p.receive->flushed.push_back({id, p.qp->qp_num});
    p.receives.clear();
    if (had) w_.has_come(*p.receive, dice);
  }
  // Completions that were not polled are discarded with the queue pair.
  void forget_completions(const Pair& p) {
    std::erase_if(p.receive->flushed,
                  [&](const Queue::Done& d) { return d.qp_num == p.qp->qp_num; });
  }

  Objects& w_;
};

}  // namespace calls_walk
