// The libibverbs and librdmacm calls that rsockets use, and the start of the service's thread.
// Tests replace them; posting and polling go through the context, as everywhere.
#pragma once

#include "dropin/exported.h"

namespace urnic::rsockets {

class Service;

// Returns 0 or errno.
int start_thread(Service&);

struct VerbsCalls {
  decltype(&urnic_ibv_reg_mr) reg_mr = urnic_ibv_reg_mr;
  decltype(&urnic_ibv_dereg_mr) dereg_mr = urnic_ibv_dereg_mr;
  decltype(&urnic_ibv_create_cq) create_cq = urnic_ibv_create_cq;
  decltype(&urnic_ibv_destroy_cq) destroy_cq = urnic_ibv_destroy_cq;
  decltype(&urnic_ibv_create_comp_channel) create_comp_channel = urnic_ibv_create_comp_channel;
  decltype(&urnic_ibv_destroy_comp_channel) destroy_comp_channel = urnic_ibv_destroy_comp_channel;
  decltype(&urnic_ibv_get_cq_event) get_cq_event = urnic_ibv_get_cq_event;
  decltype(&urnic_ibv_ack_cq_events) ack_cq_events = urnic_ibv_ack_cq_events;
  decltype(&urnic_rdma_create_event_channel) create_event_channel = urnic_rdma_create_event_channel;
  decltype(&urnic_rdma_get_cm_event) get_cm_event = urnic_rdma_get_cm_event;
  decltype(&urnic_rdma_ack_cm_event) ack_cm_event = urnic_rdma_ack_cm_event;
  decltype(&urnic_rdma_create_id) create_id = urnic_rdma_create_id;
  decltype(&urnic_rdma_destroy_id) destroy_id = urnic_rdma_destroy_id;
  decltype(&urnic_rdma_migrate_id) migrate_id = urnic_rdma_migrate_id;
  decltype(&urnic_rdma_set_option) set_option = urnic_rdma_set_option;
  decltype(&urnic_rdma_bind_addr) bind_addr = urnic_rdma_bind_addr;
  decltype(&urnic_rdma_resolve_addr) resolve_addr = urnic_rdma_resolve_addr;
  decltype(&urnic_rdma_resolve_route) resolve_route = urnic_rdma_resolve_route;
  decltype(&urnic_rdma_create_qp) create_qp = urnic_rdma_create_qp;
  decltype(&urnic_rdma_destroy_qp) destroy_qp = urnic_rdma_destroy_qp;
  decltype(&urnic_rdma_listen) listen = urnic_rdma_listen;
  decltype(&urnic_rdma_connect) connect = urnic_rdma_connect;
  decltype(&urnic_rdma_accept) accept = urnic_rdma_accept;
  decltype(&urnic_rdma_reject) reject = urnic_rdma_reject;
  decltype(&urnic_rdma_disconnect) disconnect = urnic_rdma_disconnect;
  int (*start)(Service&) = start_thread;
};

inline VerbsCalls verbs;

}  // namespace urnic::rsockets
