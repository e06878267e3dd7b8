// Completion channels and completion queues.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "dropin/exported.h"
#include "dropin/process.h"
#include "dropin/signalled_queue.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

// One descriptor for all its queues: readable while one of them has an event, and a program may
// poll it, watch it in turn and make it non-blocking.
struct Channel {
  ibv_comp_channel base;  // first; refcnt is under `mutex`, and so is who takes an event
  std::mutex mutex;
  CompletionChannel events;  // with its Cqs as contexts
  const unsigned made_in = generation.load();
  static Channel* of(ibv_comp_channel* c) { return reinterpret_cast<Channel*>(c); }
};

struct Cq {
  explicit Cq(Adapter& of)
      : ex{}, adapter(of), has_wide_immediate(of.traits().has_wide_immediate) {}
  ibv_cq_ex ex;  // first; an ibv_cq up to comp_mask
  Adapter& adapter;
  const bool has_wide_immediate;  // of its adapter's traits; read by every poll
  CompletionQueue queue;
  std::shared_ptr<Subject> subject;
  std::uint64_t number = 0;  // as a subject
  bool is_known() const { return ex.handle == static_cast<std::uint32_t>(number); }
  std::atomic<int> users{0};  // queue pairs
  // Under ex.mutex: events given to the program.
  std::uint32_t events_handed = 0, async_handed = 0;
  // Of the extended poll: what is being read.
  Completion current;

  static Cq* of(ibv_cq* c) { return reinterpret_cast<Cq*>(c); }
  static Cq* of(ibv_cq_ex* c) { return reinterpret_cast<Cq*>(c); }
  ibv_cq* base() { return reinterpret_cast<ibv_cq*>(&ex); }
};

void set_completion_calls(verbs_context*);

}  // namespace urnic::dropin
