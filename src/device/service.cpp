#include "device/service.h"

#include "device/mapping.h"

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
      return "UC queue pairs do not support Reads, atomics and Sends with Invalidate";
  }
}

const char* not_of_ud(const QpImpl& qp, const SendRequest& r, const AddressHandleImpl* handle) {
  if (r.opcode != Opcode::send && r.opcode != Opcode::send_with_immediate) {
    return "UD queue pairs support Sends only";
  }
  if (handle == nullptr) return "a UD Send needs an address handle";
  if (handle->pd != qp.pd) return "the address handle belongs to another protection domain";
  if (r.remote_qp > 0xffffff) return "remote_qp is 0 to 16777215";
  if (octets_of(r) > qp.most_datagram) return "a UD Send must not be longer than the path MTU";
  return nullptr;
}

}  // namespace

const char* not_of_service(const QpImpl& qp, const SendRequest& r,
                           const AddressHandleImpl* handle) noexcept {
  const verbs::Service service = qp.qp->state.service();
  if (service == verbs::Service::Ud) return not_of_ud(qp, r, handle);
  if (r.address_handle != nullptr) return "only sends of UD go by an address handle";
  if (service == verbs::Service::XrcReceive) return "the receiving end of XRC has no requests";
  if (service == verbs::Service::XrcSend) {
    return r.remote_srq > 0xffffff ? "remote_srq is 0 to 16777215" : nullptr;
  }
  return service == verbs::Service::Uc ? not_of_uc(r) : nullptr;
}

const char* not_of_end(const QpOptions& o) noexcept {
  if (!verbs::is_xrc(to_inner(o.service))) {
    if (o.srq.number() != 0)
      return "an XRC shared receive queue serves XRC receive queue pairs only";
    if (o.xrc_domain) return "only a queue pair of service xrc_receive has an XRC domain";
    return o.send_cq && o.receive_cq ? nullptr
                                     : "a queue pair needs a send and a receive completion queue";
  }
  if (o.srq) return "XRC queue pairs take no shared receive queue: each request names one";
  if (o.service == Service::xrc_send) {
    if (o.xrc_domain) return "only a queue pair of service xrc_receive has an XRC domain";
    return o.send_cq && !o.receive_cq
               ? nullptr
               : "the sending end of XRC has a send completion queue, and none for receives";
  }
  if (!o.xrc_domain) return "the receiving end of XRC needs an XRC domain";
  return o.send_cq || o.receive_cq
             ? "the receiving end of XRC has no completion queues: receives complete on that of "
               "their shared receive queue"
             : nullptr;
}

std::optional<Error> not_to_connect(const QpImpl& qp) {
  const verbs::Service service = qp.qp->state.service();
  if (service == verbs::Service::Rc || service == verbs::Service::XrcSend) return std::nullopt;
  if (service == verbs::Service::XrcReceive) {
    return Error{Errc::unsupported, "the receiving end of XRC does not connect: it accepts"};
  }
  return Error{Errc::unsupported, "only an RC queue pair is connected: move this one by modify()"};
}

std::optional<Error> not_to_accept(const QpImpl& qp, Service asked) {
  const verbs::Service service = qp.qp->state.service();
  if (service == to_inner(asked)) return std::nullopt;
  if (service == verbs::Service::Uc || service == verbs::Service::Ud) return not_to_connect(qp);
  return Error{Errc::invalid_argument,
               asked == Service::xrc_receive
                   ? "the request is of XRC: accept it on a queue pair of service xrc_receive"
                   : "the request is for a queue pair of service rc"};
}

}  // namespace urnic::detail
