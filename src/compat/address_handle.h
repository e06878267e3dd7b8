// Address handles: where a datagram goes; and the address of a peer as verbs name it, as a path of
// the library.
#pragma once

#include "compat/adapter.h"
#include "compat/exported.h"
#include "urnic/verbs.h"

namespace urnic::compat {

struct Ah {
  ibv_ah base;  // first
  AddressHandle handle;
  static Ah* of(ibv_ah* a) { return reinterpret_cast<Ah*>(a); }
};

// 0, or why it is no address of RoCE, which has no other than GIDs. The port of UDP is the flow
// label's, as routers may tell ways apart by it; without one `pair` chooses, which is of the two
// ends.
int to_path(Adapter& adapter, const ibv_ah_attr& a, std::uint32_t pair, QpPath* out);

}  // namespace urnic::compat
