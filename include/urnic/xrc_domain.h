// XRC, extended reliable connections (InfiniBand specification, volume 1, annex A14; here IB-161 to
// IB-166): one connection to a machine serves all programs that receive there. Each connection has
// a sending end (Service::xrc_send), which has requests and no receives, and a receiving end
// (Service::xrc_receive), which has neither, but belongs to a domain. Receives are in shared
// receive queues of that domain (SrqOptions::xrc_domain), and each request names one of them by its
// number (SendRequest::remote_srq). Two such machines need one connection in each direction.
//
//   auto domain = device.open_xrc_domain("storage");
//   auto srq = device.create_srq(pd, {.xrc_domain = *domain, .receive_cq = cq});
//   auto qp = device.create_qp(pd, {.service = Service::xrc_receive, .xrc_domain = *domain});
//
// A receive completes on the receive_cq of its shared receive queue, with the number() of the
// receiving queue pair. Writes, reads and atomics of the peer access memory of the protection
// domain of the shared receive queue that they name. RoCE only.
//
// Lifetime, threads, errors and units: see urnic/verbs.h, which includes this header.
#pragma once

#include <memory>
#include <utility>

#include "urnic/status.h"

namespace urnic {

namespace device {
struct XrcDomainImpl;
}  // namespace device

// Shared receive queues and receiving ends work together only within one domain. Copies are handles
// of the same domain, which exists as long as a handle, queue or queue pair of it exists.
class URNIC_API XrcDomain {
 public:
  XrcDomain() = default;
  explicit operator bool() const { return impl_ != nullptr; }

 private:
  friend class Device;
  explicit XrcDomain(std::shared_ptr<device::XrcDomainImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::XrcDomainImpl> impl_;
};

}  // namespace urnic
