#include "device/service.h"

namespace urnic::detail {
namespace {

std::uint64_t octets_of(const SendRequest& r) {
  std::uint64_t n = 0;
  for (const Sge& sge : r.sges) n += sge.length;
  return n;
}

const char* not_of_uc(const SendRequest& r) {
  switch (r.opcode) {
    case Opcode::send:
    case Opcode::send_with_immediate:
    case Opcode::write:
    case Opcode::write_with_immediate:
    case Opcode::local_invalidate:
    case Opcode::bind_window:
      return nullptr;
    default:
      return "a UC queue pair has no reads, atomics and sends with invalidate";
  }
}

const char* not_of_ud(const QpImpl& qp, const SendRequest& r, const AddressHandleImpl* handle) {
  if (r.opcode != Opcode::send && r.opcode != Opcode::send_with_immediate) {
    return "a UD queue pair has sends alone";
  }
  if (handle == nullptr) return "a send of UD needs an address handle";
  if (handle->pd != qp.pd) return "the address handle is of another protection domain";
  if (r.remote_qp > 0xffffff) return "remote_qp is 0 to 16777215";
  if (octets_of(r) > qp.most_datagram) return "a send of UD is no longer than the path MTU";
  return nullptr;
}

}  // namespace

const char* not_of_service(const QpImpl& qp, const SendRequest& r,
                           const AddressHandleImpl* handle) noexcept {
  const verbs::Service service = qp.qp->state.service();
  if (service == verbs::Service::Ud) return not_of_ud(qp, r, handle);
  if (r.address_handle != nullptr) return "only sends of UD go by an address handle";
  return service == verbs::Service::Uc ? not_of_uc(r) : nullptr;
}

std::optional<Error> not_to_connect(const QpImpl& qp) {
  if (qp.qp->state.service() == verbs::Service::Rc) return std::nullopt;
  return Error{Errc::unsupported, "only an RC queue pair is connected: move this one by modify()"};
}

}  // namespace urnic::detail
