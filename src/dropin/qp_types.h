// The types of queue pairs and the objects that each type needs.
#pragma once

#include "dropin/queue_pair.h"

namespace urnic::dropin {

bool has_type(const Adapter&, ibv_qp_type);
Service service_of(ibv_qp_type);
// True if the structure has the objects that its type needs; each end of XRC has only one half.
bool has_objects(const ibv_qp_init_attr_ex&);
// `attr` in the longer form, with `pd` as its protection domain: the program's structure may be the
// shorter one.
ibv_qp_init_attr_ex extended(const ibv_qp_init_attr& attr, ibv_pd* pd);
// Clears members that such a queue pair does not use, so that they are not checked: the other half
// of an XRC end, the receive sizes if there is a shared receive queue.
void forget_unused(ibv_qp_init_attr_ex*);
// Adds `by` (1 or -1) to the user counts of the objects that it uses.
void count_users(const Qp&, int by);

}  // namespace urnic::dropin
