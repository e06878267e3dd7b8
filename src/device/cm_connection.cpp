// The public API of connections whose queue pairs the program moves itself.
#include <utility>

#include "device/connect_options.h"
#include "device/zones.h"
#include "roce/attributes.h"

namespace urnic {
namespace device {

CmConnectionImpl::~CmConnectionImpl() {
  if (id == 0) return;
  device->driver->own([&](Instant now) {
    device->engine->roce_control().connections().cm_connections().forget(id, now);
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

// Runs `call` on the engine; the connection has its id before any event of it can be delivered.
template <class Call>
Result<void> begin(CmConnectionImpl& c, Call&& call) {
  return c.device->driver->own([&](Instant now) -> Result<void> {
    auto id = call(c.device->engine->roce_control().connections().cm_connections(), now);
    if (!id) return id.error();
    c.id = *id;
    return {};
  });
}

template <class Call>
Result<void> ask(const std::shared_ptr<CmConnectionImpl>& c, Call&& call) {
  return guarded([&]() -> Result<void> {
    if (c == nullptr) return empty_handle("connection");
    if (c->device->driver->inherited()) return device::inherited_error();
    return c->device->driver->own([&](Instant now) -> Result<void> {
      return call(c->device->engine->roce_control().connections().cm_connections(), c->id, now);
    });
  });
}

}  // namespace
}  // namespace device

CmConnection& CmConnection::operator=(CmConnection&&) noexcept = default;
CmConnection::~CmConnection() = default;

Result<QpAttributes> CmConnection::attributes() const {
  return device::guarded([&]() -> Result<QpAttributes> {
    if (!impl_) return device::empty_handle("connection");
    if (impl_->device->driver->inherited()) return device::inherited_error();
    bool known = false;
    const auto terms = impl_->device->driver->own([&](Instant) {
      return impl_->device->engine->roce_control().connections().cm_connections().terms(impl_->id,
                                                                                        &known);
    });
    if (!terms) return Error{Errc::closed, "the connection has ended"};
    return roce::attributes_of(*terms, known);
  });
}

Result<void> CmConnection::confirm() {
  return device::ask(impl_, [](auto& all, auto id, Instant now) { return all.confirm(id, now); });
}

Result<void> CmConnection::reject(std::span<const std::uint8_t> private_data) {
  return device::ask(
      impl_, [&](auto& all, auto id, Instant now) { return all.reject(id, private_data, now); });
}

Result<void> CmConnection::notice_request() {
  return device::ask(impl_,
                     [](auto& all, auto id, Instant now) { return all.established(id, now); });
}

void CmConnection::disconnect() {
  (void)device::ask(impl_, [](auto& all, auto id, Instant now) -> Result<void> {
    all.disconnect(id, now);
    return {};
  });
}

Result<CmConnection> Device::cm_connect_start(std::string_view address, const CmQueuePair& qp,
                                              const EventQueue& events, void* context,
                                              const ConnectionOptions& options) {
  return device::guarded([&]() -> Result<CmConnection> {
    if (auto no = device::unusable(impl_)) return *no;
    if (!impl_->engine->options().speaks_roce) {
      return Error{Errc::unsupported,
                   "connections without a queue pair need RoCE: set transport = roce or both"};
    }
    const auto to = device::parse_place(*impl_, address);
    if (!to) {
      return Error{Errc::invalid_argument,
                   "invalid address and port: '" + std::string(address) +
                       "' (for example 10.77.0.1:18515 or [fd77::1]:18515)"};
    }
    const device::BindingImpl* from = options.source ? options.source->impl_.get() : nullptr;
    roce::ControlPath& control = impl_->engine->roce_control();
    auto params = device::params_to_connect(options, *impl_, control, from);
    if (!params) return params.error();
    if (from == nullptr) {
      auto on_link = device::source_by_zone(*impl_, address);
      if (!on_link) return on_link.error();
      params->source_ip = *on_link;
    }
    auto made = device::make(impl_, events.impl_, context, to->to_string());
    if (!made) return made.error();
    auto begun = device::begin(**made, [&](roce::CmConnections& all, Instant now) {
      return all.connect(made->get(), *to, {qp.number, qp.srq}, control.params_of(*params), now);
    });
    if (!begun) return begun.error();
    return CmConnection(std::move(*made));
  });
}

QpAttributes ConnectRequest::attributes() const {
  if (!impl_ || impl_->request.service != verbs::Service::Rc) return {};
  return device::or_nothing([&] { return impl_->request.attributes; });
}

Result<CmConnection> ConnectRequest::accept_number(const CmQueuePair& qp, const EventQueue& events,
                                                   void* context,
                                                   const ConnectionOptions& options) {
  return device::guarded([&]() -> Result<CmConnection> {
    if (!impl_) return device::empty_handle("connection request");
    const verbs::ConnectionRequest& request = impl_->request;
    roce::ControlPath& control = impl_->device->engine->roce_control();
    if (request.control != &control || request.service != verbs::Service::Rc) {
      return Error{Errc::invalid_argument, "the request is not for an RC connection over RoCE"};
    }
    if (impl_->device->driver->inherited()) return device::inherited_error();
    auto params = device::params_to_accept(options, control);
    if (!params) return params.error();
    auto made = device::make(impl_->device, events.impl_, context, peer());
    if (!made) return made.error();
    if (impl_->answered.exchange(true)) {
      return Error{Errc::wrong_state, "the connection request is already accepted or rejected"};
    }
    auto begun = device::guarded([&]() -> Result<void> {
      return device::begin(**made, [&](roce::CmConnections& all, Instant now) {
        roce::ConnectParams chosen = control.params_of(*params);
        chosen.psn = request.attributes.rq_psn;
        const auto handle = static_cast<ib_cm::Handle>(request.id);
        return all.accept(made->get(), handle, {qp.number, qp.srq}, chosen, now);
      });
    });
    if (!begun) {
      // After no_memory the peer gets a refusal; after invalid_argument the request can be answered
      // again.
      if (begun.error().code == Errc::no_memory) impl_->refuse({});
      if (begun.error().code == Errc::invalid_argument) impl_->answered = false;
      return begun.error();
    }
    return CmConnection(std::move(*made));
  });
}

}  // namespace urnic
