#include "dropin/work.h"

#include <cerrno>
#include <cstring>

#include "dropin/address_handle.h"
#include "dropin/memory.h"

namespace urnic::dropin {
namespace {

// The sum may wrap around: post_send refuses messages that are too long.
std::uint32_t bytes_of(const ibv_send_wr& wr) {
  std::uint32_t bytes = 0;
  for (int i = 0; i < wr.num_sge; ++i) bytes += wr.sg_list[i].length;
  return bytes;
}

// The opcode as a number, because the program's value may not be an enumerator.
unsigned number_of_opcode(const ibv_send_wr& wr) {
  static_assert(sizeof wr.opcode == sizeof(unsigned));
  unsigned number;
  std::memcpy(&number, &wr.opcode, sizeof number);
  return number;
}

std::uint64_t immediate_of(const ibv_send_wr& wr, const PostedTo& to, std::uint32_t told) {
  return to.has_wide_immediate ? to_immediate(wr.imm_data, told) : to_roce_immediate(wr.imm_data);
}

}  // namespace

std::uint32_t to_flags(unsigned flags) {
  std::uint32_t out = 0;
  if ((flags & IBV_SEND_SIGNALED) != 0) out |= send_signaled;
  if ((flags & IBV_SEND_SOLICITED) != 0) out |= send_solicited;
  if ((flags & IBV_SEND_INLINE) != 0) out |= send_inline;
  if ((flags & IBV_SEND_FENCE) != 0) out |= send_fence;
  return out;
}

int to_request(const ibv_send_wr& wr, const PostedTo& to, SendRequest* out, WindowBind* bind) {
  out->wr_id = wr.wr_id;
  switch (number_of_opcode(wr)) {
    case IBV_WR_SEND:
      out->opcode = Opcode::send;
      break;
    case IBV_WR_SEND_WITH_INV:
      out->opcode = Opcode::send_with_invalidate;
      out->invalidate_rkey = wr.invalidate_rkey;
      break;
    case IBV_WR_RDMA_WRITE:
      out->opcode = Opcode::write;
      break;
    case IBV_WR_RDMA_READ:
      out->opcode = Opcode::read;
      break;
    case IBV_WR_LOCAL_INV:
      out->opcode = Opcode::local_invalidate;
      out->invalidate_rkey = wr.invalidate_rkey;
      break;
    case IBV_WR_SEND_WITH_IMM:
      out->opcode = Opcode::send_with_immediate;
      out->immediate = immediate_of(wr, to, kWithSend);
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      out->opcode = Opcode::write_with_immediate;
      out->immediate = immediate_of(wr, to, bytes_of(wr));
      break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      out->opcode = Opcode::fetch_add;
      out->atomic.data = wr.wr.atomic.compare_add;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      out->opcode = Opcode::compare_swap;
      out->atomic.compare = wr.wr.atomic.compare_add;
      out->atomic.data = wr.wr.atomic.swap;
      break;
    case IBV_WR_BIND_MW:
      if (wr.bind_mw.mw->type != IBV_MW_TYPE_2) return EINVAL;
      if (const int e = to_bind(*wr.bind_mw.mw, wr.bind_mw.rkey, wr.bind_mw.bind_info, bind);
          e != 0) {
        return e;
      }
      out->opcode = Opcode::bind_window;
      out->bind = bind;
      break;
    default:
      return EOPNOTSUPP;
  }
  if (wr.opcode == IBV_WR_RDMA_WRITE || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
      wr.opcode == IBV_WR_RDMA_READ) {
    out->remote_address = wr.wr.rdma.remote_addr;
    out->rkey = wr.wr.rdma.rkey;
  } else if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    out->remote_address = wr.wr.atomic.remote_addr;
    out->rkey = wr.wr.atomic.rkey;
  }
  if (to.type == IBV_QPT_UD) {
    if (wr.wr.ud.ah == nullptr) return EINVAL;
    out->address_handle = &Ah::of(wr.wr.ud.ah)->handle;
    out->remote_qp = wr.wr.ud.remote_qpn & 0xffffff;  // providers cut it in the same way
    out->remote_qkey = wr.wr.ud.remote_qkey;
  }
  if (to.type == IBV_QPT_XRC_SEND) out->remote_srq = wr.qp_type.xrc.remote_srqn & 0xffffff;
  if (wr.num_sge < 0 || (wr.send_flags & ~kSendFlags) != 0) return EINVAL;
  out->flags = to_flags(wr.send_flags);
  out->sges = to_sges(wr.sg_list, wr.num_sge);
  return 0;
}

}  // namespace urnic::dropin
