// The states of a queue pair for the program: ibv_modify_qp.
#include <algorithm>
#include <chrono>

#include "dropin/context.h"
#include "dropin/errors.h"
#include "dropin/gids.h"
#include "dropin/memory.h"
#include "dropin/peer_matcher.h"
#include "dropin/queue_pair.h"
#include "dropin/roce_states.h"

namespace urnic::dropin {
namespace {

// Reads the peer's address (a GID) and number.
int to_peer(Adapter& adapter, const ibv_qp_attr& a, int mask, Peer* out) {
  constexpr int kBoth = IBV_QP_AV | IBV_QP_DEST_QPN;
  if ((mask & kBoth) != kBoth) return EINVAL;
  const ibv_ah_attr& to = a.ah_attr;
  if (to.is_global == 0 || !to_address(to.grh.dgid, &out->address)) return EOPNOTSUPP;
  const GidSlots gids = adapter.gids();
  if (to.grh.sgid_index < gids.size()) {
    const ibv_gid& own = gids.at(to.grh.sgid_index);
    if (to_address(own, &out->own)) give_link(&out->own, link_of(adapter, out->own));
    if (is_link_local(out->address)) give_link(&out->address, interface_of(own));
  }
  if (out->own.any.sa_family != out->address.any.sa_family) out->own = {};
  if (a.dest_qp_num == 0 || a.dest_qp_num > 0xffffff) return EINVAL;
  out->number = a.dest_qp_num;
  const auto most = adapter.config().get_int("ird");
  out->ird = static_cast<std::uint16_t>((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0
                                            ? std::min<std::int64_t>(a.max_dest_rd_atomic, most)
                                            : most);
  return 0;
}

// The total time that InfiniBand would retry: one time-out lasts between one and four times 4.096
// us * 2^timeout (IBA 9.7.6.1.3), and after the last one the request fails. 0: without limit.
std::chrono::milliseconds patience_of(const ibv_qp_attr& a, int mask) {
  constexpr std::chrono::milliseconds kLeast{1000};  // a TCP connection needs some time
  const unsigned exponent = (mask & IBV_QP_TIMEOUT) != 0 ? a.timeout & 31u : 14;
  const unsigned tries = ((mask & IBV_QP_RETRY_CNT) != 0 ? a.retry_cnt & 7u : 7) + 1;
  if (exponent == 0) return {};
  const std::chrono::nanoseconds all{(std::uint64_t{4096} << exponent) * 4 * tries};
  return std::max(kLeast, std::chrono::duration_cast<std::chrono::milliseconds>(all));
}

// With address and number: names the peer. Without them, as for programs that use rdma_cm, RTR is
// only another name for INIT.
int to_ready_to_receive(Qp* qp, const ibv_qp_attr& a, int mask, ibv_qp_state now) {
  const bool by_number = (mask & (IBV_QP_AV | IBV_QP_DEST_QPN)) != 0;
  if (now == IBV_QPS_RTS && !by_number) return 0;
  if (now != IBV_QPS_INIT && (now != IBV_QPS_RTR || by_number)) return EINVAL;
  if (by_number) {
    Peer peer;
    Adapter& adapter = qp->end->adapter;
    if (const int e = to_peer(adapter, a, mask, &peer); e != 0) return e;
    const std::lock_guard guard(Process::get().cm);
    if (const int e = adapter.peer_matcher().meet(qp->base.qp_num, peer); e != 0) return e;
  }
  qp->told = IBV_QPS_RTR;
  return 0;
}

int to_ready_to_send(Qp* qp, const ibv_qp_attr& a, int mask, ibv_qp_state now) {
  if (now == IBV_QPS_RTS) return 0;
  const std::lock_guard guard(Process::get().cm);
  // A connection lost before RTS is reported by the first send.
  if (qp->told != IBV_QPS_RTR || !qp->end->met) return EINVAL;
  qp->end->adapter.peer_matcher().set_patience(qp->base.qp_num, patience_of(a, mask));
  qp->end->handle.take_early_sends(true);
  qp->told = IBV_QPS_RTS;
  return 0;
}

// A connection is made by rdma_connect and rdma_accept, or by two programs that have exchanged
// address and number.
int move(Qp* qp, const ibv_qp_attr& a, int mask) {
  QueuePair& handle = qp->end->handle;
  const ibv_qp_state now = qp->state();
  if ((mask & IBV_QP_CUR_STATE) != 0 && a.cur_qp_state != now) return EINVAL;
  switch (a.qp_state) {
    case IBV_QPS_RTR:
      return to_ready_to_receive(qp, a, mask, now);
    case IBV_QPS_RTS:
      return to_ready_to_send(qp, a, mask, now);
    case IBV_QPS_RESET:
    case IBV_QPS_INIT:
    case IBV_QPS_SQD:
    case IBV_QPS_ERR: {
      if (a.qp_state == IBV_QPS_INIT && now == IBV_QPS_INIT) return 0;
      if (a.qp_state == IBV_QPS_RESET || a.qp_state == IBV_QPS_ERR) {
        const std::lock_guard guard(Process::get().cm);
        qp->end->adapter.peer_matcher().leave(qp->base.qp_num);
      }
      auto ok = handle.modify(static_cast<QpState>(a.qp_state));
      if (!ok) return to_errno(ok.error().code);
      handle.take_early_sends(false);
      qp->told = IBV_QPS_RESET;
      return 0;
    }
    default:
      return EINVAL;
  }
}

// Sets which of the rights that regions allow the peer has.
int take_rights(Qp* qp, unsigned flags) {
  QueuePair& handle = qp->end->handle;
  QpAttributes a;
  a.access = to_remote_access(flags);
  for (;;) {  // connecting or disconnecting may change the state meanwhile
    const QpState state = handle.state();
    const auto ok = handle.modify(state, a);
    if (ok) return 0;
    if (handle.state() == state) return to_errno(ok.error().code);
  }
}

// Stores attributes that have no effect here: path MTU, sequence numbers and the like.
void remember(Qp* qp, const ibv_qp_attr& a, int mask) {
  ibv_qp_attr& g = qp->given;
  if ((mask & IBV_QP_AV) != 0) g.ah_attr = a.ah_attr;
  if ((mask & IBV_QP_PATH_MTU) != 0) g.path_mtu = a.path_mtu;
  if ((mask & IBV_QP_DEST_QPN) != 0) g.dest_qp_num = a.dest_qp_num;
  if ((mask & IBV_QP_RQ_PSN) != 0) g.rq_psn = a.rq_psn;
  if ((mask & IBV_QP_SQ_PSN) != 0) g.sq_psn = a.sq_psn;
  if ((mask & IBV_QP_TIMEOUT) != 0) g.timeout = a.timeout;
  if ((mask & IBV_QP_RETRY_CNT) != 0) g.retry_cnt = a.retry_cnt;
  if ((mask & IBV_QP_RNR_RETRY) != 0) g.rnr_retry = a.rnr_retry;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) g.min_rnr_timer = a.min_rnr_timer;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) g.max_rd_atomic = a.max_rd_atomic;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) g.max_dest_rd_atomic = a.max_dest_rd_atomic;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) g.qp_access_flags = a.qp_access_flags;
  if ((mask & IBV_QP_QKEY) != 0) g.qkey = a.qkey;
}

}  // namespace

void Endpoint::tell_timeout(std::optional<std::uint8_t> code) {
  const std::lock_guard guard(mutex_);
  if (code && qp_ != nullptr) qp_->given.timeout = *code;
}

// RFC 5040 has only Idle, RTS and the states after it. Without rdma_cm the program's state is
// shown, whether there is a connection yet or not.
ibv_qp_state Qp::state() const {
  const auto s = static_cast<ibv_qp_state>(end->handle.state());
  if (told == IBV_QPS_RESET) return s;
  const bool is_told = s == IBV_QPS_INIT || (end->met && (s == IBV_QPS_RTR || s == IBV_QPS_RTS));
  return is_told ? told.load() : s;
}

int Qp::modify(const ibv_qp_attr& a, int mask) {
  if (is_inherited(base.context)) return EINVAL;  // its tables belong to the parent
  if (!is_known()) return ENOENT;
  if (end->adapter.traits().has_ib_states) {
    if (const int e = modify_roce(this, a, mask); e != 0) return e;
    if ((mask & IBV_QP_STATE) != 0 && a.qp_state == IBV_QPS_RESET) given = {};
    remember(this, a, mask);
    show(state());
    return 0;
  }
  if ((mask & (IBV_QP_QKEY | IBV_QP_ALT_PATH | IBV_QP_CAP | IBV_QP_RATE_LIMIT)) != 0) {
    return EOPNOTSUPP;
  }
  if ((mask & IBV_QP_PORT) != 0 && a.port_num != 1) return EINVAL;
  if ((mask & IBV_QP_PKEY_INDEX) != 0 && a.pkey_index != 0) return EINVAL;
  // Set rights before the peer may connect; RESET clears them.
  const bool moves = (mask & IBV_QP_STATE) != 0;
  const bool connects = moves && (a.qp_state == IBV_QPS_RTR || a.qp_state == IBV_QPS_RTS);
  const bool rights = (mask & IBV_QP_ACCESS_FLAGS) != 0;
  if (rights && connects) {
    if (const int e = take_rights(this, a.qp_access_flags); e != 0) return e;
  }
  if (moves) {
    if (const int e = move(this, a, mask); e != 0) return e;
  }
  if (rights && !connects) {
    if (const int e = take_rights(this, a.qp_access_flags); e != 0) return e;
  }
  remember(this, a, mask);
  show(state());
  return 0;
}

}  // namespace urnic::dropin

using namespace urnic::dropin;  // the exported functions are in the global namespace

int urnic_ibv_query_qp(ibv_qp* q, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  Qp* qp = Qp::of(q);
  if (!qp->is_known()) return told(ENOENT);
  *attr = qp->given;
  attr->qp_state = attr->cur_qp_state = qp->state();
  const TransportTraits& traits = qp->end->adapter.traits();
  if (traits.has_ib_states) {
    const int e = guarded([&] { return show_attributes(*qp, attr), 0; }, ENOMEM);
    if (e != 0) return e;
  }
  qp->show(attr->qp_state);
  if (attr->path_mtu == 0) attr->path_mtu = IBV_MTU_1024;
  attr->path_mig_state = IBV_MIG_MIGRATED;
  attr->cap = qp->cap;
  attr->port_num = 1;
  attr->sq_draining = traits.drains_in_sqd && attr->qp_state == IBV_QPS_SQD && !qp->drained;
  *init = {};
  init->qp_context = q->qp_context;
  init->send_cq = q->send_cq;
  init->recv_cq = q->recv_cq;
  init->srq = q->srq;
  init->cap = qp->cap;
  init->qp_type = q->qp_type;
  init->sq_sig_all = qp->sig_all ? 1 : 0;
  return 0;
}
