// The verbs objects of a program in C, and the known state of each: which objects use it, which
// events are not acknowledged, what was posted.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/fuzz/guarded_memory.h"
#include "tests/fuzz/shortage.h"
#include "tests/fuzz/work_ledger.h"

namespace urnic::fuzz {

struct CRegion {
  std::unique_ptr<GuardedMemory> memory;
  ibv_mr* mr = nullptr;
  int access = 0;
};

struct CQueue {
  ibv_cq* cq = nullptr;
  unsigned handed = 0, acknowledged = 0;  // events
  bool overrun = false;
};

struct CPair {
  ibv_qp* qp = nullptr;
  std::uint64_t sends = 0, receives = 0;  // names of its work queues
  rdma_cm_id* id = nullptr;               // the owner; null: created by ibv_create_qp
};

struct CShared {
  ibv_srq* srq = nullptr;
  std::uint64_t name = 0;
};

class CProgram {
 public:
  explicit CProgram(Shortage* shortage);
  ~CProgram();
  CProgram(const CProgram&) = delete;
  CProgram& operator=(const CProgram&) = delete;

  void move(Input& in);
  // Completes all work, then destroys everything; `in` determines the order.
  void finish(Input& in);
  void check_memory() const;
  const WorkLedger& ledger() const { return ledger_; }
  std::uint64_t established() const { return established_; }

 private:
  static constexpr std::size_t kMost = 6;  // of each kind of object

  // Defined in dropin_objects.cpp.
  void move_context(Input& in);
  void move_domain(Input& in);
  void move_region(Input& in);
  void move_window(Input& in);
  void move_queue(Input& in);
  void move_shared(Input& in);
  void move_handle(Input& in);
  void take_events(Input& in);
  void acknowledge(std::size_t keep);
  bool close_region(std::size_t at, bool may_be_bound);
  bool destroy_queue(std::size_t at);
  bool destroy_channel(std::size_t at);
  bool destroy_shared(std::size_t at);
  bool free_domain(std::size_t at);
  void look(Input& in);

  // Defined in dropin_pairs.cpp.
  void make_pair(Input& in);
  void adopt(ibv_qp* qp, rdma_cm_id* id);
  void destroy_pair(std::size_t at);
  void modify(Input& in);
  void pair_up(Input& in);
  int lead(ibv_qp* qp, ibv_qp_state to, const ibv_qp* peer);
  void post_send(Input& in);
  void post_receive(Input& in);
  ibv_sge sge(Input& in, bool written);
  void poll(CQueue& q, int most);
  void poll_all();
  bool is_settled();

  // Defined in dropin_ids.cpp.
  void move_id(Input& in);
  void make_id(Input& in);
  void resolve(rdma_cm_id* id, Input& in);
  void connect(rdma_cm_id* id, Input& in);
  void take_cm_events(Input& in);
  void acknowledge_cm();
  void destroy_id(std::size_t at);
  void drop_ids();

  template <class T>
  static T* any(std::vector<T>& of, Input& in) {
    return of.empty() ? nullptr : &of[in.below(static_cast<std::uint32_t>(of.size()))];
  }
  template <class T>
  static T pick(const std::vector<T>& of, Input& in) {
    return of.empty() ? T{} : of[in.below(static_cast<std::uint32_t>(of.size()))];
  }
  template <class F>
  auto call(F&& f) -> decltype(f()) {
    return (*shortage_)(std::forward<F>(f));
  }
  // The result of a permitted call: 0, or another value if memory or descriptors ran out.
  void require_done(int result, const char* what) const;
  std::size_t users_of(const ibv_pd* pd) const;

  Shortage* shortage_;
  WorkLedger ledger_;
  Graveyard graves_;
  std::uint64_t last_name_ = 0, established_ = 0;

  ibv_device** devices_ = nullptr;
  int many_devices_ = 0;
  std::vector<ibv_context*> contexts_;
  std::vector<ibv_pd*> domains_;
  std::vector<CRegion> regions_;
  std::vector<ibv_mw*> windows_;
  std::vector<ibv_comp_channel*> channels_;
  std::vector<CQueue> queues_;
  std::vector<CShared> shared_;
  std::vector<CPair> pairs_;
  std::vector<ibv_ah*> handles_;
  std::vector<ibv_async_event> asynchronous_;  // not acknowledged
  rdma_event_channel* cm_[2] = {};
  std::vector<rdma_cm_id*> ids_;
  std::vector<rdma_cm_event*> cm_events_;  // not acknowledged
};

}  // namespace urnic::fuzz
