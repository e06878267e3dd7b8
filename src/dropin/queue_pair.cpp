#include "dropin/queue_pair.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "dropin/async_events.h"
#include "dropin/context.h"
#include "dropin/errors.h"
#include "dropin/injector.h"
#include "dropin/memory.h"
#include "dropin/peer_matcher.h"
#include "dropin/qp_types.h"
#include "dropin/roce_states.h"
#include "dropin/shared_receive.h"
#include "dropin/spoiled_work.h"
#include "dropin/tables_lock.h"
#include "dropin/undo.h"
#include "dropin/work.h"
#include "dropin/xrc.h"

namespace urnic::dropin {
namespace {

constexpr std::size_t kBatch = 32;

static_assert(static_cast<int>(QpState::reset) == IBV_QPS_RESET);
static_assert(static_cast<int>(QpState::rts) == IBV_QPS_RTS);
static_assert(static_cast<int>(QpState::error) == IBV_QPS_ERR);

// Queue pairs of this process by device and number: rdma_conn_param names them so.
using Numbers = std::unordered_map<std::uint64_t, std::shared_ptr<Endpoint>>;
Numbers& numbers() {  // needs tables_lock
  static auto* n = new Numbers;
  return *n;
}

std::uint64_t key_of(const Adapter& adapter, std::uint32_t number) {
  return std::uint64_t{adapter.index()} << 32 | number;
}

bool is_about(const ibv_async_event& e, const ibv_qp* qp) {
  switch (e.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return e.element.qp == qp;
    default:
      return false;
  }
}

}  // namespace

void tell(Qp* qp, ibv_event_type what) {
  ibv_async_event e{};
  e.event_type = what;
  e.element.qp = &qp->base;
  Context::of(qp->base.context)->async.push(e);
}

std::shared_ptr<Endpoint> endpoint_of(const Adapter& adapter, std::uint32_t qp_number) {
  const std::lock_guard guard(tables_lock);
  const auto found = numbers().find(key_of(adapter, qp_number));
  return found == numbers().end() ? nullptr : found->second;
}

void fail_all(const Adapter& adapter, const ibv_cq* cq) {
  std::vector<std::shared_ptr<Endpoint>> all;
  {
    const std::lock_guard guard(tables_lock);
    for (const auto& [key, end] : numbers()) {
      const bool completes = cq == nullptr || end->send_cq == cq || end->recv_cq == cq;
      if (&end->adapter == &adapter && completes) all.push_back(end);
    }
  }
  for (const auto& end : all) end->fail();
}

// ---- work

namespace {

int post_all(ibv_qp* q, ibv_send_wr* wr, ibv_send_wr** bad, const void* caller) {
  QueuePair& qp = Qp::of(q)->end->handle;
  const PostedTo to{q->qp_type, Qp::of(q)->end->adapter.traits().has_wide_immediate};
  return guarded(
      [&] {
        while (wr != nullptr) {
          SendRequest batch[kBatch];
          WindowBind bind;  // of at most one request, the last
          std::size_t n = 0;
          int why = 0;
          ibv_send_wr *first = wr, *last = nullptr;
          for (; wr != nullptr && n < kBatch; wr = wr->next) {
            if (n != 0 && batch[n - 1].opcode == Opcode::bind_window) break;
            why = to_request(*wr, to, &batch[n], &bind);
            if (why != 0) break;
            last = wr;
            ++n;
          }
          if (n != 0) {
            if (Injector::get() != nullptr) [[unlikely]]
              inject_sends(*Qp::of(q), {batch, n}, caller);
            Error error;
            const std::size_t taken = qp.post_send({batch, n}, &error);
            if (taken < n) {
              for (std::size_t i = 0; i < taken; ++i) first = first->next;
              *bad = first;
              return to_errno(error.code);
            }
            if (batch[n - 1].opcode == Opcode::bind_window) last->bind_mw.mw->rkey = bind.rkey;
          }
          if (why != 0) {
            *bad = wr;
            return why;
          }
        }
        return 0;
      },
      ENOMEM);
}

// Reports a send that waits for the connection, which may never be established.
void note_early(ibv_qp* q) {
  const Endpoint& end = *Qp::of(q)->end;
  if (!end.apart.load(std::memory_order_relaxed) || is_inherited(q->context)) return;
  guarded(
      [&] {
        const std::lock_guard guard(Process::get().cm);
        end.adapter.peer_matcher().posted(end.handle.number());
        return 0;
      },
      0);
}

int post_send(ibv_qp* q, ibv_send_wr* wr, ibv_send_wr** bad) {
  return post_sends(q, wr, bad, __builtin_return_address(0));
}

int post_recv(ibv_qp* q, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  if (const int e = injected(VerbsKind::ibv_post_recv, Qp::of(q)->nth); e != 0) {
    *bad = wr;
    return told(e);
  }
  const void* const caller = __builtin_return_address(0);
  QueuePair& qp = Qp::of(q)->end->handle;
  return guarded(
      [&] {
        for (; wr != nullptr; wr = wr->next) {
          ReceiveRequest r{wr->wr_id, to_sges(wr->sg_list, wr->num_sge)};
          if (Injector::get() != nullptr) [[unlikely]]
            inject_receive(*Qp::of(q), &r, caller);
          if (auto ok = qp.post_receive(r); !ok) {
            *bad = wr;
            return to_errno(ok.error().code);
          }
        }
        return 0;
      },
      ENOMEM);
}

// ---- making

// The library checks that all objects belong to the device.
int check(const ibv_context* c, ibv_qp_init_attr_ex a) {
  if (!has_type(Adapter::of(c), a.qp_type)) return EOPNOTSUPP;
  forget_unused(&a);
  const std::uint32_t known =
      a.qp_type == IBV_QPT_XRC_RECV
          ? std::uint32_t{IBV_QP_INIT_ATTR_PD} | IBV_QP_INIT_ATTR_XRCD
          : std::uint32_t{IBV_QP_INIT_ATTR_PD} | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if ((a.comp_mask & ~(known | IBV_QP_INIT_ATTR_CREATE_FLAGS)) != 0) return EOPNOTSUPP;
  // No create flag is supported; flags of 0 are accepted.
  if ((a.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && a.create_flags != 0) return EOPNOTSUPP;
  const bool builds = (a.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  if (builds && (a.send_ops_flags & ~Builder::operations_of(a.qp_type)) != 0) return EOPNOTSUPP;
  if (!has_objects(a)) return EINVAL;
  const ibv_qp_cap& cap = a.cap;
  const bool fits = cap.max_send_wr <= Limits::kWork && cap.max_recv_wr <= Limits::kWork &&
                    cap.max_send_sge <= Limits::kSges && cap.max_recv_sge <= Limits::kSges &&
                    cap.max_inline_data <= Limits::kInline;
  return fits ? 0 : EINVAL;
}

// Adapters store a short message in place of the SGEs of a request, and so grant inline space that
// was not requested. Some programs send inline without having requested it (rdma_xclient).
std::uint32_t inline_granted(std::uint32_t asked, std::uint32_t sges) {
  return std::max(asked, sges * static_cast<std::uint32_t>(sizeof(ibv_sge)));
}

// Creates it with a number by which the peer can find it, if one is available. rdma_cm does not
// need that.
Result<QueuePair> make_handle(Adapter& adapter, const ProtectionDomain& pd, QpOptions& o,
                              bool by_number) {
  for (int tries = by_number ? 3 : 0; tries > 0; --tries) {
    {
      const std::lock_guard guard(Process::get().cm);
      o.number = adapter.peer_matcher().take_number();
    }
    if (o.number == 0) break;
    auto made = adapter.device().create_qp(pd, o);
    if (made) return made;
    const std::lock_guard guard(Process::get().cm);
    adapter.peer_matcher().give_back(o.number);
    if (made.error().code != Errc::in_use) return made;
  }
  o.number = 0;
  return adapter.device().create_qp(pd, o);
}

ibv_qp* create(ibv_context* c, ibv_qp_init_attr_ex* a, bool by_number) {
  if (is_inherited(c)) return nothing(ENODEV);  // its tables belong to the parent
  if (const int e = check(c, *a); e != 0) return nothing(e);
  forget_unused(a);
  ibv_xrcd* const xrcd = a->qp_type == IBV_QPT_XRC_RECV ? a->xrcd : nullptr;
  Adapter& adapter = Adapter::of(c);
  if (counts(c).queue_pairs.load() >= Limits::kQueuePairs) return nothing(ENOMEM);
  auto qp = std::make_unique<Qp>();
  auto builder = std::make_unique<Builder>();
  auto end = std::make_shared<Endpoint>(adapter);
  Process& process = Process::get();
  end->number = process.add(end);
  Undo name([&] { process.remove(end->number); });
  QpOptions o;
  if (a->send_cq != nullptr) o.send_cq = Cq::of(a->send_cq)->queue;
  if (a->recv_cq != nullptr) o.receive_cq = Cq::of(a->recv_cq)->queue;
  if (xrcd != nullptr) o.xrc_domain = Xrcd::of(xrcd)->domain;
  o.events = adapter.events();
  o.context = Process::as_context(end->number);
  o.max_send = a->cap.max_send_wr;
  o.max_receive = a->cap.max_recv_wr;
  o.max_send_sge = std::max<std::uint32_t>(a->cap.max_send_sge, 1);
  o.max_receive_sge = std::max<std::uint32_t>(a->cap.max_recv_sge, 1);
  o.max_inline = inline_granted(a->cap.max_inline_data, o.max_send_sge);
  o.signal_all = a->sq_sig_all != 0;
  o.asynchronous_events = true;
  o.transport = adapter.transport();
  o.service = service_of(a->qp_type);
  if (a->srq != nullptr) o.srq = Srq::of(a->srq)->queue;
  const ProtectionDomain& pd = xrcd != nullptr ? Xrcd::of(xrcd)->none : Pd::of(a->pd)->domain;
  auto handle = make_handle(adapter, pd, o, by_number && adapter.traits().needs_peer_matcher);
  if (!handle) return nothing(to_errno(handle.error().code));
  Undo number([&] {
    if (o.number == 0) return;
    const std::lock_guard guard(process.cm);
    adapter.peer_matcher().give_back(o.number);
  });
  end->handle = std::move(*handle);
  // Before a connection, a queue pair of an RNIC has no other state (RFC 5040: Idle); siw, cxgb4
  // and irdma report the same.
  if (adapter.is_ib_like()) (void)end->handle.modify(QpState::reset);
  a->cap.max_send_wr = o.max_send;
  a->cap.max_recv_wr = o.max_receive;
  a->cap.max_send_sge = o.max_send_sge;
  a->cap.max_recv_sge = a->srq != nullptr ? 0 : o.max_receive_sge;
  a->cap.max_inline_data = o.max_inline;
  ibv_qp& b = qp->base;
  b.context = c;
  b.qp_context = a->qp_context;
  b.pd = a->pd;
  b.send_cq = a->send_cq;
  b.recv_cq = a->recv_cq;
  b.srq = a->srq;
  b.handle = b.qp_num = end->handle.number();
  b.state = IBV_QPS_RESET;
  b.qp_type = a->qp_type;
  pthread_mutex_init(&b.mutex, nullptr);
  pthread_cond_init(&b.cond, nullptr);
  qp->cap = a->cap;
  qp->xrcd = xrcd;
  if ((a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
    qp->builder = std::move(builder);
    Builder::install(&qp->ex, a->send_ops_flags);
  }
  qp->sig_all = o.signal_all;
  if (Injector* const injector = Injector::get(); injector != nullptr) {
    qp->nth = injector->count_qp();
  }
  {
    const std::lock_guard guard(tables_lock);
    numbers().emplace(key_of(adapter, b.qp_num), end);
  }
  Undo entry([&] {
    const std::lock_guard guard(tables_lock);
    numbers().erase(key_of(adapter, b.qp_num));
  });
  if (o.number != 0) {
    end->is_found_by_number = true;
    const std::lock_guard guard(process.cm);
    adapter.peer_matcher().add(end);
  }
  name.keep();
  number.keep();
  entry.keep();
  end->send_cq = a->send_cq;
  end->recv_cq = a->recv_cq;
  end->belongs_to(qp.get());
  if (xrcd != nullptr) {
    end->xrcd = Xrcd::of(xrcd);
    end->domain = end->xrcd->name;
  }
  qp->end = std::move(end);
  count_users(*qp, 1);
  return &qp.release()->base;
}

ibv_qp* create_qp_ex(ibv_context* c, ibv_qp_init_attr_ex* attr) {
  if (const int e = injected(VerbsKind::ibv_create_qp); e != 0) return nothing(e);
  return guarded([&] { return create(c, attr, true); }, nullptr);
}

}  // namespace

int post_sends(ibv_qp* q, ibv_send_wr* wr, ibv_send_wr** bad, const void* caller) {
  if (Injector* const injector = Injector::get(); injector != nullptr) [[unlikely]] {
    if (const auto hit = injector->next(VerbsKind::ibv_post_send, {Qp::of(q)->nth, caller})) {
      *bad = wr;
      return told(static_cast<int>(hit->argument));
    }
  }
  const int result = post_all(q, wr, bad, caller);
  note_early(q);
  return result;
}

int post_bind(ibv_qp* qp, std::uint64_t wr_id, unsigned flags, const WindowBind& bind) {
  if ((flags & ~kSendFlags) != 0) return EINVAL;
  return guarded(
      [&] {
        SendRequest r;
        r.wr_id = wr_id;
        r.opcode = Opcode::bind_window;
        r.flags = to_flags(flags);
        r.bind = &bind;
        if (Injector::get() != nullptr) inject_sends(*Qp::of(qp), {&r, 1}, nullptr);
        const auto posted = Qp::of(qp)->end->handle.post_send(r);
        note_early(qp);
        return posted ? 0 : to_errno(posted.error().code);
      },
      ENOMEM);
}

ibv_qp* create_for_cm(ibv_context* c, ibv_qp_init_attr_ex* attr, ibv_qp_type type) {
  if (attr->qp_type != type) return nothing(EOPNOTSUPP);
  return create(c, attr, false);
}

void set_queue_pair_calls(verbs_context* v) {
  v->context.ops.post_send = post_send;
  v->context.ops.post_recv = post_recv;
  v->create_qp_ex = create_qp_ex;
}

}  // namespace urnic::dropin

using namespace urnic::dropin;  // the exported functions are in the global namespace

ibv_qp* urnic_ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (const int e = injected(VerbsKind::ibv_create_qp); e != 0) return nothing(e);
  return guarded(
      [&]() -> ibv_qp* {
        ibv_qp_init_attr_ex ex = extended(*attr, pd);
        ibv_qp* qp = urnic::dropin::create(pd->context, &ex, true);
        if (qp != nullptr) attr->cap = ex.cap;
        return qp;
      },
      nullptr);
}

ibv_qp_ex* urnic_ibv_qp_to_qp_ex(ibv_qp* q) {
  Qp* qp = Qp::of(q);
  return qp->builder != nullptr ? &qp->ex : nullptr;
}

int urnic_ibv_modify_qp(ibv_qp* q, ibv_qp_attr* attr, int mask) {
  if (const int e = injected(VerbsKind::ibv_modify_qp, Qp::of(q)->nth); e != 0) return told(e);
  return guarded([&] { return Qp::of(q)->modify(*attr, mask); }, ENOMEM);
}

int urnic_ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) {
  return 0;  // no order is promised
}

int urnic_ibv_destroy_qp(ibv_qp* q) {
  if (is_inherited(q->context)) return 0;
  Qp* qp = Qp::of(q);
  if (!qp->is_known()) return told(ENOENT);
  bool last = true;
  {
    const std::lock_guard guard(tables_lock);
    last = --qp->end->opened == 0;
    if (last) numbers().erase(key_of(qp->end->adapter, q->qp_num));
  }
  if (last) {
    qp->end->release();
  } else {
    qp->end->leaves(qp);
  }
  Context::of(q->context)->async.take_if([&](const ibv_async_event& e) { return is_about(e, q); });
  pthread_mutex_lock(&q->mutex);
  while (q->events_completed != qp->async_handed) pthread_cond_wait(&q->cond, &q->mutex);
  pthread_mutex_unlock(&q->mutex);
  count_users(*qp, -1);
  pthread_mutex_destroy(&q->mutex);
  pthread_cond_destroy(&q->cond);
  delete qp;
  return 0;
}
