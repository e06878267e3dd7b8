// Address handles: where a datagram goes; and the address of a peer as verbs name it, as a path of
// the library.
#pragma once

#include "dropin/adapter.h"
#include "dropin/cm_address.h"
#include "dropin/exported.h"
#include "dropin/handle.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

struct Ah {
  ibv_ah base;  // first
  AddressHandle handle;
  const std::uint32_t number = new_handle();
  bool is_known() const { return base.handle == number; }
  static Ah* of(ibv_ah* a) { return reinterpret_cast<Ah*>(a); }
};

// 0, or why it is no address of RoCE, which has no other than GIDs. The port of UDP is the flow
// label's, as routers may tell ways apart by it; without one `pair` chooses, which is of the two
// ends.
int to_path(Adapter& adapter, const ibv_ah_attr& a, std::uint32_t pair, QpPath* out);

// The other way round, from an own address: as verbs name it. Index 0 where the address has gone.
ibv_ah_attr way_between(Adapter& adapter, const Address& own, const Address& peer);
// Of what a queue pair goes by.
ibv_ah_attr to_way(Adapter& adapter, const QpPath& path);

}  // namespace urnic::dropin
