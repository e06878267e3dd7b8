// A RoCE connection whose queue pair the program moves itself: connection management only carries
// the queue pair number and the agreed values to the peer. The number may belong to any queue pair,
// here or elsewhere, of any service; it is not looked up. rdma_cm does the same for an id without a
// queue pair.
//
//   auto c = device.cm_connect_start("10.77.0.2:7000", {.number = qp.number()}, events);
//   ... the event `answered` comes ...
//   qp.modify(QpState::rtr, ...) and to rts, by the values of c->attributes()
//   c->confirm();                           // the peer gets `established`
//
// The peer gets a connect_request. It moves its queue pair with ConnectRequest::attributes() and
// answers with ConnectRequest::accept_number().
//
// Lifetime, threads, errors and units: see urnic/verbs.h, which includes this header.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "urnic/qp_attributes.h"
#include "urnic/status.h"

namespace urnic {

namespace device {
struct CmConnectionImpl;
}  // namespace device

// The queue pair, as it is announced to the peer.
struct CmQueuePair {
  std::uint32_t number = 0;  // 24 bits; not 0 or 1, which no such queue pair has
  bool srq = false;          // its receives come from a shared receive queue
};

// Made by Device::cm_connect_start and ConnectRequest::accept_number. Its events are answered
// (active side), established (passive side), connect_failed, disconnected and time_wait_over.
// Destroying it ends the connection (REJ or DREQ); no event of it arrives after that.
class URNIC_API CmConnection {
 public:
  CmConnection() = default;
  CmConnection(CmConnection&&) noexcept = default;
  CmConnection& operator=(CmConnection&&) noexcept;
  ~CmConnection();
  explicit operator bool() const { return impl_ != nullptr; }

  // The attributes that move the queue pair to rtr and rts; `access` has the rights that the peer
  // needs, for init. Until the peer has answered, only `access` and responder_depth are set.
  // Errors: closed (the connection has ended).
  Result<QpAttributes> attributes() const;
  // Active side, after `answered`: tells the peer that the queue pair takes requests (RTU). Errors:
  // wrong_state.
  Result<void> confirm();
  // Active side, after `answered`: rejects the connection (REJ 28, with up to 148 bytes; more are
  // cut). Errors: wrong_state.
  Result<void> reject(std::span<const std::uint8_t> private_data = {});
  // Passive side, before `established`: reports that a request of the peer arrived on the queue
  // pair. `established` follows, even if the RTU was lost. Errors: wrong_state.
  Result<void> notice_request();
  // If the connection is established, sends a DREQ, and `disconnected` follows. Otherwise does
  // nothing.
  void disconnect();

 private:
  friend class Device;
  friend class ConnectRequest;
  explicit CmConnection(std::shared_ptr<device::CmConnectionImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::CmConnectionImpl> impl_;
};

}  // namespace urnic
