#include "dropin/qp_types.h"

#include "dropin/completion.h"
#include "dropin/context.h"
#include "dropin/memory.h"
#include "dropin/shared_receive.h"
#include "dropin/xrc.h"

namespace urnic::dropin {

bool has_type(const Adapter& adapter, ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return true;
    case IBV_QPT_UC:
      return adapter.traits().has_uc;
    case IBV_QPT_UD:
      return adapter.traits().has_datagrams;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
      return adapter.traits().has_xrc;
    default:
      return false;
  }
}

Service service_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_UC:
      return Service::uc;
    case IBV_QPT_UD:
      return Service::ud;
    case IBV_QPT_XRC_SEND:
      return Service::xrc_send;
    case IBV_QPT_XRC_RECV:
      return Service::xrc_receive;
    default:
      return Service::rc;
  }
}

bool has_objects(const ibv_qp_init_attr_ex& a) {
  if (a.qp_type == IBV_QPT_XRC_RECV) {
    return (a.comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0 && a.xrcd != nullptr;
  }
  const bool receives = a.qp_type != IBV_QPT_XRC_SEND;
  const auto known = [](ibv_cq* cq) { return cq != nullptr && Cq::of(cq)->is_known(); };
  return a.pd != nullptr && Pd::of(a.pd)->is_known() && known(a.send_cq) &&
         (!receives || known(a.recv_cq)) && (a.srq == nullptr || Srq::of(a.srq)->is_known());
}

ibv_qp_init_attr_ex extended(const ibv_qp_init_attr& attr, ibv_pd* pd) {
  ibv_qp_init_attr_ex ex{};
  ex.qp_context = attr.qp_context;
  ex.send_cq = attr.send_cq;
  ex.recv_cq = attr.recv_cq;
  ex.srq = attr.srq;
  ex.cap = attr.cap;
  ex.qp_type = attr.qp_type;
  ex.sq_sig_all = attr.sq_sig_all;
  ex.comp_mask = IBV_QP_INIT_ATTR_PD;
  ex.pd = pd;
  return ex;
}

void forget_unused(ibv_qp_init_attr_ex* a) {
  if (a->srq != nullptr) a->cap.max_recv_wr = a->cap.max_recv_sge = 0;
  if (a->qp_type != IBV_QPT_XRC_SEND && a->qp_type != IBV_QPT_XRC_RECV) return;
  a->recv_cq = nullptr;
  a->srq = nullptr;
  a->cap.max_recv_wr = a->cap.max_recv_sge = 0;
  if (a->qp_type == IBV_QPT_XRC_SEND) return;
  a->pd = nullptr;
  a->send_cq = nullptr;
  a->cap = {};
}

void count_users(const Qp& qp, int by) {
  const ibv_qp& b = qp.base;
  if (b.pd != nullptr) Pd::of(b.pd)->users.fetch_add(by);
  if (b.send_cq != nullptr) Cq::of(b.send_cq)->users.fetch_add(by);
  if (b.recv_cq != nullptr) Cq::of(b.recv_cq)->users.fetch_add(by);
  if (b.srq != nullptr) Srq::of(b.srq)->users.fetch_add(by);
  if (qp.xrcd != nullptr) Xrcd::of(qp.xrcd)->users.fetch_add(by);
  Context::of(b.context)->users.fetch_add(by);
  counts(b.context).queue_pairs.fetch_add(by);
}

}  // namespace urnic::dropin
