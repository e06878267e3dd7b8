// Connections whose queue pairs the program moves itself, as the public API has them.
#include "device/cm_connection.h"

#include <utility>

#include "device/modify.h"
#include "device/zones.h"

namespace urnic {
namespace detail {

engine::RoceConnect roce_params_of(const engine::Engine& engine, const ConnectionOptions& o) {
  engine::RoceConnect p;
  p.ird = o.ird.value_or(engine.options().mpa.ird);
  p.ord = o.ord.value_or(engine.options().mpa.ord);
  p.retry_count = o.roce.retry_count.value_or(p.retry_count);
  p.rnr_retry = o.roce.rnr_retry.value_or(p.rnr_retry);
  p.ack_timeout = o.roce.ack_timeout;
  p.min_rnr_timer = o.roce.min_rnr_timer.value_or(p.min_rnr_timer);
  p.traffic_class = o.roce.traffic_class;
  p.flow_control = o.roce.flow_control;
  p.private_data = o.private_data;
  p.timeout = o.timeout_ms > 0 ? Duration::ms(o.timeout_ms) : engine.options().startup_timeout;
  p.refusal_retry = Duration::ms(o.refusal_retry_ms);
  return p;
}

// What both transports ask of them.
std::optional<Error> check_common(const ConnectionOptions& o) {
  if (o.refusal_retry_ms < 0 || o.refusal_retry_ms > 100) {
    return Error{Errc::invalid_argument, "refusal_retry_ms: must be between 0 and 100"};
  }
  if (o.iwarp.close_wait_ms < 0 || o.iwarp.close_wait_ms > 60'000) {
    return Error{Errc::invalid_argument, "close_wait_ms: must be between 0 and 60000"};
  }
  constexpr std::uint8_t kMostRetries = 7;  // three bits of its messages
  if (o.roce.retry_count.value_or(0) > kMostRetries ||
      o.roce.rnr_retry.value_or(0) > kMostRetries) {
    return Error{Errc::invalid_argument, "retry_count, rnr_retry: must be between 0 and 7"};
  }
  constexpr std::uint8_t kLastTimeout = 31;  // five bits of its messages
  if (o.roce.ack_timeout.value_or(0) > kLastTimeout ||
      o.roce.min_rnr_timer.value_or(0) > kLastTimeout) {
    return Error{Errc::invalid_argument, "ack_timeout, min_rnr_timer: must be between 0 and 31"};
  }
  return std::nullopt;
}

CmConnectionImpl::~CmConnectionImpl() {
  if (id == 0) return;
  device->driver->own([&](Instant now) {
    device->engine->roce().connections().agreements().forget(id, now);
    return 0;
  });
  events->take_of(this);
}

namespace {

Result<std::shared_ptr<CmConnectionImpl>> make(const std::shared_ptr<DeviceImpl>& device,
                                               const std::shared_ptr<EventQueueImpl>& events,
                                               void* context, std::string peer) {
  if (events == nullptr || events->device != device) {
    return Error{Errc::invalid_argument, "the event queue is empty or belongs to another device"};
  }
  auto made = std::make_shared<CmConnectionImpl>();
  made->device = device;
  made->events = events;
  made->context = context;
  made->peer = std::move(peer);
  return made;
}

// `call` of the engine, which names the connection before anything of it can be told.
template <class Call>
Result<void> begin(CmConnectionImpl& c, Call&& call) {
  return c.device->driver->own([&](Instant now) -> Result<void> {
    auto id = call(c.device->engine->roce().connections().agreements(), now);
    if (!id) return id.error();
    c.id = *id;
    return {};
  });
}

template <class Call>
Result<void> ask(const std::shared_ptr<CmConnectionImpl>& c, Call&& call) {
  return guarded([&]() -> Result<void> {
    if (c == nullptr) return empty_handle("connection");
    if (c->device->driver->inherited()) return engine::inherited_error();
    return c->device->driver->own([&](Instant now) -> Result<void> {
      return call(c->device->engine->roce().connections().agreements(), c->id, now);
    });
  });
}

Result<engine::RoceConnect> params_to_connect(const std::shared_ptr<DeviceImpl>& device,
                                              const BindingImpl* from, const ConnectionOptions& o) {
  if (auto bad = check_common(o)) return *bad;
  engine::RoceConnect params = roce_params_of(*device->engine, o);
  if (o.source == nullptr) return params;
  if (from == nullptr || from->device != device || !from->bound.is_roce() ||
      from->bound.is_for_datagrams()) {
    return Error{Errc::invalid_argument,
                 "source: the binding is empty, listening or of another device or transport"};
  }
  params.source = from->bound.roce->local;
  return params;
}

}  // namespace
}  // namespace detail

CmConnection& CmConnection::operator=(CmConnection&&) noexcept = default;
CmConnection::~CmConnection() = default;

Result<QpAttributes> CmConnection::attributes() const {
  return detail::guarded([&]() -> Result<QpAttributes> {
    if (!impl_) return detail::empty_handle("connection");
    if (impl_->device->driver->inherited()) return engine::inherited_error();
    bool known = false;
    const auto terms = impl_->device->driver->own([&](Instant) {
      return impl_->device->engine->roce().connections().agreements().terms(impl_->id, &known);
    });
    if (!terms) return Error{Errc::closed, "the connection has ended"};
    return detail::attributes_of(*terms, known);
  });
}

Result<void> CmConnection::confirm() {
  return detail::ask(impl_, [](auto& all, auto id, Instant now) { return all.confirm(id, now); });
}

Result<void> CmConnection::reject(std::span<const std::uint8_t> private_data) {
  return detail::ask(
      impl_, [&](auto& all, auto id, Instant now) { return all.reject(id, private_data, now); });
}

Result<void> CmConnection::notice_request() {
  return detail::ask(impl_,
                     [](auto& all, auto id, Instant now) { return all.established(id, now); });
}

void CmConnection::disconnect() {
  (void)detail::ask(impl_, [](auto& all, auto id, Instant now) -> Result<void> {
    all.disconnect(id, now);
    return {};
  });
}

Result<CmConnection> Device::cm_connect_start(std::string_view address, const CmQueuePair& qp,
                                              const EventQueue& events, void* context,
                                              const ConnectionOptions& options) {
  return detail::guarded([&]() -> Result<CmConnection> {
    if (auto no = detail::unusable(impl_)) return *no;
    if (!impl_->engine->options().speaks_roce) {
      return Error{Errc::unsupported,
                   "connections without a queue pair need RoCE: set transport = roce or both"};
    }
    const auto to = detail::parse_place(*impl_, address);
    if (!to) {
      return Error{Errc::invalid_argument,
                   "invalid address and port: '" + std::string(address) +
                       "' (for example 10.77.0.1:18515 or [fd77::1]:18515)"};
    }
    const detail::BindingImpl* from = options.source ? options.source->impl_.get() : nullptr;
    auto params = detail::params_to_connect(impl_, from, options);
    if (!params) return params.error();
    if (from == nullptr) {
      auto on_link = detail::source_by_zone(*impl_, address);
      if (!on_link) return on_link.error();
      if (*on_link) params->source.at.ip = **on_link;
    }
    auto made = detail::make(impl_, events.impl_, context, to->to_string());
    if (!made) return made.error();
    auto begun = detail::begin(**made, [&](engine::RoceAgreements& all, Instant now) {
      return all.connect(made->get(), *to, {qp.number, qp.srq}, *params, now);
    });
    if (!begun) return begun.error();
    return CmConnection(std::move(*made));
  });
}

QpAttributes ConnectRequest::attributes() const {
  if (!impl_ || !impl_->roce || impl_->service != Service::rc) return {};
  return detail::or_nothing([&] { return detail::attributes_of(impl_->terms, true); });
}

Result<CmConnection> ConnectRequest::accept_number(const CmQueuePair& qp, const EventQueue& events,
                                                   void* context,
                                                   const ConnectionOptions& options) {
  return detail::guarded([&]() -> Result<CmConnection> {
    if (!impl_) return detail::empty_handle("connection request");
    if (!impl_->roce || impl_->service != Service::rc) {
      return Error{Errc::invalid_argument, "the request is not for an RC connection over RoCE"};
    }
    if (impl_->device->driver->inherited()) return engine::inherited_error();
    if (auto bad = detail::check_common(options)) return *bad;
    auto made = detail::make(impl_->device, events.impl_, context, peer());
    if (!made) return made.error();
    if (impl_->answered.exchange(true)) {
      return Error{Errc::wrong_state, "the connection request is already accepted or rejected"};
    }
    auto begun = detail::guarded([&]() -> Result<void> {
      return detail::begin(**made, [&](engine::RoceAgreements& all, Instant now) {
        engine::RoceConnect params = detail::roce_params_of(*impl_->device->engine, options);
        params.psn = impl_->terms.psn;
        const auto handle = static_cast<ib_cm::Handle>(impl_->connection);
        return all.accept(made->get(), handle, {qp.number, qp.srq}, params, now);
      });
    });
    if (!begun) {
      // The peer is not left waiting, or the request can be answered otherwise.
      if (begun.error().code == Errc::no_memory) impl_->refuse({});
      if (begun.error().code == Errc::invalid_argument) impl_->answered = false;
      return begun.error();
    }
    return CmConnection(std::move(*made));
  });
}

}  // namespace urnic
