#include "dropin/builders.h"

#include <errno.h>

#include <new>

#include "dropin/queue_pair.h"

namespace urnic::dropin {

void Builder::start() {
  turn_.lock();
  held_.clear();
  error_ = 0;
}

void Builder::end() {
  held_.clear();
  turn_.unlock();
}

ibv_send_wr& Builder::add(const ibv_qp_ex& qp, ibv_wr_opcode opcode) {
  Held& h = held_.emplace_back();
  h.wr.wr_id = qp.wr_id;
  h.wr.send_flags = qp.wr_flags;
  h.wr.opcode = opcode;
  return h.wr;
}

void Builder::set_list(const ibv_sge* list, std::size_t number) {
  if (held_.empty()) return spoil(EINVAL);
  held_.back().sges.assign(list, list + number);
}

void Builder::set_inline(const ibv_data_buf* list, std::size_t number) {
  if (held_.empty()) return spoil(EINVAL);
  Held& h = held_.back();
  h.bytes.clear();
  for (std::size_t i = 0; i < number; ++i) {
    h.bytes.append(static_cast<const char*>(list[i].addr), list[i].length);
  }
  h.wr.send_flags |= IBV_SEND_INLINE;
  h.sges.assign(1, {reinterpret_cast<std::uint64_t>(h.bytes.data()),
                    static_cast<std::uint32_t>(h.bytes.size()), 0});
}

void Builder::set_datagram(ibv_ah* ah, std::uint32_t qp_number, std::uint32_t qkey) {
  if (held_.empty()) return spoil(EINVAL);
  held_.back().wr.wr.ud = {ah, qp_number, qkey};
}

void Builder::set_queue(std::uint32_t srq_number) {
  if (held_.empty()) return spoil(EINVAL);
  held_.back().wr.qp_type.xrc.remote_srqn = srq_number;
}

ibv_send_wr* Builder::chain() {
  ibv_send_wr* next = nullptr;
  for (auto h = held_.rbegin(); h != held_.rend(); ++h) {
    h->wr.sg_list = h->sges.data();
    h->wr.num_sge = static_cast<int>(h->sges.size());
    h->wr.next = next;
    next = &h->wr;
  }
  return next;
}

namespace {

Builder& builder_of(ibv_qp_ex* ex) {
  return *Qp::of(&ex->qp_base)->builder;
}

// These calls return nothing: wr_complete reports their errors.
template <class F>
void noted(ibv_qp_ex* ex, F&& f) noexcept {
  Builder& b = builder_of(ex);
  try {
    f(b);
  } catch (const std::bad_alloc&) {
    b.spoil(ENOMEM);
  }
}

void wr_start(ibv_qp_ex* ex) {
  builder_of(ex).start();
}

int wr_complete(ibv_qp_ex* ex) {
  Builder& b = builder_of(ex);
  int error = b.error();
  ibv_send_wr *bad = nullptr, *first = b.chain();
  if (error == 0 && first != nullptr) {
    error = post_sends(&ex->qp_base, first, &bad, __builtin_return_address(0));
  }
  b.end();
  return error;
}

void wr_abort(ibv_qp_ex* ex) {
  builder_of(ex).end();
}

void wr_send(ibv_qp_ex* ex) {
  noted(ex, [&](Builder& b) { b.add(*ex, IBV_WR_SEND); });
}

void wr_send_imm(ibv_qp_ex* ex, __be32 data) {
  noted(ex, [&](Builder& b) { b.add(*ex, IBV_WR_SEND_WITH_IMM).imm_data = data; });
}

void wr_send_inv(ibv_qp_ex* ex, std::uint32_t key) {
  noted(ex, [&](Builder& b) { b.add(*ex, IBV_WR_SEND_WITH_INV).invalidate_rkey = key; });
}

void wr_local_inv(ibv_qp_ex* ex, std::uint32_t key) {
  noted(ex, [&](Builder& b) { b.add(*ex, IBV_WR_LOCAL_INV).invalidate_rkey = key; });
}

void wr_bind_mw(ibv_qp_ex* ex, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
  noted(ex, [&](Builder& b) {
    ibv_send_wr& wr = b.add(*ex, IBV_WR_BIND_MW);
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = *info;
  });
}

void add_rdma(ibv_qp_ex* ex, ibv_wr_opcode opcode, std::uint32_t key, std::uint64_t address) {
  noted(ex, [&](Builder& b) {
    ibv_send_wr& wr = b.add(*ex, opcode);
    wr.wr.rdma.rkey = key;
    wr.wr.rdma.remote_addr = address;
  });
}

void wr_rdma_read(ibv_qp_ex* ex, std::uint32_t key, std::uint64_t address) {
  add_rdma(ex, IBV_WR_RDMA_READ, key, address);
}

void wr_rdma_write(ibv_qp_ex* ex, std::uint32_t key, std::uint64_t address) {
  add_rdma(ex, IBV_WR_RDMA_WRITE, key, address);
}

void wr_rdma_write_imm(ibv_qp_ex* ex, std::uint32_t key, std::uint64_t address, __be32 data) {
  noted(ex, [&](Builder& b) {
    ibv_send_wr& wr = b.add(*ex, IBV_WR_RDMA_WRITE_WITH_IMM);
    wr.wr.rdma.rkey = key;
    wr.wr.rdma.remote_addr = address;
    wr.imm_data = data;
  });
}

void wr_atomic_cmp_swp(ibv_qp_ex* ex, std::uint32_t key, std::uint64_t address,
                       std::uint64_t compare, std::uint64_t swap) {
  noted(ex, [&](Builder& b) {
    ibv_send_wr& wr = b.add(*ex, IBV_WR_ATOMIC_CMP_AND_SWP);
    wr.wr.atomic = {address, compare, swap, key};
  });
}

void wr_atomic_fetch_add(ibv_qp_ex* ex, std::uint32_t key, std::uint64_t address,
                         std::uint64_t add) {
  noted(ex, [&](Builder& b) {
    ibv_send_wr& wr = b.add(*ex, IBV_WR_ATOMIC_FETCH_AND_ADD);
    wr.wr.atomic = {address, add, 0, key};
  });
}

void wr_set_sge(ibv_qp_ex* ex, std::uint32_t key, std::uint64_t address, std::uint32_t length) {
  const ibv_sge one{address, length, key};
  noted(ex, [&](Builder& b) { b.set_list(&one, 1); });
}

void wr_set_sge_list(ibv_qp_ex* ex, std::size_t number, const ibv_sge* list) {
  noted(ex, [&](Builder& b) { b.set_list(list, number); });
}

void wr_set_inline_data(ibv_qp_ex* ex, void* address, std::size_t length) {
  const ibv_data_buf one{address, length};
  noted(ex, [&](Builder& b) { b.set_inline(&one, 1); });
}

void wr_set_inline_data_list(ibv_qp_ex* ex, std::size_t number, const ibv_data_buf* list) {
  noted(ex, [&](Builder& b) { b.set_inline(list, number); });
}

void wr_set_ud_addr(ibv_qp_ex* ex, ibv_ah* ah, std::uint32_t qp_number, std::uint32_t qkey) {
  noted(ex, [&](Builder& b) { b.set_datagram(ah, qp_number, qkey); });
}

void wr_set_xrc_srqn(ibv_qp_ex* ex, std::uint32_t number) {
  noted(ex, [&](Builder& b) { b.set_queue(number); });
}

}  // namespace

std::uint64_t Builder::operations_of(ibv_qp_type type) {
  constexpr std::uint64_t kDatagram = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  if (type == IBV_QPT_UD) return kDatagram;
  if (type == IBV_QPT_XRC_RECV) return 0;
  constexpr std::uint64_t kUnreliable = kDatagram | IBV_QP_EX_WITH_RDMA_WRITE |
                                        IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                        IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
  if (type == IBV_QPT_UC) return kUnreliable;
  return kUnreliable | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND_WITH_INV |
         IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
}

void Builder::install(ibv_qp_ex* ex, std::uint64_t operations) {
  ex->wr_start = wr_start;
  ex->wr_complete = wr_complete;
  ex->wr_abort = wr_abort;
  ex->wr_set_sge = wr_set_sge;
  ex->wr_set_sge_list = wr_set_sge_list;
  ex->wr_set_inline_data = wr_set_inline_data;
  ex->wr_set_inline_data_list = wr_set_inline_data_list;
  if (ex->qp_base.qp_type == IBV_QPT_UD) ex->wr_set_ud_addr = wr_set_ud_addr;
  if (ex->qp_base.qp_type == IBV_QPT_XRC_SEND) ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
  if ((operations & IBV_QP_EX_WITH_SEND) != 0) ex->wr_send = wr_send;
  if ((operations & IBV_QP_EX_WITH_SEND_WITH_INV) != 0) ex->wr_send_inv = wr_send_inv;
  if ((operations & IBV_QP_EX_WITH_SEND_WITH_IMM) != 0) ex->wr_send_imm = wr_send_imm;
  if ((operations & IBV_QP_EX_WITH_LOCAL_INV) != 0) ex->wr_local_inv = wr_local_inv;
  if ((operations & IBV_QP_EX_WITH_BIND_MW) != 0) ex->wr_bind_mw = wr_bind_mw;
  if ((operations & IBV_QP_EX_WITH_RDMA_READ) != 0) ex->wr_rdma_read = wr_rdma_read;
  if ((operations & IBV_QP_EX_WITH_RDMA_WRITE) != 0) ex->wr_rdma_write = wr_rdma_write;
  if ((operations & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP) != 0) {
    ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
  }
  if ((operations & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD) != 0) {
    ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
  }
  if ((operations & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM) != 0) {
    ex->wr_rdma_write_imm = wr_rdma_write_imm;
  }
}

}  // namespace urnic::dropin
