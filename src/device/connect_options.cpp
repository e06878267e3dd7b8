#include "device/connect_options.h"

#include <algorithm>

namespace urnic::device {
namespace {

Result<void> check_ranges(const ConnectionOptions& o) {
  if (o.refusal_retry_ms < 0 || o.refusal_retry_ms > 100) {
    return Error{Errc::invalid_argument, "refusal_retry_ms: must be between 0 and 100"};
  }
  if (o.iwarp.close_wait_ms < 0 || o.iwarp.close_wait_ms > 60'000) {
    return Error{Errc::invalid_argument, "close_wait_ms: must be between 0 and 60000"};
  }
  constexpr std::uint8_t kMostRetries = 7;  // a 3-bit field of the messages
  if (o.roce.retry_count.value_or(0) > kMostRetries ||
      o.roce.rnr_retry.value_or(0) > kMostRetries) {
    return Error{Errc::invalid_argument, "retry_count, rnr_retry: must be between 0 and 7"};
  }
  constexpr std::uint8_t kLastTimeout = 31;  // a 5-bit field of the messages
  if (o.roce.ack_timeout.value_or(0) > kLastTimeout ||
      o.roce.min_rnr_timer.value_or(0) > kLastTimeout) {
    return Error{Errc::invalid_argument, "ack_timeout, min_rnr_timer: must be between 0 and 31"};
  }
  return {};
}

}  // namespace

Result<verbs::ConnectParams> params_to_accept(const ConnectionOptions& o,
                                              const verbs::ControlPath& control) {
  if (auto ok = check_ranges(o); !ok) return ok.error();
  verbs::ConnectParams p;
  p.ird = o.ird;
  p.ord = o.ord;
  p.private_data = o.private_data;
  p.timeout = Duration::ms(std::max(o.timeout_ms, 0));
  p.refusal_retry = Duration::ms(o.refusal_retry_ms);
  p.iwarp = o.iwarp;
  p.roce = o.roce;
  if (auto ok = control.check(p); !ok) return ok.error();
  return p;
}

Result<verbs::ConnectParams> params_to_connect(const ConnectionOptions& o, const DeviceImpl& device,
                                               const verbs::ControlPath& control,
                                               const BindingImpl* from) {
  auto p = params_to_accept(o, control);
  if (!p || o.source == nullptr) return p;
  if (from == nullptr || from->device.get() != &device || from->bound == nullptr ||
      from->bound->control != &control || from->bound->service == verbs::Service::Ud) {
    return Error{Errc::invalid_argument,
                 "source: the binding is empty, listening or of another device or transport"};
  }
  p->source = from->bound;
  return p;
}

}  // namespace urnic::device
