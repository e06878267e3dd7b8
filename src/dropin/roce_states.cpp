#include "dropin/roce_states.h"

#include <optional>
#include <type_traits>

#include "dropin/address_handle.h"
#include "dropin/errors.h"
#include "dropin/memory.h"

namespace urnic::dropin {
namespace {

constexpr int kIbMasks = (1 << 21) - 1;
// Not supported: alternate paths, and resizing of queues.
constexpr int kNot = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP;
constexpr int kReady = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
constexpr std::uint32_t kPsn = 0xffffff;

// Naming the present state is allowed only in moves to RTS (IB-106).
bool names_present_state(const ibv_qp_attr& a, int mask, ibv_qp_state now, ibv_qp_state to) {
  if ((mask & IBV_QP_CUR_STATE) == 0) return true;
  return to == IBV_QPS_RTS && a.cur_qp_state == now;
}

// 0 for an invalid value, which is refused later.
std::uint32_t bytes_of(ibv_mtu mtu) {
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

void take_numbers(const ibv_qp_attr& a, int mask, QpAttributes* out) {
  const auto take = [&](int bit, std::uint32_t value, std::optional<std::uint32_t>* to) {
    if ((mask & bit) != 0) *to = value;
  };
  take(IBV_QP_ACCESS_FLAGS, to_remote_access(a.qp_access_flags), &out->access);
  take(IBV_QP_PKEY_INDEX, a.pkey_index, &out->pkey_index);
  take(IBV_QP_PORT, a.port_num, &out->port);
  take(IBV_QP_QKEY, a.qkey, &out->qkey);
  take(IBV_QP_DEST_QPN, a.dest_qp_num, &out->dest_qp);
  take(IBV_QP_PATH_MTU, bytes_of(a.path_mtu), &out->path_mtu);
  take(IBV_QP_RQ_PSN, a.rq_psn & kPsn, &out->rq_psn);
  take(IBV_QP_SQ_PSN, a.sq_psn & kPsn, &out->sq_psn);
  take(IBV_QP_MAX_DEST_RD_ATOMIC, a.max_dest_rd_atomic, &out->responder_depth);
  take(IBV_QP_MAX_QP_RD_ATOMIC, a.max_rd_atomic, &out->initiator_depth);
  take(IBV_QP_MIN_RNR_TIMER, a.min_rnr_timer, &out->min_rnr_timer);
  take(IBV_QP_TIMEOUT, a.timeout, &out->ack_timeout);
  take(IBV_QP_RETRY_CNT, a.retry_cnt, &out->retry_count);
  take(IBV_QP_RNR_RETRY, a.rnr_retry, &out->rnr_retry);
}

// Removes the attributes that belong to the other end of XRC; programs set them all the same
// (perftest).
int of_its_half(ibv_qp_type type, int mask) {
  constexpr int kServes = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  constexpr int kAsks = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  if (type == IBV_QPT_XRC_SEND) return mask & ~kServes;
  return type == IBV_QPT_XRC_RECV ? mask & ~kAsks : mask;
}

int to_attributes(const Qp& qp, const ibv_qp_attr& a, int mask, QpAttributes* out) {
  take_numbers(a, mask, out);
  if ((mask & IBV_QP_AV) == 0) return 0;
  // From both numbers, so that each pair of queue pairs may have a path of its own.
  const std::uint32_t to = (mask & IBV_QP_DEST_QPN) != 0 ? a.dest_qp_num : qp.given.dest_qp_num;
  QpPath path;
  if (const int e = to_path(qp.end->adapter, a.ah_attr, qp.base.qp_num ^ to, &path); e != 0)
    return e;
  out->path = std::move(path);
  return 0;
}

// True if an attribute is missing that the library does not need but InfiniBand requires (IB-107).
bool lacks_port(ibv_qp_state now, ibv_qp_state to, int mask) {
  return now == IBV_QPS_RESET && to == IBV_QPS_INIT && (mask & kReady) != kReady;
}

// The library always reports when the queue has drained, because ibv_query_qp returns it; the
// program gets an event only if it requested one (IB-112).
void drain(Qp* qp, const ibv_qp_attr& a, int mask, QpAttributes* out) {
  qp->drained = false;
  qp->tell_drained = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && a.en_sqd_async_notify != 0;
  out->tell_drained = true;
}

}  // namespace

int modify_roce(Qp* qp, const ibv_qp_attr& a, int mask) {
  if (mask == 0) return 0;  // nothing is requested
  mask = of_its_half(qp->base.qp_type, mask);
  if ((mask & ~kIbMasks) != 0) return EINVAL;
  if ((mask & kNot) != 0) return EOPNOTSUPP;
  const ibv_qp_state now = qp->state();
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? a.qp_state : now;
  if (to > IBV_QPS_ERR || !names_present_state(a, mask, now, to)) return EINVAL;
  if (lacks_port(now, to, mask)) return EINVAL;
  QpAttributes attributes;
  if (const int e = to_attributes(*qp, a, mask, &attributes); e != 0) return e;
  const bool drains = now == IBV_QPS_RTS && to == IBV_QPS_SQD;
  if (drains) drain(qp, a, mask, &attributes);
  if (!drains && (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0) return EINVAL;
  const auto moved = qp->end->handle.modify(static_cast<QpState>(to), attributes);
  return moved ? 0 : to_errno(moved.error().code);
}

void show_numbers(const QpAttributes& a, int mask, ibv_qp_attr* out) {
  const auto show = [&](int bit, const std::optional<std::uint32_t>& from, auto* to) {
    if ((mask & bit) != 0 && from) *to = static_cast<std::remove_pointer_t<decltype(to)>>(*from);
  };
  show(IBV_QP_QKEY, a.qkey, &out->qkey);
  show(IBV_QP_DEST_QPN, a.dest_qp, &out->dest_qp_num);
  show(IBV_QP_RQ_PSN, a.rq_psn, &out->rq_psn);
  show(IBV_QP_MAX_DEST_RD_ATOMIC, a.responder_depth, &out->max_dest_rd_atomic);
  show(IBV_QP_MIN_RNR_TIMER, a.min_rnr_timer, &out->min_rnr_timer);
  show(IBV_QP_SQ_PSN, a.sq_psn, &out->sq_psn);
  show(IBV_QP_TIMEOUT, a.ack_timeout, &out->timeout);
  show(IBV_QP_RETRY_CNT, a.retry_count, &out->retry_cnt);
  show(IBV_QP_RNR_RETRY, a.rnr_retry, &out->rnr_retry);
  show(IBV_QP_MAX_QP_RD_ATOMIC, a.initiator_depth, &out->max_rd_atomic);
  if ((mask & IBV_QP_PATH_MTU) == 0) return;
  for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; ++mtu) {
    if (a.path_mtu == bytes_of(static_cast<ibv_mtu>(mtu)))
      out->path_mtu = static_cast<ibv_mtu>(mtu);
  }
}

ibv_ah_attr address_vector_of(Adapter& adapter, const QpAttributes& a) {
  return to_address_vector(adapter, *a.path);
}

void show_attributes(const Qp& qp, ibv_qp_attr* out) {
  const QpAttributes a = qp.end->handle.attributes();
  show_numbers(a, kIbMasks, out);
  // The program's own path contains a flow label and more.
  if (a.path && out->ah_attr.is_global == 0) out->ah_attr = address_vector_of(qp.end->adapter, a);
}

ibv_qp_attr init_attributes(bool reads, int* mask) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (reads) a.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  *mask = IBV_QP_STATE | kReady | IBV_QP_ACCESS_FLAGS;
  return a;
}

}  // namespace urnic::dropin
