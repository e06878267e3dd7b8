#include "dropin/injected_events.h"

#include "base/clock.h"
#include "dropin/alarms.h"
#include "dropin/context.h"
#include "dropin/injector.h"
#include "dropin/queue_pair.h"
#include "dropin/shared_receive.h"

namespace urnic::dropin {
namespace {

void inject_device_events(Adapter& adapter) {
  Injector& injector = *Injector::get();
  if (const auto hit = injector.next(VerbsKind::port_err)) {
    adapter.show_port_down(true);
    alarms().set(monotonic_now() + Duration::ns(hit->argument),
                 [&adapter] { adapter.show_port_down(false); });
  }
  if (injector.next(VerbsKind::gid_change)) adapter.tell_contexts(IBV_EVENT_GID_CHANGE);
  if (injector.next(VerbsKind::device_fatal)) {
    adapter.tell_contexts(IBV_EVENT_DEVICE_FATAL);
    fail_all(adapter);
  }
}

}  // namespace

void inject_events(Qp& qp) {
  constexpr struct {
    VerbsKind kind;
    ibv_event_type event;
  } kOfQueuePairs[] = {{VerbsKind::qp_fatal, IBV_EVENT_QP_FATAL},
                       {VerbsKind::qp_req_err, IBV_EVENT_QP_REQ_ERR},
                       {VerbsKind::qp_access_err, IBV_EVENT_QP_ACCESS_ERR}};
  for (const auto& [kind, event] : kOfQueuePairs) {
    if (!Injector::get()->next(kind, {qp.nth, nullptr})) continue;
    tell(&qp, event);
    qp.end->fail();
  }
  inject_device_events(qp.end->adapter);
}

void inject_events(Srq& srq) {
  if (Injector::get()->next(VerbsKind::srq_limit)) {
    ibv_async_event e{};
    e.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
    e.element.srq = &srq.base;
    Context::of(srq.base.context)->async.push(e);
  }
  inject_device_events(Adapter::of(srq.base.context));
}

}  // namespace urnic::dropin
