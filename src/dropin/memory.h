// Protection domains, memory regions and memory windows.
#pragma once

#include <atomic>

#include "dropin/exported.h"
#include "dropin/handle.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

struct Pd {
  ibv_pd base;  // first
  ProtectionDomain domain;
  std::atomic<int> users{0};
  // Only for a parent domain: the original domain, and the user count of its thread domain.
  Pd* parent = nullptr;
  std::atomic<int>* thread_users = nullptr;
  const std::uint32_t number = new_handle();
  bool is_known() const { return base.handle == number; }
  static Pd* of(ibv_pd* p) { return reinterpret_cast<Pd*>(p); }
};

struct Mr {
  ibv_mr base;  // first
  MemoryRegion region;
  bool is_known() const { return base.handle == region.lkey(); }
  static Mr* of(ibv_mr* m) { return reinterpret_cast<Mr*>(m); }
};

struct Mw {
  ibv_mw base;  // first
  MemoryWindow window;
  static Mw* of(ibv_mw* m) { return reinterpret_cast<Mw*>(m); }
};

// Converts those IBV_ACCESS_* flags that a peer may have.
std::uint32_t to_remote_access(unsigned flags);
// Converts a bind of `mw` with key `rkey` into the library's form. Returns 0 or errno.
int to_bind(const ibv_mw& mw, std::uint32_t rkey, const ibv_mw_bind_info& info, WindowBind* out);

void set_memory_calls(verbs_context*);

}  // namespace urnic::dropin
