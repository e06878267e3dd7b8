#include "dropin/shared_receive.h"

#include "dropin/completion.h"
#include "dropin/context.h"
#include "dropin/errors.h"
#include "dropin/injector.h"
#include "dropin/memory.h"
#include "dropin/spoiled_work.h"
#include "dropin/undo.h"
#include "dropin/work.h"
#include "dropin/xrc.h"

namespace urnic::dropin {
namespace {

void count_users(const Srq& srq, int by) {
  Pd::of(srq.base.pd)->users.fetch_add(by);
  if (srq.cq != nullptr) Cq::of(srq.cq)->users.fetch_add(by);
  if (srq.xrcd != nullptr) Xrcd::of(srq.xrcd)->users.fetch_add(by);
  if (by > 0) Context::of(srq.base.context)->users.fetch_add(by);
}

class SrqSubject : public Subject {
 public:
  explicit SrqSubject(Srq* srq) : srq_(srq) {}
  void on_event(Event& event) override {
    const std::lock_guard guard(mutex_);
    if (srq_ == nullptr || event.kind != EventKind::receive_limit) return;
    ibv_async_event e{};
    e.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
    e.element.srq = &srq_->base;
    Context::of(srq_->base.context)->async.push(e);
  }
  void detach() {
    const std::lock_guard guard(mutex_);
    srq_ = nullptr;
  }

 private:
  std::mutex mutex_;
  Srq* srq_;
};

// `cq` and `xrcd` are set for XRC, else null.
ibv_srq* create(ibv_pd* p, void* srq_context, ibv_srq_attr* attr, ibv_cq* cq = nullptr,
                ibv_xrcd* xrcd = nullptr) {
  if (attr->max_wr == 0 || attr->max_wr > Limits::kWork || attr->max_sge > Limits::kSges) {
    return nothing(EINVAL);
  }
  auto srq = std::make_unique<Srq>();
  if (!count_up(counts(p->context).shared_queues, Limits::kSharedQueues)) return nothing(ENOMEM);
  Undo count([&] { counts(p->context).shared_queues.fetch_sub(1); });
  Process& process = Process::get();
  Adapter& adapter = Adapter::of(p->context);
  auto subject = std::make_shared<SrqSubject>(srq.get());
  srq->subject = subject;
  srq->number = process.add(std::move(subject));
  Undo name([&] { process.remove(srq->number); });
  SrqOptions o;
  o.max_receive = attr->max_wr;
  o.max_receive_sge = std::max<std::uint32_t>(attr->max_sge, 1);
  o.events = adapter.events();
  o.context = Process::as_context(srq->number);
  if (xrcd != nullptr) {
    o.xrc_domain = Xrcd::of(xrcd)->domain;
    o.receive_cq = Cq::of(cq)->queue;
  }
  auto queue = adapter.device().create_srq(Pd::of(p)->domain, o);
  if (!queue) return nothing(to_errno(queue.error().code));
  count.keep();
  name.keep();
  srq->queue = std::move(*queue);
  srq->base = {};
  srq->base.context = p->context;
  srq->base.srq_context = srq_context;
  srq->base.pd = p;
  srq->base.handle = static_cast<std::uint32_t>(srq->number);
  pthread_mutex_init(&srq->base.mutex, nullptr);
  pthread_cond_init(&srq->base.cond, nullptr);
  const auto granted = srq->queue.query();
  attr->max_wr = granted.max_receive;
  attr->max_sge = granted.max_receive_sge;
  srq->cq = cq;
  srq->xrcd = xrcd;
  count_users(*srq, 1);
  return &srq.release()->base;
}

int post_srq_recv(ibv_srq* s, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  if (const int e = injected(VerbsKind::ibv_post_srq_recv); e != 0) {
    *bad = wr;
    return told(e);
  }
  const void* const caller = __builtin_return_address(0);
  Srq* srq = Srq::of(s);
  return guarded(
      [&] {
        for (; wr != nullptr; wr = wr->next) {
          ReceiveRequest r{wr->wr_id, to_sges(wr->sg_list, wr->num_sge)};
          if (Injector::get() != nullptr) [[unlikely]]
            inject_receive(*srq, &r, caller);
          if (auto ok = srq->queue.post_receive(r); !ok) {
            *bad = wr;
            return to_errno(ok.error().code);
          }
        }
        return 0;
      },
      ENOMEM);
}

ibv_srq* create_srq_ex(ibv_context* c, ibv_srq_init_attr_ex* attr) {
  if (const int e = injected(VerbsKind::ibv_create_srq); e != 0) return nothing(e);
  return guarded(
      [&]() -> ibv_srq* {
        if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
          return nothing(EINVAL);
        }
        const bool basic =
            (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || attr->srq_type == IBV_SRQT_BASIC;
        if (basic) return create(attr->pd, attr->srq_context, &attr->attr);
        if (attr->srq_type != IBV_SRQT_XRC || !Adapter::of(c).traits().has_xrc) {
          return nothing(EOPNOTSUPP);
        }
        constexpr std::uint32_t kXrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        if ((attr->comp_mask & kXrc) != kXrc || attr->xrcd == nullptr || attr->cq == nullptr) {
          return nothing(EINVAL);
        }
        return create(attr->pd, attr->srq_context, &attr->attr, attr->cq, attr->xrcd);
      },
      nullptr);
}

int get_srq_num(ibv_srq* s, std::uint32_t* number) {
  if (Srq::of(s)->xrcd == nullptr) return EOPNOTSUPP;  // only XRC queues have numbers
  *number = Srq::of(s)->queue.number();
  return 0;
}

}  // namespace

void set_shared_receive_calls(verbs_context* v) {
  v->context.ops.post_srq_recv = post_srq_recv;
  v->create_srq_ex = create_srq_ex;
  v->get_srq_num = get_srq_num;
}

}  // namespace urnic::dropin

using namespace urnic::dropin;  // the exported functions are in the global namespace

ibv_srq* urnic_ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (const int e = injected(VerbsKind::ibv_create_srq); e != 0) return nothing(e);
  return guarded([&] { return urnic::dropin::create(pd, attr->srq_context, &attr->attr); },
                 nullptr);
}

int urnic_ibv_modify_srq(ibv_srq* s, ibv_srq_attr* attr, int mask) {
  return guarded(
      [&] {
        if (!Srq::of(s)->is_known()) return ENOENT;
        if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
        if ((mask & ~IBV_SRQ_LIMIT) != 0) return EINVAL;
        if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
        auto ok = Srq::of(s)->queue.set_limit(attr->srq_limit);
        return ok ? 0 : to_errno(ok.error().code);
      },
      ENOMEM);
}

int urnic_ibv_query_srq(ibv_srq* s, ibv_srq_attr* attr) {
  return guarded(
      [&] {
        if (!Srq::of(s)->is_known()) return ENOENT;
        const auto a = Srq::of(s)->queue.query();
        attr->max_wr = a.max_receive;
        attr->max_sge = a.max_receive_sge;
        attr->srq_limit = a.limit;
        return 0;
      },
      ENOMEM);
}

int urnic_ibv_destroy_srq(ibv_srq* s) {
  if (is_inherited(s->context)) return 0;
  Srq* srq = Srq::of(s);
  if (!srq->is_known()) return told(ENOENT);
  if (srq->users.load() != 0) return told(EBUSY);
  static_cast<SrqSubject*>(srq->subject.get())->detach();
  Process::get().remove(srq->number);
  Context::of(s->context)->async.take_if([&](const ibv_async_event& e) {
    return e.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && e.element.srq == s;
  });
  pthread_mutex_lock(&s->mutex);
  while (s->events_completed != srq->async_handed) pthread_cond_wait(&s->cond, &s->mutex);
  pthread_mutex_unlock(&s->mutex);
  count_users(*srq, -1);
  counts(s->context).shared_queues.fetch_sub(1);
  Context::drop(s->context);
  pthread_mutex_destroy(&s->mutex);
  pthread_cond_destroy(&s->cond);
  delete srq;
  return 0;
}
