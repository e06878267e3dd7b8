// RoCE ids without a queue pair: their connections carry the number that the program names, which
// is not looked up, and the program moves the queue pair itself, as with a kernel's rdma_cm.
#pragma once

#include <span>

#include "dropin/cm_id.h"

namespace urnic::dropin {

// Linux's rdma_cm uses 0, which is 655 ms. Programs that let the peer repeat a Send only a few
// times depend on it.
inline constexpr std::uint8_t kMinRnrTimer = 0;

// True for such an id. False for an id whose queue pair was destroyed: its connection belonged to
// that queue pair.
inline bool has_number_alone(const CmId& id) {
  return id.adapter != nullptr && !id.adapter->traits().connection_moves_qp &&
         id.handle.base.qp == nullptr && id.end == nullptr && !id.has_datagrams();
}

// The connection options in `p`, for connecting and accepting; the depths are copied unchanged.
// Needs Process::cm.
ConnectionOptions options_of(const CmId& id, const rdma_conn_param& p);

// rdma_connect and rdma_accept; `p` is complete. Return 0 or errno.
int connect_number(CmId* id, const rdma_conn_param& p);
int accept_number(CmId* id, const rdma_conn_param& p);
// rdma_establish. Returns 0 or errno.
int establish_number(CmId* id);
// rdma_reject of the peer's answer. Returns 0 or errno; ENOENT: there is no answer.
int reject_answer(CmId* id, std::span<const std::uint8_t> data);
// rdma_notify. Returns 0 or errno.
int notify_number(CmId* id, ibv_event_type event);
// rdma_disconnect. Returns 0, or -1 with errno.
int disconnect_number(CmId* id);

// rdma_init_qp_attr of RoCE. Returns 0 or errno.
int init_attributes_of(CmId* id, ibv_qp_attr* attr, int* mask);

}  // namespace urnic::dropin
