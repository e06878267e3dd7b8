// Data over the connections of the walk over rdma_cm: every operation, the contents of each
// completion, and the queue that reports it by an event.
#pragma once

#include "dropin/cm_walk_queues.h"

namespace calls_walk {

class CmWork {
 public:
  explicit CmWork(CmWorld& world) : world_(world) {}

  void work(Dice& dice) {
    std::vector<Id*> found;
    for (Id* i : world_.those(Stage::connected)) {
      if (i->q.qp != nullptr && i->peer != nullptr && i->peer->q.qp != nullptr) found.push_back(i);
    }
    Id** const at = dice.any(found);
    if (at == nullptr) return;
    world_.settle(dice);
    Id &from = **at, &to = *from.peer;
    const std::uint32_t n = dice.between(1, 4);
    for (std::uint32_t i = 0; i < n; ++i) operate(from.q, to.q, dice);
    drain(from.q, to.q);
  }
  // For a queue pair whose connection has ended: requests that were posted before, and requests
  // posted now.
  void agree_flushed(Queues& q, Dice& dice) {
    if (!q.has_srq) {
      if (dice.one_in(2) && q.receives.size() < q.cap.max_recv_wr) post_receive(q, dice);
      for (const std::uint64_t id : q.receives) {
        agree_done(next(q.qp->recv_cq), {id, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV}, q);
      }
      q.receives.clear();
    }
    if (!dice.one_in(2)) return;
    ibv_send_wr wr = request(dice, IBV_WR_SEND, true), *bad = nullptr;
    agree_on(ibv_post_send(q.qp, &wr, &bad), 0, "a Send behind the end");
    agree_done(next(q.qp->send_cq), {wr.wr_id, IBV_WC_WR_FLUSH_ERR, IBV_WC_SEND}, q);
  }

 private:
  struct Done {
    std::uint64_t wr_id;
    ibv_wc_status status;
    ibv_wc_opcode opcode;
    std::uint32_t byte_len = 0;  // for receives
    unsigned flags = 0;
    std::uint32_t word = 0;  // immediate data or a key
  };
  static constexpr std::uint32_t kTarget = 512;  // the second half of the memory

  static ibv_wc next(ibv_cq* cq) {
    ibv_wc wc{};
    agree(Patience::waits_for([&] { return ibv_poll_cq(cq, 1, &wc) != 0; }), "no completion");
    return wc;
  }
  static void agree_done(const ibv_wc& wc, const Done& must, const Queues& q) {
    agree_on(wc.wr_id, must.wr_id, "wr_id");
    agree_on(int{wc.status}, int{must.status}, "status");
    agree_on(int{wc.opcode}, int{must.opcode}, "opcode of a completion");
    agree_on(wc.qp_num, q.qp->qp_num, "qp_num");
    agree_on(wc.wc_flags, must.flags, "wc_flags");
    if (must.flags != 0) agree_on(wc.imm_data, must.word, "immediate data or key");
    if (must.opcode >= IBV_WC_RECV && must.status == IBV_WC_SUCCESS) {
      agree_on(wc.byte_len, must.byte_len, "byte_len");
    }
    agree(wc.vendor_err == 0 && wc.src_qp == 0 && wc.pkey_index == 0 && wc.slid == 0 &&
              wc.sl == 0 && wc.dlid_path_bits == 0,
          "a field of a completion that means nothing");
  }
  static ibv_send_wr request(Dice& dice, ibv_wr_opcode opcode, bool signals) {
    ibv_send_wr wr{};
    wr.wr_id = dice.number();
    wr.opcode = opcode;
    if (signals) wr.send_flags = IBV_SEND_SIGNALED;
    return wr;
  }

  // ---- receives

  static void post_receive(Queues& q, Dice& dice) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(q.memory) + kTarget, 512, q.mr->lkey};
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = dice.number();
    wr.sg_list = &sge;
    wr.num_sge = 1;
    agree_on(q.has_srq ? ibv_post_srq_recv(q.qp->srq, &wr, &bad) : ibv_post_recv(q.qp, &wr, &bad),
             0, "a receive is posted");
    q.receives.push_back(wr.wr_id);
  }
  // More than fit: those before the reported one are posted.
  static void fill_receives(Queues& q, Dice& dice) {
    if (q.has_srq) return;
    std::vector<ibv_recv_wr> list(q.cap.max_recv_wr + 1 - q.receives.size());
    std::vector<ibv_sge> sges(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      sges[i] = {reinterpret_cast<std::uint64_t>(q.memory) + kTarget, 512, q.mr->lkey};
      list[i].wr_id = dice.number();
      list[i].sg_list = &sges[i];
      list[i].num_sge = 1;
      list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
    }
    ibv_recv_wr* bad = nullptr;
    agree_on(ibv_post_recv(q.qp, list.data(), &bad), ENOMEM,
             "more receives than there is room for");
    agree(bad == &list.back(), "the receive for which there is no room");
    for (std::size_t i = 0; i + 1 < list.size(); ++i) q.receives.push_back(list[i].wr_id);
  }

  // ---- events of queues

  // An armed queue reports once, for the next completion that fits.
  void arm(ibv_cq* cq, Queues& q, Dice& dice) {
    if (cq->channel == nullptr || dice.one_in(2)) return;
    const bool solicited = dice.one_in(2);
    agree_on(ibv_req_notify_cq(cq, solicited ? 1 : 0), 0, "ibv_req_notify_cq");
    int& armed = q.armed[cq];
    armed = armed == 2 || !solicited ? 2 : 1;  // the more general request stays
  }
  void has_come(ibv_cq* cq, Queues& q, bool solicited, Dice& dice) {
    if (cq->channel == nullptr) return;
    int& armed = q.armed[cq];
    const bool tells = armed == 2 || (armed == 1 && solicited);
    if (!tells) {
      agree(!is_readable_now(cq->channel->fd), "a queue tells that was not to tell");
      return;
    }
    armed = 0;
    agree(Patience::is_readable(cq->channel->fd), "a queue that is armed tells");
    ibv_cq* which = nullptr;
    void* context = nullptr;
    agree_on(error_of(ibv_get_cq_event(cq->channel, &which, &context)), 0, "ibv_get_cq_event");
    agree(which == cq && context == cq->cq_context, "the queue that tells");
    ++q.unacknowledged[cq];
    agree(!is_readable_now(cq->channel->fd), "it tells once");
    if (!dice.one_in(3)) return;
    ibv_ack_cq_events(cq, q.unacknowledged[cq]);
    q.unacknowledged[cq] = 0;
  }

  // ---- operations

  void operate(Queues& x, Queues& y, Dice& dice) {
    if (dice.one_in(6)) fill_receives(y, dice);
    arm(x.qp->send_cq, x, dice);
    arm(y.qp->recv_cq, y, dice);
    switch (dice.below(10)) {
      case 0:
        return overfill(x, dice);
      case 1:
        return misuse(x, y, dice);
      case 2:
        return lend(x, y, dice);
      case 3:
      case 4:
        return one_sided(x, y, dice);
      case 5:
        return change(x, y, dice);
      case 6:
        return send(x, y, dice, IBV_WR_SEND_WITH_IMM);
      case 7:
        return send(x, y, dice, IBV_WR_RDMA_WRITE_WITH_IMM);
      default:
        return send(x, y, dice, IBV_WR_SEND);
    }
  }
  // The message's memory, in up to the allowed number of pieces.
  static std::vector<ibv_sge> pieces(Queues& x, std::uint32_t bytes, Dice& dice) {
    const auto fresh = dice.bytes(bytes);
    std::copy(fresh.begin(), fresh.end(), x.memory);
    std::vector<ibv_sge> all;
    const std::uint32_t most = dice.between(1, x.cap.max_send_sge);
    std::uint32_t at = 0;
    for (std::uint32_t i = 0; i < most; ++i) {
      const std::uint32_t n = i + 1 == most ? bytes - at : dice.below(bytes - at + 1);
      all.push_back({reinterpret_cast<std::uint64_t>(x.memory) + at, n, x.mr->lkey});
      at += n;
    }
    return all;
  }
  static void post(Queues& x, ibv_send_wr wr, std::vector<ibv_sge>& sges) {
    ibv_send_wr* bad = nullptr;
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    agree_on(ibv_post_send(x.qp, &wr, &bad), 0, "ibv_post_send");
    const bool signals = x.signals_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
    x.loose = signals ? 0 : x.loose + 1;
  }
  void finish(Queues& x, const ibv_send_wr& wr, ibv_wc_opcode opcode, Dice& dice) {
    if (!x.signals_all && (wr.send_flags & IBV_SEND_SIGNALED) == 0) return;
    agree_done(next(x.qp->send_cq), {wr.wr_id, IBV_WC_SUCCESS, opcode}, x);
    has_come(x.qp->send_cq, x, false, dice);
  }
  bool signals(const Queues& x, Dice& dice) const {
    return x.loose + 2 >= x.cap.max_send_wr || !dice.one_in(3);
  }

  // A message, or a Write with Immediate Data.
  void send(Queues& x, Queues& y, Dice& dice, ibv_wr_opcode opcode) {
    if (y.receives.empty()) post_receive(y, dice);
    ibv_send_wr wr = request(dice, opcode, signals(x, dice));
    const bool is_inline = dice.one_in(4);
    auto sges = pieces(x, dice.between(1, is_inline ? x.cap.max_inline_data : 500), dice);
    std::uint32_t bytes = 0;
    for (const ibv_sge& s : sges) bytes += s.length;
    const std::vector<std::uint8_t> sent(x.memory, x.memory + bytes);
    if (is_inline) wr.send_flags |= IBV_SEND_INLINE;
    if (dice.one_in(2)) wr.send_flags |= IBV_SEND_SOLICITED;
    const bool writes = opcode == IBV_WR_RDMA_WRITE_WITH_IMM, immediate = opcode != IBV_WR_SEND;
    if (immediate) wr.imm_data = static_cast<std::uint32_t>(dice.number());
    if (writes) {
      wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(y.memory) + kTarget;
      wr.wr.rdma.rkey = y.mr->rkey;
    }
    post(x, wr, sges);
    if (is_inline) std::fill(x.memory, x.memory + bytes, 0);  // the data has been copied
    Done must{y.receives.front(), IBV_WC_SUCCESS, writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
              bytes};
    y.receives.pop_front();
    if (immediate) must.flags = IBV_WC_WITH_IMM;
    if (immediate) must.word = wr.imm_data;
    agree_done(next(y.qp->recv_cq), must, y);
    agree(std::memcmp(y.memory + kTarget, sent.data(), bytes) == 0, "the data of a message");
    finish(x, wr, writes ? IBV_WC_RDMA_WRITE : IBV_WC_SEND, dice);
    has_come(y.qp->recv_cq, y, (wr.send_flags & IBV_SEND_SOLICITED) != 0, dice);
  }
  void one_sided(Queues& x, Queues& y, Dice& dice) {
    const bool reads = dice.one_in(2);
    const std::uint32_t bytes = dice.between(1, 500);
    ibv_send_wr wr = request(dice, reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, true);
    auto sges = pieces(x, bytes, dice);
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(y.memory) + (reads ? 0 : kTarget);
    wr.wr.rdma.rkey = y.mr->rkey;
    if (dice.one_in(3)) wr.send_flags |= IBV_SEND_FENCE;
    if (reads) {
      const auto there = dice.bytes(bytes);
      std::copy(there.begin(), there.end(), y.memory);
    }
    post(x, wr, sges);
    finish(x, wr, reads ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE, dice);
    const auto is_there = [&] {
      return std::memcmp(x.memory, y.memory + (reads ? 0 : kTarget), bytes) == 0;
    };
    // Over the kernel's TCP a Write is complete when the kernel has it.
    agree(Patience::waits_for(is_there), "the data of a Read or a Write");
  }
  // Changes memory by an atomic operation.
  void change(Queues& x, Queues& y, Dice& dice) {
    const bool adds = dice.one_in(2), fits = dice.one_in(2);
    const std::uint64_t before = dice.number(), operand = dice.number(), other = dice.number();
    std::memcpy(y.memory + kTarget, &before, 8);
    ibv_send_wr wr =
        request(dice, adds ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP, true);
    wr.wr.atomic = {reinterpret_cast<std::uint64_t>(y.memory) + kTarget,
                    adds   ? operand
                    : fits ? before
                           : other,
                    adds ? other : operand, y.mr->rkey};
    std::vector<ibv_sge> sges{{reinterpret_cast<std::uint64_t>(x.memory), 8, x.mr->lkey}};
    post(x, wr, sges);
    finish(x, wr, adds ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP, dice);
    const std::uint64_t after = adds ? before + operand : fits ? operand : before;
    agree(std::memcmp(x.memory, &before, 8) == 0, "what an atomic operation has found");
    agree(std::memcmp(y.memory + kTarget, &after, 8) == 0, "what an atomic operation has left");
  }
  // A window is bound, used, and invalidated by its owner or by a message.
  void lend(Queues& x, Queues& y, Dice& dice) {
    if (y.loose != 0) drain(y, x);
    ibv_mw* const mw = ibv_alloc_mw(y.qp->pd, IBV_MW_TYPE_2);
    agree(mw != nullptr, "ibv_alloc_mw");
    std::vector<ibv_sge> none;
    const std::uint32_t key = ibv_inc_rkey(mw->rkey);
    ibv_send_wr bind = request(dice, IBV_WR_BIND_MW, true);
    bind.bind_mw = {
        mw,
        key,
        {y.mr, reinterpret_cast<std::uint64_t>(y.memory) + kTarget, 64, IBV_ACCESS_REMOTE_WRITE}};
    ibv_send_wr* bad = nullptr;
    agree_on(ibv_post_send(y.qp, &bind, &bad), 0, "a bind");
    agree_on(mw->rkey, key, "the key of a bound window");
    finish(y, bind, IBV_WC_BIND_MW, dice);
    agree_on(ibv_dereg_mr(y.mr), EBUSY, "a region with a window");
    const bool with_message = dice.one_in(2);
    if (with_message) {
      if (y.receives.empty()) post_receive(y, dice);
      ibv_send_wr wr = request(dice, IBV_WR_SEND_WITH_INV, true);
      wr.invalidate_rkey = key;
      post(x, wr, none);
      agree_done(next(y.qp->recv_cq),
                 {y.receives.front(), IBV_WC_SUCCESS, IBV_WC_RECV, 0, IBV_WC_WITH_INV, key}, y);
      y.receives.pop_front();
      finish(x, wr, IBV_WC_SEND, dice);
      has_come(y.qp->recv_cq, y, false, dice);
    } else {
      ibv_send_wr wr = request(dice, IBV_WR_LOCAL_INV, true);
      wr.invalidate_rkey = key;
      post(y, wr, none);
      finish(y, wr, IBV_WC_LOCAL_INV, dice);
    }
    agree_on(ibv_dealloc_mw(mw), 0, "ibv_dealloc_mw");
  }
  // More than the queue holds: those before the reported one complete.
  void overfill(Queues& x, Dice& dice) {
    if (x.loose != 0) return;
    std::vector<ibv_send_wr> list(x.cap.max_send_wr + 1);
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i] = request(dice, IBV_WR_RDMA_WRITE, true);
      list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
    }
    ibv_send_wr* bad = nullptr;
    agree_on(ibv_post_send(x.qp, list.data(), &bad), ENOMEM, "more than the queue holds");
    agree(bad == &list.back(), "the request for which there is no room");
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      finish(x, list[i], IBV_WC_RDMA_WRITE, dice);
    }
  }
  void misuse(Queues& x, Queues&, Dice& dice) {
    ibv_send_wr wr = request(dice, IBV_WR_SEND, true), *bad = nullptr;
    std::vector<ibv_sge> sges(x.cap.max_send_sge + 1,
                              {reinterpret_cast<std::uint64_t>(x.memory), 1, x.mr->lkey});
    wr.sg_list = sges.data();
    wr.num_sge = 1;
    int error = EINVAL;
    switch (dice.below(5)) {
      case 0:
        wr.num_sge = static_cast<int>(sges.size());
        break;
      case 1:
        wr.num_sge = -1;
        break;
      case 2:
        wr.send_flags |= IBV_SEND_INLINE;
        sges[0].length = x.cap.max_inline_data + 1;
        break;
      case 3:
        wr.send_flags |= 1 << 7;
        break;
      default:
        wr.opcode = static_cast<ibv_wr_opcode>(99);
        error = EOPNOTSUPP;
    }
    agree_on(ibv_post_send(x.qp, &wr, &bad), error, "a wrong request");
    agree(bad == &wr, "the wrong request");
  }
  // Waits until every outstanding request has been seen to complete.
  void drain(Queues& x, Queues&) {
    if (x.loose == 0) return;
    Dice dice(1);
    std::vector<ibv_sge> none;
    const ibv_send_wr wr = request(dice, IBV_WR_RDMA_WRITE, true);
    post(x, wr, none);
    finish(x, wr, IBV_WC_RDMA_WRITE, dice);
  }

  CmWorld& world_;
};

}  // namespace calls_walk
