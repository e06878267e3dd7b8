// Ids of RDMA_PS_UDP: they have no connection. Who connects is told which queue pair of UD serves
// there, who accepts says which one does; RoCE alone. 0 or errno, as their callers.
#pragma once

#include "dropin/cm_id.h"

namespace urnic::dropin {

// Of those a program may choose among, only those that have datagrams stay.
void keep_those_with_datagrams(std::vector<Adapter*>* adapters);

int connect_datagrams(CmId* id, const rdma_conn_param* p);
int accept_datagrams(CmId* id, const rdma_conn_param* p);
// To whom a request is: its parameters, with what the peer says.
void fill_request(CmEvent* e, std::string private_data);
// From INIT to RTS, with rdma_cm's Q_Key.
int ready_datagrams(ibv_qp* qp);
// What rdma_init_qp_attr says of the states in between.
int init_datagrams(ibv_qp_attr* attr, int* mask);

}  // namespace urnic::dropin
