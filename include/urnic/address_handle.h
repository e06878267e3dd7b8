// An address handle names the destination of requests on UD queue pairs, where each request may go
// to another peer (InfiniBand specification, volume 1, 11.2.2). Lifetime, threads, errors and
// units: see urnic/verbs.h, which includes this header.
#pragma once

#include <memory>
#include <utility>

#include "urnic/status.h"

namespace urnic {

namespace device {
struct AddressHandleImpl;
}  // namespace device

// Belongs to one protection domain. Any number of UD queue pairs of that domain, and any number of
// their requests at a time, may use it. It keeps its domain and device alive. Requests that have
// not left when the handle is destroyed are lost like any datagram, and are counted
// (RoceHostStats::tx_unroutable).
class URNIC_API AddressHandle {
 public:
  AddressHandle() = default;
  AddressHandle(AddressHandle&&) noexcept = default;
  AddressHandle& operator=(AddressHandle&&) noexcept;
  ~AddressHandle();
  explicit operator bool() const { return impl_ != nullptr; }

 private:
  friend class Device;
  friend class QueuePair;
  explicit AddressHandle(std::shared_ptr<device::AddressHandleImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::AddressHandleImpl> impl_;
};

}  // namespace urnic
