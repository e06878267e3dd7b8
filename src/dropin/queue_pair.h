// Queue pairs: the program's handle (Qp), and the connection state that its id uses (Endpoint),
// which outlives the handle.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "dropin/builders.h"
#include "dropin/completion.h"
#include "dropin/exported.h"
#include "dropin/process.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

struct Qp;
struct Xrcd;

class Endpoint : public Subject, public std::enable_shared_from_this<Endpoint> {
 public:
  explicit Endpoint(Adapter& of) : adapter(of) {}

  // For calls of rdma_cm that use the handle without Process::cm: another thread may destroy the
  // program's queue pair meanwhile, and then waits for this lock. Calls on an empty handle fail by
  // themselves. Take no other lock while holding it.
  std::unique_lock<std::mutex> hold() { return std::unique_lock(held_); }

  Adapter& adapter;
  QueuePair handle;                 // destroyed under Process::cm and hold()
  std::uint64_t number = 0;         // its subject number
  bool is_found_by_number = false;  // may get its peer without rdma_cm (peer_matcher.h)
  // met: ibv_modify_qp named the peer. apart: and no connection was established since; then the
  // first send that is flushed is reported as "retries exceeded".
  std::atomic<bool> met{false}, apart{false};
  std::atomic<bool> retry_exceeded_reported{false};
  int opened = 1;  // handles of the program (ibv_open_qp); needs tables_lock
  // Only for a receiving end of XRC: the domain it was created in, and the domain's name if it has
  // one.
  const Xrcd* xrcd = nullptr;
  std::string domain;
  const ibv_cq *send_cq = nullptr, *recv_cq = nullptr;  // null if it has none
  ConnectionManager* manager = nullptr;  // needs Process::cm (cm_id.h, peer_matcher.h)

  void on_event(Event& event) override;
  // Sends what was posted, then FIN.
  void disconnect();
  // Ends the connection now, unless it is already ending in order.
  void abandon();
  // Called when the program's queue pair is destroyed: its id gets the disconnect event. If
  // disconnect() was called, the connection ends in order; otherwise it is aborted.
  void release();

  // RoCE, in INIT before a connection: sets the rights that rdma_cm gives to the peer, whatever the
  // program has set before (rping -q: none).
  void allow(bool reads);
  // Sets the timeout that ibv_query_qp returns from now on, if it has a value.
  void tell_timeout(std::optional<std::uint8_t> code);

  // Updates the state that the program sees.
  void refresh();
  // Moves the queue pair to Error.
  void fail();

  // Needs mutex_ until release().
  void belongs_to(Qp* qp) { qp_ = qp; }
  // One of several handles is destroyed. If it was the first, later events are not delivered.
  void leaves(const Qp* qp) {
    const std::lock_guard guard(mutex_);
    if (qp_ == qp) qp_ = nullptr;
  }

 private:
  void discard();

  std::mutex mutex_, held_;
  Qp* qp_ = nullptr;
  bool closing_ = false, ended_ = false;
};

struct Qp {
  union {
    ibv_qp base;  // first
    ibv_qp_ex ex;
  };
  std::shared_ptr<Endpoint> end;
  std::unique_ptr<Builder> builder;  // created if send_ops_flags is set
  ibv_xrcd* xrcd = nullptr;          // for a receiving end of XRC
  ibv_qp_cap cap;
  bool sig_all = false;
  std::uint32_t nth = 0;  // in the order of creation; only with injected faults
  bool is_known() const { return base.handle == end->handle.number(); }
  // The state set by ibv_modify_qp that is shown: RTR, RTS, or RESET for none.
  std::atomic<ibv_qp_state> told{IBV_QPS_RESET};
  // Attributes of ibv_modify_qp that have no effect here; ibv_query_qp returns them.
  ibv_qp_attr given{};
  // RoCE, in SQD: whether the queue has drained, and whether the program wants an event for it.
  std::atomic<bool> drained{false}, tell_drained{false};
  std::uint32_t async_handed = 0;  // needs base.mutex
  Qp() : ex{} {}
  static Qp* of(ibv_qp* q) { return reinterpret_cast<Qp*>(q); }
  ibv_qp_state state() const;
  int modify(const ibv_qp_attr& a, int mask);  // returns 0 or errno
  void show(ibv_qp_state s) { __atomic_store_n(&base.state, s, __ATOMIC_RELAXED); }
};

// The endpoint of the device's queue pair with this number; null if there is none.
std::shared_ptr<Endpoint> endpoint_of(const Adapter& adapter, std::uint32_t qp_number);

// Delivers an asynchronous event of the queue pair.
void tell(Qp* qp, ibv_event_type what);
// Moves all queue pairs of the device to Error, or only those that complete in `cq`.
void fail_all(const Adapter& adapter, const ibv_cq* cq = nullptr);

// As ibv_post_send; `caller`: an address in the program's function.
int post_sends(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad, const void* caller);
// Posts a bind of a window in posting order. Returns 0 or an errno value.
int post_bind(ibv_qp*, std::uint64_t wr_id, unsigned flags, const WindowBind& bind);

// Creates a queue pair for rdma_cm: it needs no number for peers, and has the `type` of its id.
// Null with errno.
ibv_qp* create_for_cm(ibv_context*, ibv_qp_init_attr_ex*, ibv_qp_type type);

void set_queue_pair_calls(verbs_context*);

}  // namespace urnic::dropin
