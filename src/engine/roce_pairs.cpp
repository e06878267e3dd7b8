#include "engine/roce_pairs.h"

#include <utility>

namespace urnic::engine {

RocePairs::RocePairs(const roce::Options& options, Hooks* hooks, wire::Wire* wire,
                     verbs::MemoryTable* memory, QueuePairs* qps)
    : hooks_(hooks), wire_(*wire), qps_(*qps), side_(options, hooks, wire, memory) {}

// A number that another transport's queue pair has goes back unused; its entry then has another.
std::unique_ptr<verbs::QueuePair> RocePairs::new_pair(verbs::PdId pd,
                                                      const verbs::WorkQueueSizes& sizes,
                                                      verbs::CompletionQueue* send,
                                                      verbs::CompletionQueue* receive) {
  constexpr int kMost = 256;  // taken one after the other: the numbers are as good as used up
  for (int i = 0; i < kMost; ++i) {
    auto made = side_.create(pd, sizes, send, receive);
    if (made == nullptr || !qps_.has(made->number())) return made;
    side_.destroy(std::move(made));
  }
  return nullptr;
}

verbs::QueuePair* RocePairs::create(verbs::PdId pd, const verbs::WorkQueueSizes& sizes,
                                    verbs::CompletionQueue* send, verbs::CompletionQueue* receive) {
  auto made = new_pair(pd, sizes, send, receive);
  if (made == nullptr) return nullptr;
  try {
    return qps_.add(std::move(made));
  } catch (...) {
    side_.destroy(std::move(made));
    throw;
  }
}

void RocePairs::destroy(verbs::QueuePair* qp) {
  side_.destroy(qps_.take(qp));
}

roce::Modified RocePairs::modify(verbs::QueuePair& qp, const roce::QpChange& change, Instant now) {
  wire_.begin_sending();
  return side_.modify(qp, change, now);
}

void RocePairs::work_posted(verbs::QueuePair& qp, Instant now) {
  wire_.begin_sending();
  side_.work_posted(qp, now);
}

void RocePairs::fail(verbs::QueuePair& qp, Errc code, const std::string& why) {
  if (side_.fail(qp)) hooks_->on_qp_failed(qp, code, why);
}

void RocePairs::give_up_link(const std::string& why) {
  qps_.for_each([&](verbs::QueuePair& qp) {
    if (is_roce(qp) && side_.goes_out(qp)) fail(qp, Errc::unreachable, why);
  });
}

}  // namespace urnic::engine
