// Maps an event of a queue pair to an asynchronous event of verbs.
#pragma once

#include <infiniband/verbs.h>

#include <optional>

#include "urnic/connection_events.h"

namespace urnic::dropin {

// The asynchronous event; none for an event of the connection, which rdma_cm reports.
inline std::optional<ibv_event_type> to_async(EventKind kind) {
  switch (kind) {
    case EventKind::last_receive:
      return IBV_EVENT_QP_LAST_WQE_REACHED;
    case EventKind::communication_established:
      return IBV_EVENT_COMM_EST;
    case EventKind::access_error:
      return IBV_EVENT_QP_ACCESS_ERR;
    case EventKind::request_error:
      return IBV_EVENT_QP_REQ_ERR;
    case EventKind::fatal:
      return IBV_EVENT_QP_FATAL;
    case EventKind::send_queue_drained:
      return IBV_EVENT_SQ_DRAINED;
    default:
      return std::nullopt;
  }
}

// True if the event should be delivered. `shown`: the state that the program sees. An iWARP queue
// pair is in RTS as soon as it is accepted, where a message does not establish anything; without
// rdma_cm the program may still have it in RTR.
inline bool is_news(ibv_event_type event, bool has_comm_est_in_rts, ibv_qp_state shown) {
  return event != IBV_EVENT_COMM_EST || has_comm_est_in_rts || shown != IBV_QPS_RTS;
}

}  // namespace urnic::dropin
