// Domains of XRC: handles of the program, and which of them are one domain.
#pragma once

#include <atomic>
#include <string>

#include "dropin/exported.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

struct Xrcd {
  ibv_xrcd base;  // first
  XrcDomain domain;
  ProtectionDomain none;      // receiving ends have none of the program's
  std::string name;           // of the file that stands for it; empty: nobody else's
  std::atomic<int> users{0};  // shared receive queues and queue pairs
  static Xrcd* of(ibv_xrcd* x) { return reinterpret_cast<Xrcd*>(x); }
};

// A domain that only this process has, for rdma_cm. Null with errno.
ibv_xrcd* make_xrcd(ibv_context*);

void set_xrc_calls(verbs_context*);

}  // namespace urnic::dropin
