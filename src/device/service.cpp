#include "device/service.h"

#include "device/mapping.h"

namespace urnic::device {
namespace {

std::uint64_t bytes_of(const SendRequest& r) {
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
      return "UC does not support RDMA Read, atomics and Send with Invalidate";
  }
}

const char* not_of_ud(const QpImpl& qp, const SendRequest& r, const AddressHandleImpl* handle) {
  if (r.opcode != Opcode::send && r.opcode != Opcode::send_with_immediate) {
    return "UD supports only Send and Send with Immediate";
  }
  if (handle == nullptr) return "address_handle: required for a send on a UD queue pair";
  if (handle->pd != qp.pd) return "address_handle: belongs to another protection domain";
  if (r.remote_qp > 0xffffff) return "remote_qp: must be between 0 and 16777215";
  if (bytes_of(r) > qp.most_datagram) return "a UD message must not be longer than the path MTU";
  return nullptr;
}

}  // namespace

const char* not_of_service(const QpImpl& qp, const SendRequest& r,
                           const AddressHandleImpl* handle) noexcept {
  const verbs::Service service = qp.qp->state.service();
  if (service == verbs::Service::Ud) return not_of_ud(qp, r, handle);
  if (r.address_handle != nullptr) return "address_handle: allowed only on a UD queue pair";
  if (service == verbs::Service::XrcReceive)
    return "an xrc_receive queue pair has no send queue: post on an xrc_send queue pair";
  if (service == verbs::Service::XrcSend) {
    return r.remote_srq > 0xffffff ? "remote_srq: must be between 0 and 16777215" : nullptr;
  }
  return service == verbs::Service::Uc ? not_of_uc(r) : nullptr;
}

const char* not_of_end(const QpOptions& o) noexcept {
  if (!verbs::is_xrc(to_inner(o.service))) {
    if (o.srq.number() != 0)
      return "srq: an XRC shared receive queue cannot be used with this service";
    if (o.xrc_domain) return "xrc_domain: allowed only with service xrc_receive";
    return o.send_cq && o.receive_cq ? nullptr : "send_cq and receive_cq: both are required";
  }
  if (o.srq) return "srq: not allowed with XRC; send requests name it (remote_srq)";
  if (o.service == Service::xrc_send) {
    if (o.xrc_domain) return "xrc_domain: allowed only with service xrc_receive";
    return o.send_cq && !o.receive_cq
               ? nullptr
               : "service xrc_send: send_cq is required, receive_cq is not allowed";
  }
  if (!o.xrc_domain) return "service xrc_receive: xrc_domain is required";
  return o.send_cq || o.receive_cq ? "service xrc_receive: send_cq and receive_cq are not allowed; "
                                     "the shared receive queue has one"
                                   : nullptr;
}

std::optional<Error> not_to_connect(const QpImpl& qp) {
  const verbs::Service service = qp.qp->state.service();
  if (service == verbs::Service::Rc || service == verbs::Service::XrcSend) return std::nullopt;
  if (service == verbs::Service::XrcReceive) {
    return Error{Errc::unsupported,
                 "an xrc_receive queue pair cannot connect: use it to accept a connection"};
  }
  return Error{Errc::unsupported,
               "connect and accept need service rc or XRC: use modify() for UC and UD"};
}

std::optional<Error> not_to_accept(const QpImpl& qp, Service asked) {
  const verbs::Service service = qp.qp->state.service();
  if (service == to_inner(asked)) return std::nullopt;
  if (service == verbs::Service::Uc || service == verbs::Service::Ud) return not_to_connect(qp);
  return Error{Errc::invalid_argument,
               asked == Service::xrc_receive
                   ? "the request is for XRC: accept it with a queue pair of service xrc_receive"
                   : "the request is for service rc: accept it with a queue pair of service rc"};
}

}  // namespace urnic::device
