// Domains of XRC: the program's handles, and which handles are the same domain.
#pragma once

#include <atomic>
#include <string>

#include "dropin/exported.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

struct Xrcd {
  ibv_xrcd base;  // first
  XrcDomain domain;
  ProtectionDomain none;  // for receiving ends, which have no protection domain of the program's
  std::string name;       // identifies its file; empty: private
  std::atomic<int> users{0};  // shared receive queues and queue pairs
  static Xrcd* of(ibv_xrcd* x) { return reinterpret_cast<Xrcd*>(x); }
};

// Creates a private domain for rdma_cm. Null with errno.
ibv_xrcd* make_xrcd(ibv_context*);

void set_xrc_calls(verbs_context*);

}  // namespace urnic::dropin
