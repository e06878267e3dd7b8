// Events of rdma_cm that `urnic run --verbs-faults` puts in the place of an answer: the address or
// the route is not found, the peer cannot be reached, or it rejects.
#pragma once

#include <initializer_list>
#include <optional>

#include "dropin/cm_id.h"
#include "dropin/injector.h"

namespace urnic::dropin {

struct InjectedAnswer {
  VerbsKind kind;
  rdma_cm_event_type event;
  std::int64_t status = 0;  // 0: as the id's transport reports it
};

inline constexpr std::initializer_list<InjectedAnswer> kAddressAnswers = {
    {VerbsKind::addr_error, RDMA_CM_EVENT_ADDR_ERROR}};
inline constexpr std::initializer_list<InjectedAnswer> kRouteAnswers = {
    {VerbsKind::route_error, RDMA_CM_EVENT_ROUTE_ERROR}};
inline constexpr std::initializer_list<InjectedAnswer> kConnectAnswers = {
    {VerbsKind::connect_error, RDMA_CM_EVENT_CONNECT_ERROR},
    {VerbsKind::unreachable, RDMA_CM_EVENT_UNREACHABLE},
    {VerbsKind::rejected, RDMA_CM_EVENT_REJECTED}};

std::optional<InjectedAnswer> next_answer(std::initializer_list<InjectedAnswer> possible,
                                          const void* caller);
// The answer that the exported function in which it stands must give; none without a fault.
[[gnu::always_inline]] inline std::optional<InjectedAnswer> injected_answer(
    std::initializer_list<InjectedAnswer> possible) {
  if (Injector::get() == nullptr) [[likely]]
    return std::nullopt;
  return next_answer(possible, __builtin_return_address(0));
}

// Reports the answer as an event of the id. Returns 0, or EINVAL if the program may not make the
// call in this state of the id. Call without Process::cm.
int give(CmId* id, const InjectedAnswer& answer);

}  // namespace urnic::dropin
