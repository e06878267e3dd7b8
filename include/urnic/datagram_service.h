// Resolves the UD queue pair that takes datagrams at an address and port, without a connection
// (Service ID Resolution: InfiniBand specification, volume 1, 12.11; IB-141; rdma_cm does this with
// RDMA_PS_UDP). RoCE only.
//
// The serving program listens with BindOptions::service = Service::ud and gets a connect_request.
// It accepts the request on a UD queue pair, whose number and Q_Key are sent as the answer; no
// connection and no further event results. The other program gets both from Device::resolve, and
// sends with an AddressHandle:
//
//   auto peer = device.resolve("10.77.0.2:7000");
//   auto handle = device.create_address_handle(pd, peer->path);
//   SendRequest r = {.address_handle = &*handle, .remote_qp = peer->qp,
//                    .remote_qkey = peer->qkey, ...};
//
// Neither end is notified when the other one goes away. Lifetime, threads, errors and units: see
// urnic/verbs.h, which includes this header.
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

// The UD queue pair of a peer that serves datagrams.
struct DatagramPeer {
  QpPath path;               // for Device::create_address_handle
  std::uint32_t qp = 0;      // SendRequest::remote_qp
  std::uint32_t qkey = 0;    // SendRequest::remote_qkey
  std::string private_data;  // always 136 bytes: the peer's, padded with zeroes
};

struct ResolveOptions {
  // Borrowed for the call; at most 180 bytes. The message does not carry the length: the peer
  // always gets 180 bytes, padded with zeroes.
  std::span<const std::uint8_t> private_data;
  // From the call to the answer. The request is sent up to 16 times.
  int timeout_ms = 10000;
  // The local address and port, of Service::ud; borrowed for the call. If not set: the address that
  // Device::source_for() returns, any port. The port is only announced to the peer.
  const Binding* source = nullptr;
  // How long, 0 to 100 ms, to retry while the peer serves no datagrams there yet. The request is
  // repeated every few milliseconds, so `refused` arrives late.
  int refusal_retry_ms = 0;
};

// A resolution in progress, made by Device::resolve_start. Destroying it cancels the resolution; no
// event of it arrives after that.
class URNIC_API Resolution {
 public:
  Resolution() = default;
  Resolution(Resolution&&) noexcept = default;
  Resolution& operator=(Resolution&&) noexcept;
  ~Resolution();
  explicit operator bool() const { return impl_ != nullptr; }
  // The local address of the request: "10.77.0.1:49152"; an empty string for an empty handle.
  std::string local() const;

 private:
  friend class Device;
  explicit Resolution(std::shared_ptr<device::ResolutionImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::ResolutionImpl> impl_;
};

}  // namespace urnic
