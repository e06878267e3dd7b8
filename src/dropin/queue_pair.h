// Queue pairs: what the program has (Qp), and what its identifier knows of the connection
// (Endpoint), which outlives it.
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
  // program's queue pair meanwhile, and waits for this. An empty handle refuses by itself. Nothing
  // is locked while it is held.
  std::unique_lock<std::mutex> hold() { return std::unique_lock(held_); }

  Adapter& adapter;
  QueuePair handle;                 // goes under Process::cm and hold()
  std::uint64_t number = 0;         // as a subject
  bool is_found_by_number = false;  // it may meet its peer without rdma_cm (peer_matcher.h)
  // It was told its peer by ibv_modify_qp; and has not been connected since: the first send that is
  // flushed then is one whose retries are used up.
  std::atomic<bool> met{false}, apart{false};
  std::atomic<bool> retry_exceeded_reported{false};
  int opened = 1;  // handles of the program (ibv_open_qp), under tables_lock
  // Of a receiving end of XRC: the domain it was made in, and its name if it has one.
  const Xrcd* xrcd = nullptr;
  std::string domain;
  ConnectionManager* manager = nullptr;  // under Process::cm (cm_id.h, peer_matcher.h)

  void on_event(Event& event) override;
  // Sends what was posted, then FIN.
  void disconnect();
  // Ends the connection now, unless it ends in order already.
  void abandon();
  // The program's queue pair is gone, and its id hears that the connection is. That ends by itself,
  // as it was told to; without having been told, now.
  void release();

  // RoCE, in INIT before a connection: the peer has the rights that rdma_cm gives it, whatever the
  // program has said so far (rping -q: none).
  void allow(bool reads);
  // Told by ibv_query_qp from now on, if anything is.
  void tell_timeout(std::optional<std::uint8_t> code);

  // Shows the program the state it is in.
  void refresh();

  // Under mutex_ until release().
  void belongs_to(Qp* qp) { qp_ = qp; }
  // One handle of several goes. Events are told of none, if it was the first.
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
  std::unique_ptr<Builder> builder;  // made with send_ops_flags
  ibv_xrcd* xrcd = nullptr;          // of a receiving end of XRC
  ibv_qp_cap cap;
  bool sig_all = false;
  bool is_known() const { return base.handle == end->handle.number(); }
  // As the program was told to show it: RTR, RTS, or RESET for nothing.
  std::atomic<ibv_qp_state> told{IBV_QPS_RESET};
  // What ibv_modify_qp was given and nothing here depends on, to be told again.
  ibv_qp_attr given{};
  // RoCE, in SQD: nothing is unanswered any more, and whether the program wants to be told.
  std::atomic<bool> drained{false}, tell_drained{false};
  std::uint32_t async_handed = 0;  // under base.mutex
  Qp() : ex{} {}
  static Qp* of(ibv_qp* q) { return reinterpret_cast<Qp*>(q); }
  ibv_qp_state state() const;
  int modify(const ibv_qp_attr& a, int mask);  // 0 or errno
  void show(ibv_qp_state s) { __atomic_store_n(&base.state, s, __ATOMIC_RELAXED); }
};

// The endpoint of the device's queue pair of this number; null without one.
std::shared_ptr<Endpoint> endpoint_of(const Adapter& adapter, std::uint32_t qp_number);

// A bind of a window, in the order of what is posted. 0 or an errno value.
int post_bind(ibv_qp*, std::uint64_t wr_id, unsigned flags, const WindowBind& bind);

// Of rdma_cm: it needs no number by which others find it, and is of `type`, its id's. Null with
// errno.
ibv_qp* create_for_cm(ibv_context*, ibv_qp_init_attr_ex*, ibv_qp_type type);

void set_queue_pair_calls(verbs_context*);

}  // namespace urnic::dropin
