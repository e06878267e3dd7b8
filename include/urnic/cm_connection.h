// A connection of RoCE whose queue pair the program moves itself: connection management carries the
// number of the queue pair to the peer, and what both ends agree on; it moves no queue pair. The
// number may be that of any queue pair, here or elsewhere, of any service; nobody looks it up. This
// is what rdma_cm does for an id without a queue pair.
//
//   auto c = device.cm_connect_start("10.77.0.2:7000", {.number = qp.number()}, events);
//   ... the event `answered` comes ...
//   qp.modify(QpState::rtr, ...) and to rts, by the values of c->attributes()
//   c->confirm();                           // the peer hears `established`
//
// The peer has a connect_request; it moves its queue pair by ConnectRequest::attributes() and
// answers with ConnectRequest::accept_number().
//
// Lifetime, threads, errors and units are those of urnic/verbs.h, which includes this.
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

// The queue pair as the peer is told of it.
struct CmQueuePair {
  std::uint32_t number = 0;  // 24 bits; neither 0 nor 1, which no such queue pair has
  bool srq = false;          // its receives come from a shared receive queue
};

// Made by Device::cm_connect_start and ConnectRequest::accept_number. Its events are answered
// (active side), established (passive side), connect_failed, disconnected and time_wait_over. With
// its destruction what is left of the connection ends (REJ or DREQ), and no event of it comes any
// more.
class URNIC_API CmConnection {
 public:
  CmConnection() = default;
  CmConnection(CmConnection&&) noexcept = default;
  CmConnection& operator=(CmConnection&&) noexcept;
  ~CmConnection();
  explicit operator bool() const { return impl_ != nullptr; }

  // The attributes that move the queue pair to rtr and rts; `access` has the rights that the peer
  // needs, for init. Before the peer has answered `access` and responder_depth are all there is.
  // Errors: closed (the connection has ended).
  Result<QpAttributes> attributes() const;
  // Active side, after `answered`: the queue pair takes requests. The peer hears of it (RTU).
  // Errors: wrong_state.
  Result<void> confirm();
  // Active side, after `answered`: there will be no connection (REJ 28, with up to 148 bytes; more
  // are cut). Errors: wrong_state.
  Result<void> reject(std::span<const std::uint8_t> private_data = {});
  // Passive side, before `established`, which follows: a request of the peer has come on the queue
  // pair, whatever became of the RTU. Errors: wrong_state.
  Result<void> notice_request();
  // Sends a DREQ if the connection is established, and `disconnected` follows; else does nothing.
  void disconnect();

 private:
  friend class Device;
  friend class ConnectRequest;
  explicit CmConnection(std::shared_ptr<device::CmConnectionImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::CmConnectionImpl> impl_;
};

}  // namespace urnic
