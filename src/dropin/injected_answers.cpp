#include "dropin/injected_answers.h"

namespace urnic::dropin {
namespace {

constexpr int kConsumerReject = 28;  // IBA 12.6.7.2: consumer reject

// The state in which the answered call may be made.
bool may_be_answered(const CmId& id, rdma_cm_event_type event) {
  switch (event) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return id.stage == IdState::Idle || id.stage == IdState::Bound;
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return id.stage == IdState::AddressResolved;
    default:
      return id.stage == IdState::RouteResolved;
  }
}

int refusal_of(const CmId& id) {
  return id.adapter->traits().carries_conn_param ? kConsumerReject : -ECONNREFUSED;
}

}  // namespace

std::optional<InjectedAnswer> next_answer(std::initializer_list<InjectedAnswer> possible,
                                          const void* caller) {
  std::optional<InjectedAnswer> chosen;
  for (const InjectedAnswer& a : possible) {
    const auto hit = Injector::get()->next(a.kind, {0, caller});
    if (hit && !chosen) chosen = InjectedAnswer{a.kind, a.event, hit->argument};
  }
  return chosen;
}

int give(CmId* id, const InjectedAnswer& answer) {
  const std::lock_guard guard(Process::get().cm);
  if (!may_be_answered(*id, answer.event)) return EINVAL;
  // An address or a route may be asked for again.
  if (id->stage == IdState::RouteResolved) id->stage = IdState::Ended;
  const int status = answer.status != 0 ? static_cast<int>(answer.status) : refusal_of(*id);
  id->tell(answer.event, status);
  return 0;
}

}  // namespace urnic::dropin
