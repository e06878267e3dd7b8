// Queue pairs of the C library, and their work requests.
#include <errno.h>

#include <algorithm>
#include <string_view>

#include "tests/fuzz/dropin_program.h"

namespace urnic::fuzz {
namespace {

constexpr std::uint32_t kPsn = 0xfffff0, kQkey = 0x11111111;

bool is_roce(const ibv_context* c) {
  return std::string_view(c->device->name) == "rocky";
}

// All attributes that a transition of a queue pair of that type may need.
int mask_of(ibv_qp_type type, ibv_qp_state to) {
  const bool rc = type == IBV_QPT_RC, ud = type == IBV_QPT_UD;
  switch (to) {
    case IBV_QPS_INIT:
      return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
             (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_RTR:
      if (ud) return IBV_QP_STATE;
      return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    case IBV_QPS_RTS:
      return IBV_QP_STATE | IBV_QP_SQ_PSN |
             (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                 : 0);
    default:
      return IBV_QP_STATE;
  }
}

ibv_qp_attr attributes(ibv_qp_state to, const ibv_qp* peer) {
  ibv_qp_attr a{};
  a.qp_state = to;
  a.port_num = 1;
  a.qkey = kQkey;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  a.path_mtu = IBV_MTU_1024;
  a.rq_psn = a.sq_psn = kPsn;
  a.max_dest_rd_atomic = a.max_rd_atomic = 4;
  a.min_rnr_timer = 1;
  a.timeout = 10;
  a.retry_cnt = a.rnr_retry = 3;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  a.ah_attr.grh.hop_limit = 4;
  if (peer == nullptr) return a;
  a.dest_qp_num = peer->qp_num;
  ibv_query_gid(peer->context, 1, 0, &a.ah_attr.grh.dgid);
  return a;
}

}  // namespace

void CProgram::adopt(ibv_qp* qp, rdma_cm_id* id) {
  CPair p{qp, ++last_name_, ++last_name_, id};
  if (qp->srq != nullptr) {
    const auto s = std::find_if(shared_.begin(), shared_.end(),
                                [&](const CShared& k) { return k.srq == qp->srq; });
    require(s != shared_.end(), "a queue pair has a shared receive queue of nobody");
    p.receives = s->name;
  }
  pairs_.push_back(p);
}

void CProgram::make_pair(Input& in) {
  ibv_pd* pd = pick(domains_, in);
  if (pd == nullptr || pairs_.size() >= kMost) return;
  std::vector<ibv_cq*> fitting;
  for (const CQueue& q : queues_) {
    if (in.often(8) || q.cq->context->device == pd->context->device) fitting.push_back(q.cq);
  }
  ibv_qp_init_attr a{};
  a.send_cq = in.often(4) ? nullptr : pick(fitting, in);
  a.recv_cq = in.often(4) ? nullptr : pick(fitting, in);
  a.qp_type = IBV_QPT_RC;
  if (in.often(96) && is_roce(pd->context)) a.qp_type = in.often(128) ? IBV_QPT_UC : IBV_QPT_UD;
  if (in.often(4)) a.qp_type = static_cast<ibv_qp_type>(in.u8());
  a.cap.max_send_wr = in.often(16) ? in.below(2) : 1 + in.below(32);
  a.cap.max_recv_wr = in.often(16) ? in.below(2) : 1 + in.below(32);
  a.cap.max_send_sge = in.often(16) ? in.u8() : 4;
  a.cap.max_recv_sge = in.often(16) ? in.u8() : 4;
  a.cap.max_inline_data = in.often(16) ? in.u16() : 64;
  a.sq_sig_all = in.often(64);
  const CShared* s = in.often(64) ? any(shared_, in) : nullptr;
  if (s != nullptr) a.srq = s->srq;
  ibv_qp* qp = call([&] { return ibv_create_qp(pd, &a); });
  if (qp == nullptr) return;
  require(a.send_cq != nullptr && a.recv_cq != nullptr &&
              a.send_cq->context->device == pd->context->device &&
              a.recv_cq->context->device == pd->context->device,
          "a queue pair with a completion queue it cannot have");
  adopt(qp, nullptr);
}

void CProgram::destroy_pair(std::size_t at) {
  const CPair p = pairs_[at];
  acknowledge(0);
  call([&] {
    if (p.id != nullptr) {
      rdma_destroy_qp(p.id);
      return 0;
    }
    return ibv_destroy_qp(p.qp);
  });
  // Its completions are discarded too.
  ledger_.forget(p.sends);
  if (std::none_of(shared_.begin(), shared_.end(),
                   [&](const CShared& s) { return s.name == p.receives; })) {
    ledger_.forget(p.receives);
  }
  pairs_[at] = pairs_.back();
  pairs_.pop_back();
}

void CProgram::modify(Input& in) {
  CPair* p = any(pairs_, in);
  if (p == nullptr) return;
  const auto to = static_cast<ibv_qp_state>(in.below(8));
  const CPair* other = any(pairs_, in);
  ibv_qp_attr a = attributes(to, other == nullptr ? nullptr : other->qp);
  int mask = mask_of(p->qp->qp_type, to);
  if (in.often(32)) mask ^= 1 << in.below(24);
  if (in.often(16)) a.ah_attr.grh.sgid_index = in.u8();
  if (in.often(16)) a.dest_qp_num = in.u32();
  if (in.often(16)) a.port_num = in.u8();
  const int done = call([&] { return ibv_modify_qp(p->qp, &a, mask); });
  if (done != 0 || to != IBV_QPS_RESET || (mask & IBV_QP_STATE) == 0) return;
  ledger_.forget(p->sends);
  if (p->qp->srq == nullptr) ledger_.forget(p->receives);
}

int CProgram::lead(ibv_qp* qp, ibv_qp_state to, const ibv_qp* peer) {
  if (qp->state != to - 1) return qp->state == to ? 0 : EINVAL;
  ibv_qp_attr a = attributes(to, peer);
  return call([&] { return ibv_modify_qp(qp, &a, mask_of(qp->qp_type, to)); });
}

// Connects two queue pairs that have exchanged their addresses and numbers.
void CProgram::pair_up(Input& in) {
  const CPair* p = any(pairs_, in);
  if (p == nullptr) return;
  const std::size_t first = in.below(static_cast<std::uint32_t>(pairs_.size()));
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const CPair& q = pairs_[(first + i) % pairs_.size()];
    const bool fits = q.qp != p->qp && q.qp->qp_type == p->qp->qp_type &&
                      is_roce(q.qp->context) == is_roce(p->qp->context);
    if (!fits) continue;
    for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
      if (lead(p->qp, to, q.qp) != 0 || lead(q.qp, to, p->qp) != 0) return;
    }
    return;
  }
}

ibv_sge CProgram::sge(Input& in, bool written) {
  CRegion* r = any(regions_, in);
  if (r == nullptr) return {};
  const auto size = static_cast<std::uint32_t>(r->memory->size());
  const std::uint32_t at = in.below(size);
  std::uint32_t length = in.often(128) ? in.u8() : in.u16(), key = r->mr->lkey;
  if (in.often(240)) {
    length = std::min(length, size - at);
  } else if (in.often(128)) {
    key ^= 1u << in.below(32);
  }
  if (written) r->memory->name_to_write((r->access & IBV_ACCESS_LOCAL_WRITE) != 0);
  const bool from_zero = (r->access & IBV_ACCESS_ZERO_BASED) != 0;
  return {(from_zero ? 0 : r->memory->address()) + at, length, key};
}

void CProgram::post_send(Input& in) {
  static constexpr ibv_wr_opcode kOps[] = {IBV_WR_SEND,
                                           IBV_WR_SEND,
                                           IBV_WR_SEND,
                                           IBV_WR_RDMA_WRITE,
                                           IBV_WR_RDMA_WRITE,
                                           IBV_WR_RDMA_READ,
                                           IBV_WR_SEND_WITH_IMM,
                                           IBV_WR_RDMA_WRITE_WITH_IMM,
                                           IBV_WR_SEND_WITH_INV,
                                           IBV_WR_LOCAL_INV,
                                           IBV_WR_BIND_MW,
                                           IBV_WR_ATOMIC_CMP_AND_SWP,
                                           IBV_WR_ATOMIC_FETCH_AND_ADD};
  CPair* p = any(pairs_, in);
  if (p == nullptr) return;
  const std::uint32_t many = in.often(48) ? 1 + in.below(4) : 1;
  ibv_send_wr wr[4] = {};
  ibv_sge pieces[4][3] = {};
  char text[64] = {};
  for (std::uint32_t i = 0; i < many; ++i) {
    ibv_send_wr& w = wr[i];
    w.wr_id = ledger_.next_id() + i;
    w.next = i + 1 < many ? &wr[i + 1] : nullptr;
    w.opcode = in.often(2) ? static_cast<ibv_wr_opcode>(in.below(16)) : kOps[in.below(13)];
    w.send_flags = in.often(192) ? unsigned{IBV_SEND_SIGNALED} : 0u;
    if (in.often(8)) w.send_flags |= 1u << in.below(6) & ~unsigned{IBV_SEND_INLINE};
    const bool atomic =
        w.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const bool sink = atomic || w.opcode == IBV_WR_RDMA_READ;
    w.sg_list = pieces[i];
    w.num_sge = static_cast<int>(in.often(224) ? 1 : in.below(4));
    for (int k = 0; k < w.num_sge; ++k) {
      pieces[i][k] = sge(in, sink);
      if (atomic) pieces[i][k].length = std::min(pieces[i][k].length, 8u);
    }
    if (!sink && in.often(32)) {
      w.send_flags |= IBV_SEND_INLINE;
      w.num_sge = 1;
      pieces[i][0] = {reinterpret_cast<std::uint64_t>(text), in.below(65), 0};
    }
    CRegion* to = any(regions_, in);
    if (to != nullptr) {
      const std::uint64_t at = to->memory->address() + (in.u16() & 0xff8);
      std::uint32_t key = to->mr->rkey;
      if (in.often(12)) key ^= 1u << in.below(32);
      if (const ibv_mw* m = pick(windows_, in); m != nullptr && in.often(48)) key = m->rkey;
      if (atomic) {
        w.wr.atomic = {at, in.u8(), in.u8(), key};
      } else {
        w.wr.rdma = {at, key};
      }
      if (w.opcode == IBV_WR_SEND_WITH_INV || w.opcode == IBV_WR_LOCAL_INV) {
        w.invalidate_rkey = key;
      }
    }
    if (w.opcode == IBV_WR_BIND_MW) {
      w.num_sge = 0;
      ibv_mw* m = pick(windows_, in);
      if (m == nullptr || to == nullptr) w.opcode = IBV_WR_SEND;
      if (m != nullptr && to != nullptr) {
        w.bind_mw = {m,
                     ibv_inc_rkey(m->rkey),
                     {to->mr, to->memory->address(), in.u8(), IBV_ACCESS_REMOTE_WRITE}};
        to->memory->name_to_write((to->access & IBV_ACCESS_LOCAL_WRITE) != 0);
      }
    }
    if (p->qp->qp_type == IBV_QPT_UD) {
      const CPair* other = any(pairs_, in);
      w.wr.ud = {pick(handles_, in), other->qp->qp_num, kQkey};
    }
  }
  ibv_send_wr* bad = nullptr;
  const int done = call([&] { return ibv_post_send(p->qp, wr, &bad); });
  std::uint32_t taken = many;
  if (done != 0) {
    require(bad >= wr && bad < wr + many, "no bad request is named");
    taken = static_cast<std::uint32_t>(bad - wr);
  }
  ibv_qp_attr a;
  ibv_qp_init_attr init{};
  ibv_query_qp(p->qp, &a, IBV_QP_STATE, &init);
  for (std::uint32_t i = 0; i < taken; ++i) {
    const bool signaled = init.sq_sig_all != 0 || (wr[i].send_flags & IBV_SEND_SIGNALED) != 0;
    ledger_.post({p->sends, p->qp->qp_num, 0, false, signaled});
  }
}

void CProgram::post_receive(Input& in) {
  CShared* s = in.often(64) ? any(shared_, in) : nullptr;
  CPair* p = s == nullptr ? any(pairs_, in) : nullptr;
  if (s == nullptr && p == nullptr) return;
  const std::uint32_t many = in.often(48) ? 1 + in.below(4) : 1;
  ibv_recv_wr wr[4] = {}, *bad = nullptr;
  ibv_sge pieces[4] = {};
  for (std::uint32_t i = 0; i < many; ++i) {
    pieces[i] = sge(in, true);
    wr[i] = {ledger_.next_id() + i, i + 1 < many ? &wr[i + 1] : nullptr, &pieces[i],
             static_cast<int>(in.often(240))};
  }
  const int done = call([&] {
    return s != nullptr ? ibv_post_srq_recv(s->srq, wr, &bad) : ibv_post_recv(p->qp, wr, &bad);
  });
  std::uint32_t taken = many;
  if (done != 0) {
    require(bad >= wr && bad < wr + many, "no bad receive is named");
    taken = static_cast<std::uint32_t>(bad - wr);
  }
  for (std::uint32_t i = 0; i < taken; ++i) {
    const std::uint32_t most = wr[i].num_sge != 0 ? pieces[i].length : 0;
    if (s != nullptr) {
      ledger_.post({s->name, 0, most, true, true});
    } else {
      ledger_.post({p->receives, p->qp->qp_num, most, true, true});
    }
  }
}

void CProgram::poll(CQueue& q, int most) {
  ibv_wc wc[16];
  const int n = call([&] { return ibv_poll_cq(q.cq, most, wc); });
  if (n < 0) q.overrun = true;
  for (int i = 0; i < n; ++i) {
    const bool success = wc[i].status == IBV_WC_SUCCESS;
    // In verbs the opcode of a failed completion is undefined; here it is set nevertheless.
    const bool receive = (wc[i].opcode & IBV_WC_RECV) != 0;
    const bool elsewhere = wc[i].opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    ledger_.complete(wc[i].wr_id, wc[i].qp_num, receive, success, elsewhere ? 0 : wc[i].byte_len);
  }
}
void CProgram::poll_all() {
  for (CQueue& q : queues_) {
    for (std::uint64_t before = ~std::uint64_t{0}; before != ledger_.done();) {
      before = ledger_.done();
      poll(q, 16);
    }
  }
}

bool CProgram::is_settled() {
  return std::all_of(pairs_.begin(), pairs_.end(), [&](const CPair& p) {
    for (const CQueue& q : queues_) {
      if (!q.overrun) continue;
      if (p.qp->send_cq == q.cq) ledger_.lose(p.sends);
      if (p.qp->recv_cq == q.cq) ledger_.lose(p.receives);
    }
    return ledger_.unsettled(p.sends) == 0 &&
           (p.qp->srq != nullptr || ledger_.unsettled(p.receives) == 0);
  });
}

}  // namespace urnic::fuzz
