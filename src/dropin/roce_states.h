// The states of a RoCE queue pair: ibv_modify_qp as in InfiniBand, with the attribute masks of its
// moves (IB-105 to IB-122), which the library checks.
#pragma once

#include "dropin/queue_pair.h"

namespace urnic::dropin {

// Returns 0 or errno; on an error nothing has changed.
int modify_roce(Qp* qp, const ibv_qp_attr& a, int mask);

// The attributes with which rdma_cm moves a queue pair to INIT. The peer may write, and if `reads`,
// also read and use atomics.
ibv_qp_attr init_attributes(bool reads, int* mask);

// Copies the attributes of `a` in `mask` that are numbers; the rest of `out` stays.
void show_numbers(const QpAttributes& a, int mask, ibv_qp_attr* out);
// Its path, which must be set.
ibv_ah_attr address_vector_of(Adapter& adapter, const QpAttributes& a);

// Copies the attributes that the program or a connection has set, as ibv_query_qp returns them. The
// rest of `out` stays.
void show_attributes(const Qp& qp, ibv_qp_attr* out);

}  // namespace urnic::dropin
