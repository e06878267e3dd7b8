// The shared receive queues of XRC of an engine, by the number that requests name in their XRCETH.
// Each message names its queue (xrc.h).
//
// Under the ownership of the engine. A lookup allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/hash_map.h"
#include "base/siphash.h"
#include "base/stag_form.h"
#include "verbs/shared_receive_queue.h"

namespace urnic::ib {

class XrcQueues {
 public:
  // bound: shared receive queues of XRC of an engine; limit: 65536 (`kMost`); beyond: creating
  // fails with no_memory; test: XrcQueues.AreLimitedInNumber
  static constexpr std::uint32_t kMost = 1u << 16;

  // `key`: permutes the numbers (E-49).
  explicit XrcQueues(const SipKey& key) : numbers_(key) {}

  // Gives the queue a number and adds it to the domain. False: the limit is reached. Throws
  // std::bad_alloc and then changes nothing.
  bool open(verbs::SharedReceiveQueue*, std::uint32_t domain, verbs::CompletionQueue* completions);
  // find() no longer finds it. Its number is reused when all others have been used.
  void close(verbs::SharedReceiveQueue*) noexcept;
  // Null if no XRC queue has that number: 0, an ordinary queue, or one that was closed.
  verbs::SharedReceiveQueue* find(std::uint32_t number) const {
    verbs::SharedReceiveQueue* const* const at = by_number_.find(number);
    return at == nullptr ? nullptr : *at;
  }
  std::size_t size() const { return by_number_.size(); }
  // Calls f(SharedReceiveQueue&) for each queue.
  template <class F>
  void for_each(F&& f) {
    by_number_.for_each([&](std::uint32_t, verbs::SharedReceiveQueue* q) { f(*q); });
  }

 private:
  // Numbers are spread already.
  struct AsItIs {
    std::uint64_t operator()(std::uint32_t number) const { return number; }
  };
  HashMap<std::uint32_t, verbs::SharedReceiveQueue*, AsItIs> by_number_;
  StagForm numbers_;
  std::uint32_t last_ = 0;
};

}  // namespace urnic::ib
