// Shared receive queues.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "dropin/exported.h"
#include "dropin/process.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

struct Srq {
  ibv_srq base;  // first
  SharedReceiveQueue queue;
  ibv_cq* cq = nullptr;  // XRC only, like the next member
  ibv_xrcd* xrcd = nullptr;
  std::shared_ptr<Subject> subject;
  std::uint64_t number = 0;
  bool is_known() const { return base.handle == static_cast<std::uint32_t>(number); }
  std::atomic<int> users{0};       // queue pairs
  std::uint32_t async_handed = 0;  // needs base.mutex
  static Srq* of(ibv_srq* s) { return reinterpret_cast<Srq*>(s); }
};

void set_shared_receive_calls(verbs_context*);

}  // namespace urnic::dropin
