// What a queue pair of each type is made of.
#pragma once

#include "compat/queue_pair.h"

namespace urnic::compat {

bool has_type(const Adapter&, ibv_qp_type);
Service service_of(ibv_qp_type);
// Whether the structure has the objects that its type needs; XRC has one half at each end.
bool has_objects(const ibv_qp_init_attr_ex&);
// What a program names for the other half is not looked at.
void forget_other_half(ibv_qp_init_attr_ex*);
// It uses them from now on, or no longer.
void count_users(const Qp&, int by);

}  // namespace urnic::compat
