// The way to somebody, for requests of UD queue pairs, each of which may go to another peer
// (InfiniBand specification, volume 1, 11.2.2). Lifetime, threads, errors and units are those of
// urnic/verbs.h, which includes this.
#pragma once

#include <memory>
#include <utility>

#include "urnic/status.h"

namespace urnic {

namespace device {
struct AddressHandleImpl;
}  // namespace device

// Of one protection domain, and for queue pairs of that one alone: any number of them, and of
// requests at a time. Keeps its domain and device alive. Requests that have not left when it is
// destroyed are lost like any datagram, and counted (RoceHostStats::tx_unroutable).
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
