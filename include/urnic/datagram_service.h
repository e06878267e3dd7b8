// Who takes datagrams at an address and a port: how queue pairs of UD find each other without a
// connection (Service ID Resolution: InfiniBand specification, volume 1, 12.11; IB-141; what
// rdma_cm does with RDMA_PS_UDP). RoCE alone.
//
// Who serves listens with BindOptions::service = Service::ud, gets a connect_request, and accepts
// it on a queue pair of UD, whose number and Q_Key are the answer; there is no connection and no
// further event. Who asks has them from Device::resolve, and sends by an AddressHandle:
//
//   auto peer = device.resolve("10.77.0.2:7000");
//   auto handle = device.create_address_handle(pd, peer->path);
//   SendRequest r = {.address_handle = &*handle, .remote_qp = peer->qp,
//                    .remote_qkey = peer->qkey, ...};
//
// Nobody is told when either end goes. Lifetime, threads, errors and units are those of
// urnic/verbs.h, which includes this.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "urnic/qp_attributes.h"
#include "urnic/status.h"

namespace urnic {

namespace device {
struct ResolutionImpl;
}  // namespace device

class Binding;

// A queue pair of UD that is somebody's service.
struct DatagramPeer {
  QpPath path;               // for Device::create_address_handle
  std::uint32_t qp = 0;      // SendRequest::remote_qp
  std::uint32_t qkey = 0;    // SendRequest::remote_qkey
  std::string private_data;  // bytes: always 136, zeroes behind what the peer gave
};

struct ResolveOptions {
  // Borrowed for the call; at most 180 bytes. The message says no length: the peer gets as many in
  // any case, zeroes behind these.
  std::span<const std::uint8_t> private_data;
  // From the call to the answer. It is asked up to 16 times.
  int timeout_ms = 10000;
  // From this address and port, of Service::ud; borrowed for the call. Left alone: the address that
  // Device::source_for() says, any port. The port is what the peer is told.
  const Binding* source = nullptr;
  // For so long, 0 to 100, a peer that serves no datagrams there may yet begin to; it is asked
  // again every few milliseconds, and `refused` comes late.
  int refusal_retry_ms = 0;
};

// A question under way, made by Device::resolve_start. With its destruction it is given up, and no
// event of it comes any more.
class URNIC_API Resolution {
 public:
  Resolution() = default;
  Resolution(Resolution&&) noexcept = default;
  Resolution& operator=(Resolution&&) noexcept;
  ~Resolution();
  explicit operator bool() const { return impl_ != nullptr; }
  // Where it is asked from: "10.77.0.1:49152"; empty when empty.
  std::string local() const;

 private:
  friend class Device;
  explicit Resolution(std::shared_ptr<device::ResolutionImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::ResolutionImpl> impl_;
};

}  // namespace urnic
