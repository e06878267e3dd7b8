// The states of a queue pair of RoCE: ibv_modify_qp as InfiniBand has it, with the masks of its
// moves (IB-105 to IB-122), which the library below holds to.
#pragma once

#include "dropin/queue_pair.h"

namespace urnic::dropin {

// 0 or errno, and nothing has changed then.
int modify_roce(Qp* qp, const ibv_qp_attr& a, int mask);

// What rdma_cm moves a queue pair to INIT with. The peer may write, and read and use atomics if
// `reads` are served.
ibv_qp_attr init_attributes(bool reads, int* mask);

// What `a` has of the attributes in `mask` that are numbers; the rest of `out` stays.
void show_numbers(const QpAttributes& a, int mask, ibv_qp_attr* out);
// Its path, which it has.
ibv_ah_attr way_of(Adapter& adapter, const QpAttributes& a);

// What its moves have set, by the program or by a connection, as ibv_query_qp tells it. The rest of
// `out` stays.
void show_attributes(const Qp& qp, ibv_qp_attr* out);

}  // namespace urnic::dropin
