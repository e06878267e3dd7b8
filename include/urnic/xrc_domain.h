// XRC, extended reliable connections (InfiniBand specification, volume 1, annex A14; here IB-161 to
// IB-166): one connection to a machine serves all who receive there. Each connection has a sending
// end (Service::xrc_send), which has requests and no receives, and a receiving one
// (Service::xrc_receive), which has neither, but belongs to a domain. Receives are in shared
// receive queues of that domain (SrqOptions::xrc_domain), and each request names one of them by its
// number (SendRequest::remote_srq). Between two such machines go a connection each way.
//
//   auto domain = device.open_xrc_domain("storage");
//   auto srq = device.create_srq(pd, {.xrc_domain = *domain, .receive_cq = cq});
//   auto qp = device.create_qp(pd, {.service = Service::xrc_receive, .xrc_domain = *domain});
//
// A receive completes on the receive_cq of its shared receive queue, with the number() of the
// receiving queue pair. What writes, reads and atomics of the peer reach is memory of the
// protection domain of the shared receive queue that they name. RoCE alone.
//
// Lifetime, threads, errors and units are those of urnic/verbs.h, which includes this.
#pragma once

#include <memory>
#include <utility>

#include "urnic/status.h"

namespace urnic {

namespace device {
struct XrcDomainImpl;
}  // namespace device

// What shared receive queues and receiving ends must have in common to work together. Copies are
// handles of the same domain, which lives as long as one of them, or a queue or queue pair of it.
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
