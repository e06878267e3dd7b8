// Queue pairs, shared receive queues and whole endpoints that are created through an id.
#include <netdb.h>

#include <algorithm>
#include <cstring>

#include "dropin/cm_datagrams.h"
#include "dropin/cm_id.h"
#include "dropin/cm_numbers.h"
#include "dropin/context.h"
#include "dropin/errors.h"
#include "dropin/injector.h"
#include "dropin/qp_types.h"
#include "dropin/roce_states.h"
#include "dropin/undo.h"

namespace urnic::dropin {
namespace {

void destroy_queues(rdma_cm_id* r) {
  if (r->recv_cq != nullptr) {
    urnic_ibv_destroy_cq(r->recv_cq);
    if (r->recv_cq_channel != nullptr) urnic_ibv_destroy_comp_channel(r->recv_cq_channel);
    r->recv_cq = nullptr;
    r->recv_cq_channel = nullptr;
  }
  if (r->send_cq != nullptr) {
    urnic_ibv_destroy_cq(r->send_cq);
    if (r->send_cq_channel != nullptr) urnic_ibv_destroy_comp_channel(r->send_cq_channel);
    r->send_cq = nullptr;
    r->send_cq_channel = nullptr;
  }
}

// Creates a completion queue with a channel of its own, if the program has not set one.
bool make_queue(rdma_cm_id* r, std::uint32_t depth, ibv_comp_channel** channel, ibv_cq** cq) {
  *channel = urnic_ibv_create_comp_channel(r->verbs);
  if (*channel == nullptr) return false;
  *cq = urnic_ibv_create_cq(r->verbs, static_cast<int>(std::max(depth, 1u)), r, *channel, 0);
  if (*cq != nullptr) return true;
  const int error = errno;
  urnic_ibv_destroy_comp_channel(*channel);
  *channel = nullptr;
  errno = error;
  return false;
}

// Moves the queue pair as far as rdma_cm does without a peer: to INIT, or for UD to RTS.
int make_ready(const rdma_cm_id& r, ibv_qp* qp) {
  if (r.qp_type == IBV_QPT_UD) return ready_datagrams(qp);
  int mask = 0;
  ibv_qp_attr init = init_attributes(true, &mask);
  if (!Adapter::of(r.verbs).traits().has_ib_states) mask = IBV_QP_STATE;
  return urnic_ibv_modify_qp(qp, &init, mask);
}

// Fills in the attributes that the program has left open; restores them if the call fails.
int create_qp(rdma_cm_id* r, ibv_qp_init_attr_ex* attr) {
  if (r->qp != nullptr || r->verbs == nullptr) return failed(EINVAL);
  const bool names_pd = (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 && attr->pd != nullptr;
  if (names_pd && !is_same_device(attr->pd->context, r->verbs)) return failed(EINVAL);
  Undo as_it_was([=, mask = attr->comp_mask, pd = attr->pd, send = attr->send_cq,
                  receive = attr->recv_cq, srq = attr->srq] {
    const int error = errno;
    destroy_queues(r);
    attr->comp_mask = mask;
    if ((mask & IBV_QP_INIT_ATTR_PD) != 0) attr->pd = pd;
    attr->send_cq = send;
    attr->recv_cq = receive;
    attr->srq = srq;
    errno = error;
  });
  if (!names_pd) {
    attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
    attr->pd = r->pd;
  }
  if (attr->recv_cq == nullptr) {
    if (!make_queue(r, attr->cap.max_recv_wr, &r->recv_cq_channel, &r->recv_cq)) return -1;
    attr->recv_cq = r->recv_cq;
  }
  if (attr->send_cq == nullptr) {
    if (!make_queue(r, attr->cap.max_send_wr, &r->send_cq_channel, &r->send_cq)) return -1;
    attr->send_cq = r->send_cq;
  }
  if (r->srq != nullptr) attr->srq = r->srq;
  ibv_qp* qp = guarded([&] { return create_for_cm(r->verbs, attr, r->qp_type); }, nullptr);
  const int error = qp == nullptr ? errno : make_ready(*r, qp);
  if (error != 0) {
    if (qp != nullptr) urnic_ibv_destroy_qp(qp);
    return failed(error);
  }
  as_it_was.keep();
  r->qp = qp;
  return 0;
}

}  // namespace
}  // namespace urnic::dropin

using namespace urnic::dropin;  // the exported functions are in the global namespace

int urnic_rdma_create_qp_ex(rdma_cm_id* r, ibv_qp_init_attr_ex* attr) {
  if (const int e = injected(VerbsKind::rdma_create_qp); e != 0) return failed(e);
  return guarded([&] { return create_qp(r, attr); }, -1);
}

int urnic_rdma_create_qp(rdma_cm_id* r, ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (const int e = injected(VerbsKind::rdma_create_qp); e != 0) return failed(e);
  return guarded(
      [&] {
        ibv_qp_init_attr_ex ex = extended(*attr, pd != nullptr ? pd : r->pd);
        if (create_qp(r, &ex) != 0) return -1;
        attr->send_cq = ex.send_cq;
        attr->recv_cq = ex.recv_cq;
        attr->srq = ex.srq;
        attr->cap = ex.cap;
        return 0;
      },
      -1);
}

void urnic_rdma_destroy_qp(rdma_cm_id* r) {
  if (r->qp == nullptr) return;
  urnic_ibv_destroy_qp(r->qp);
  r->qp = nullptr;
  destroy_queues(r);
}

int urnic_rdma_create_srq(rdma_cm_id* r, ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (r->srq != nullptr || r->verbs == nullptr) return failed(EINVAL);
  if (pd != nullptr && !is_same_device(pd->context, r->verbs)) return failed(EINVAL);
  ibv_srq* srq = urnic_ibv_create_srq(pd != nullptr ? pd : r->pd, attr);
  if (srq == nullptr) return -1;
  r->srq = srq;
  return 0;
}

int urnic_rdma_create_srq_ex(rdma_cm_id* r, ibv_srq_init_attr_ex* attr) {
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && attr->srq_type != IBV_SRQT_BASIC) {
    return failed(EOPNOTSUPP);
  }
  ibv_srq_init_attr plain{};
  plain.srq_context = attr->srq_context;
  plain.attr = attr->attr;
  const bool has_pd = (attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0;
  if (urnic_rdma_create_srq(r, has_pd ? attr->pd : nullptr, &plain) != 0) return -1;
  attr->attr = plain.attr;
  return 0;
}

void urnic_rdma_destroy_srq(rdma_cm_id* r) {
  if (r->srq == nullptr) return;
  urnic_ibv_destroy_srq(r->srq);
  r->srq = nullptr;
}

// Returns the attributes for a program that moves the queue pair itself. Over iWARP the connection
// moves it to RTS, so there are no attributes for that move, and none with a state once it has
// happened.
int urnic_rdma_init_qp_attr(rdma_cm_id* r, ibv_qp_attr* attr, int* mask) {
  if (r->verbs == nullptr) return failed(EINVAL);
  CmId* id = CmId::of(r);
  if (!Adapter::of(r->verbs).traits().connection_moves_qp) {
    return zero_or_failed(guarded(
        [&] {
          return id->has_datagrams() ? init_datagrams(attr, mask)
                                     : init_attributes_of(id, attr, mask);
        },
        ENOMEM));
  }
  bool connected;
  {
    const std::lock_guard guard(Process::get().cm);
    connected = id->stage == IdState::Connected;
  }
  switch (attr->qp_state) {
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
      attr->qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
      *mask = IBV_QP_ACCESS_FLAGS | (connected ? 0 : IBV_QP_STATE);
      return 0;
    case IBV_QPS_RTS:
      *mask = 0;
      return 0;
    default:
      return failed(EINVAL);
  }
}

// ---- endpoints

int urnic_rdma_create_ep(rdma_cm_id** out, rdma_addrinfo* a, ibv_pd* pd, ibv_qp_init_attr* attr) {
  return guarded(
      [&] {
        const int type = a->ai_port_space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
        if (a->ai_qp_type != type && a->ai_qp_type != 0) return failed(EOPNOTSUPP);
        rdma_cm_id* r = nullptr;
        if (urnic_rdma_create_id(nullptr, &r, nullptr,
                                 static_cast<rdma_port_space>(a->ai_port_space)) != 0) {
          return -1;
        }
        const auto give_up = [&] {
          const int error = errno;
          urnic_rdma_destroy_ep(r);
          return failed(error);
        };
        CmId* id = CmId::of(r);
        if ((a->ai_flags & RAI_PASSIVE) != 0) {
          if (urnic_rdma_bind_addr(r, a->ai_src_addr) != 0) return give_up();
          if (attr != nullptr) {
            id->of_requests.qp = std::make_unique<ibv_qp_init_attr>(*attr);
            id->of_requests.qp->qp_type = r->qp_type;
            id->of_requests.pd = pd;
          }
          *out = r;
          return 0;
        }
        if (urnic_rdma_resolve_addr(r, a->ai_src_addr, a->ai_dst_addr, 2000) != 0) return give_up();
        if (urnic_rdma_resolve_route(r, 2000) != 0) return give_up();
        if (attr != nullptr) {
          attr->qp_type = r->qp_type;
          if (urnic_rdma_create_qp(r, pd, attr) != 0) return give_up();
        }
        *out = r;
        return 0;
      },
      -1);
}

void urnic_rdma_destroy_ep(rdma_cm_id* r) {
  urnic_rdma_destroy_qp(r);
  urnic_rdma_destroy_srq(r);
  urnic_rdma_destroy_id(r);
}

// ---- names

namespace {

sockaddr* copied(const sockaddr* a, socklen_t length) {
  if (a == nullptr || length == 0) return nullptr;
  auto* out = static_cast<sockaddr*>(std::malloc(length));
  if (out != nullptr) std::memcpy(out, a, length);
  return out;
}

}  // namespace

int urnic_rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints,
                           rdma_addrinfo** out) {
  if (node == nullptr && service == nullptr && hints == nullptr) return failed(EINVAL);
  auto* r = static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo)));
  if (r == nullptr) return failed(ENOMEM);
  const rdma_addrinfo none{};
  const rdma_addrinfo& h = hints != nullptr ? *hints : none;
  r->ai_flags = h.ai_flags;
  r->ai_family = h.ai_family;
  const bool datagrams = h.ai_qp_type == IBV_QPT_UD || h.ai_port_space == RDMA_PS_UDP;
  r->ai_qp_type = h.ai_qp_type != 0 ? h.ai_qp_type : datagrams ? IBV_QPT_UD : IBV_QPT_RC;
  r->ai_port_space = h.ai_port_space != 0 ? h.ai_port_space : datagrams ? RDMA_PS_UDP : RDMA_PS_TCP;
  r->ai_src_len = h.ai_src_len;
  r->ai_src_addr = copied(h.ai_src_addr, h.ai_src_len);
  r->ai_dst_len = h.ai_dst_len;
  r->ai_dst_addr = copied(h.ai_dst_addr, h.ai_dst_len);
  const bool passive = (h.ai_flags & RAI_PASSIVE) != 0;
  if (node != nullptr || service != nullptr) {
    addrinfo want{};
    want.ai_family = (h.ai_flags & RAI_FAMILY) != 0 ? h.ai_family : AF_UNSPEC;
    want.ai_socktype = datagrams ? SOCK_DGRAM : SOCK_STREAM;
    if (passive) want.ai_flags |= AI_PASSIVE;
    if ((h.ai_flags & RAI_NUMERICHOST) != 0) want.ai_flags |= AI_NUMERICHOST;
    addrinfo* found = nullptr;
    const int e = getaddrinfo(node, service, &want, &found);
    if (e != 0) {
      urnic_rdma_freeaddrinfo(r);
      return e;
    }
    sockaddr*& address = passive ? r->ai_src_addr : r->ai_dst_addr;
    socklen_t& length = passive ? r->ai_src_len : r->ai_dst_len;
    std::free(address);
    address = copied(found->ai_addr, found->ai_addrlen);
    length = found->ai_addrlen;
    r->ai_family = found->ai_family;
    freeaddrinfo(found);
  }
  *out = r;
  return 0;
}

void urnic_rdma_freeaddrinfo(rdma_addrinfo* r) {
  while (r != nullptr) {
    rdma_addrinfo* next = r->ai_next;
    std::free(r->ai_src_addr);
    std::free(r->ai_dst_addr);
    std::free(r->ai_src_canonname);
    std::free(r->ai_dst_canonname);
    std::free(r->ai_route);
    std::free(r->ai_connect);
    std::free(r);
    r = next;
  }
}
