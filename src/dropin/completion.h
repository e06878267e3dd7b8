// Completion channels and completion queues.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>

#include "dropin/exported.h"
#include "dropin/held_completions.h"
#include "dropin/process.h"
#include "dropin/signalled_queue.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

// One descriptor for all its queues: readable while one of them has an event. A program may poll
// it, add it to an epoll set, and make it non-blocking.
struct Channel {
  ibv_comp_channel base;  // first; refcnt and taking events need `mutex`
  std::mutex mutex;
  CompletionChannel events;  // its contexts are the Cqs
  const unsigned made_in = generation.load();
  static Channel* of(ibv_comp_channel* c) { return reinterpret_cast<Channel*>(c); }
};

struct Cq {
  explicit Cq(Adapter& of)
      : ex{}, adapter(of), has_wide_immediate(of.traits().has_wide_immediate) {}
  ibv_cq_ex ex;  // first; an ibv_cq up to comp_mask
  Adapter& adapter;
  const bool has_wide_immediate;  // a copy from its adapter's traits; read by every poll
  CompletionQueue queue;
  std::unique_ptr<HeldCompletions> held;  // only with faults of completions
  int poll(std::span<Completion> out) {
    return held == nullptr ? queue.poll(out) : held->poll(*this, out);
  }
  std::shared_ptr<Subject> subject;
  std::uint64_t number = 0;  // its subject number
  bool is_known() const { return ex.handle == static_cast<std::uint32_t>(number); }
  std::atomic<int> users{0};  // queue pairs
  // Need ex.mutex: events handed to the program.
  std::uint32_t events_handed = 0, async_handed = 0;
  // Extended poll: the completion being read.
  Completion current;

  static Cq* of(ibv_cq* c) { return reinterpret_cast<Cq*>(c); }
  static Cq* of(ibv_cq_ex* c) { return reinterpret_cast<Cq*>(c); }
  ibv_cq* base() { return reinterpret_cast<ibv_cq*>(&ex); }
};

void set_completion_calls(verbs_context*);

}  // namespace urnic::dropin
