// Ids of RoCE without a queue pair: their connections carry the number that the program names,
// which nobody looks up, and the program moves the queue pair itself, as with a kernel's rdma_cm.
#pragma once

#include <span>

#include "dropin/cm_id.h"

namespace urnic::dropin {

// Linux's rdma_cm says 0, which is 655 ms. A program that lets the peer repeat a Send a few times
// depends on it.
inline constexpr std::uint8_t kMinRnrTimer = 0;

// It is such an id. An id whose queue pair was destroyed is none: its connection was that one's.
inline bool has_number_alone(const CmId& id) {
  return id.adapter != nullptr && !id.adapter->traits().connection_moves_qp &&
         id.handle.base.qp == nullptr && id.end == nullptr && !id.has_datagrams();
}

// What both calls that connect take of `p`, whose reads are as they are. Under Process::cm.
ConnectionOptions options_of(const CmId& id, const rdma_conn_param& p);

// rdma_connect and rdma_accept, with what `p` leaves open filled in. 0 or errno.
int connect_number(CmId* id, const rdma_conn_param& p);
int accept_number(CmId* id, const rdma_conn_param& p);
// rdma_establish. 0 or errno.
int establish_number(CmId* id);
// rdma_reject of the peer's answer. 0 or errno; ENOENT: there is no answer.
int reject_answer(CmId* id, std::span<const std::uint8_t> data);
// rdma_notify. 0 or errno.
int notify_number(CmId* id, ibv_event_type event);
// rdma_disconnect: 0, or -1 with errno.
int disconnect_number(CmId* id);

// rdma_init_qp_attr of RoCE. 0 or errno.
int init_attributes_of(CmId* id, ibv_qp_attr* attr, int* mask);

}  // namespace urnic::dropin
