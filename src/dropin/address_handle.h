// Address handles, which name the destination of datagrams; conversions between a peer's address in
// verbs' form and the library's QpPath.
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

// Returns 0, or errno if it is not a RoCE address; RoCE addresses are always GIDs. The UDP port is
// derived from the flow label, so that routers can distinguish paths by it; without a flow label it
// is derived from `pair`, a number that identifies the two ends.
int to_path(Adapter& adapter, const ibv_ah_attr& a, std::uint32_t pair, QpPath* out);

// The opposite conversion, for an own and a peer's address. The index is 0 if the own address no
// longer exists.
ibv_ah_attr address_vector_between(Adapter& adapter, const Address& own, const Address& peer);
// The same for the path of a queue pair.
ibv_ah_attr to_address_vector(Adapter& adapter, const QpPath& path);

}  // namespace urnic::dropin
