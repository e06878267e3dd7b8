// What a queue pair of each type is made of.
#pragma once

#include "dropin/queue_pair.h"

namespace urnic::dropin {

bool has_type(const Adapter&, ibv_qp_type);
Service service_of(ibv_qp_type);
// Whether the structure has the objects that its type needs; XRC has one half at each end.
bool has_objects(const ibv_qp_init_attr_ex&);
// `attr` in the longer form, with `pd` as its protection domain: the program's memory may have room
// for the shorter form only.
ibv_qp_init_attr_ex extended(const ibv_qp_init_attr& attr, ibv_pd* pd);
// Clears what such a queue pair does not use and what is therefore not looked at: the other half of
// one of XRC, the receive sizes of one with a shared receive queue.
void forget_unused(ibv_qp_init_attr_ex*);
// It uses them from now on, or no longer.
void count_users(const Qp&, int by);

}  // namespace urnic::dropin
