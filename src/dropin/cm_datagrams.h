// Ids of RDMA_PS_UDP: they have no connection. The connecting end learns which UD queue pair serves
// an address, and the accepting end names that queue pair. RoCE only. The functions return 0 or
// errno.
#pragma once

#include "dropin/cm_id.h"

namespace urnic::dropin {

// Removes the adapters that have no datagrams.
void keep_those_with_datagrams(std::vector<Adapter*>* adapters);

int connect_datagrams(CmId* id, const rdma_conn_param* p);
int accept_datagrams(CmId* id, const rdma_conn_param* p);
// Fills the event of a request: its parameters and the peer's private data.
void fill_request(CmEvent* e, std::string private_data);
// Moves the queue pair to RTS through INIT and RTR, with rdma_cm's Q_Key.
int ready_datagrams(ibv_qp* qp);
// The attributes that rdma_init_qp_attr returns for these moves.
int init_datagrams(ibv_qp_attr* attr, int* mask);

}  // namespace urnic::dropin
