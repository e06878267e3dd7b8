// The faults of `urnic run --verbs-faults` in this process (docs/verbs-faults.md). Without that
// option there is no Injector, and a call that could fail tests one pointer.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "dropin/exported.h"
#include "fault/verbs_faults.h"

namespace urnic::dropin {

using fault::VerbsKind;

class Injector {
 public:
  // Null without plans.
  static Injector* get() { return active.load(std::memory_order_relaxed); }
  // Reads the plans from the environment, once in a process, and says on standard error that faults
  // will be injected. False, after one line, if they are invalid.
  static bool start();
  // In a child of a fork, whose calls are counted from the beginning.
  static void forget_parent();

  // Counts an event of this kind. If it has a fault, one line goes to the log, with `about` behind
  // it.
  std::optional<fault::VerbsHit> next(VerbsKind kind, const fault::VerbsFaults::Where& where = {},
                                      const std::string& about = {});
  bool has(VerbsKind kind) const { return faults_.has(kind); }
  // The number of a new queue pair, in the order of creation.
  std::uint32_t count_qp() { return ++queue_pairs_; }

 private:
  Injector(const std::vector<fault::VerbsPlan>& plans, int log);
  void note(const std::string& line) const;

  static std::atomic<Injector*> active;
  const Injector* before_ = nullptr;  // that of the parent, which is left as it is
  const int log_;
  mutable std::atomic<bool> lost_{false};  // a line of the log was lost, and that was said
  std::atomic<std::uint32_t> queue_pairs_{0};
  std::mutex mutex_;
  fault::VerbsFaults faults_;
};

// The errno value with which the exported function in which it stands must fail; 0: none. `qp`: the
// queue pair's number in the order of creation.
[[gnu::always_inline]] inline int injected(VerbsKind call, std::uint32_t qp = 0) {
  Injector* const injector = Injector::get();
  if (injector == nullptr) [[likely]]
    return 0;
  const auto hit = injector->next(call, {qp, __builtin_return_address(0)});
  return hit ? static_cast<int>(hit->argument) : 0;
}

}  // namespace urnic::dropin
