// The public API of connections: connecting, requests and their answers, events, listeners.
#include <utility>

#include "device/connect_options.h"
#include "device/datagram_service.h"
#include "device/device_impl.h"
#include "device/mapping.h"
#include "device/service.h"
#include "device/wait_for.h"
#include "device/zones.h"

namespace urnic {
namespace device {

BindingImpl::~BindingImpl() {
  if (bound == nullptr) return;
  device->driver->own([&](Instant now) {
    bound->control->close(*bound, now);
    return 0;
  });
}

ListenerImpl::~ListenerImpl() {
  if (place == nullptr) return;
  device->driver->own([&](Instant now) {
    place->owner = nullptr;
    place->control->close(*place, now);
    return 0;
  });
  // Requests that were not fetched are refused; fetched ones belong to their holder.
  events->take_of(this);
}

RequestImpl::~RequestImpl() {
  if (device != nullptr && !answered.exchange(true)) refuse({});
}

void RequestImpl::refuse(ByteView private_data) const {
  device->driver->own([&](Instant now) {
    request.control->reject(request, private_data, now);
    return 0;
  });
}

// An event of the connection may be delivered before the call that starts it has returned, so the
// connection gets its number first.
template <class Call>
Result<void> begin(QpImpl& qp, Call&& call) {
  return qp.device->driver->own([&](Instant now) -> Result<void> {
    ++qp.connection.number;
    Result<void> begun = guarded([&] { return call(*qp.qp->control, now); });
    if (!begun) --qp.connection.number;
    return begun;
  });
}

// `qp` must have a descriptor to wait on.
Result<void> wait_until_settled(QpImpl& qp) {
  Driver& driver = *qp.device->driver;
  const auto look = [&]() -> std::optional<bool> {
    const std::lock_guard guard(qp.mutex);
    if (qp.attempt == QpImpl::Attempt::Established) return true;
    return qp.attempt == QpImpl::Attempt::Failed ? std::optional(false) : std::nullopt;
  };
  const bool established = wait_for(driver, -1, look, [&](Duration most, bool driven) {
    if (driven) driver.hand_over();
    qp.settled->wait(most);
    qp.settled->clear();
  });
  if (established) return {};
  if (driver.inherited()) return inherited_error();
  const std::lock_guard guard(qp.mutex);
  return qp.error;
}

}  // namespace device

Result<void> QueuePair::connect_start(std::string_view address, const ConnectionOptions& options) {
  return device::guarded([&]() -> Result<void> {
    if (!impl_) return device::empty_handle("queue pair");
    const auto to = device::parse_place(*impl_->device, address);
    if (!to) {
      return Error{Errc::invalid_argument,
                   "invalid address and port: '" + std::string(address) +
                       "' (for example 10.77.0.1:18515 or [fd77::1]:18515)"};
    }
    if (impl_->device->driver->inherited()) return device::inherited_error();
    if (auto no = device::not_to_connect(*impl_)) return *no;
    const device::BindingImpl* from = options.source ? options.source->impl_.get() : nullptr;
    auto params = device::params_to_connect(options, *impl_->device, *impl_->qp->control, from);
    if (!params) return params.error();
    if (from == nullptr) {
      auto on_link = device::source_by_zone(*impl_->device, address);
      if (!on_link) return on_link.error();
      params->source_ip = *on_link;
    }
    {
      const std::lock_guard guard(impl_->mutex);
      impl_->attempt = device::QpImpl::Attempt::Pending;
      impl_->connection.peer = to->to_string();
    }
    return device::begin(*impl_, [&](verbs::ControlPath& control, Instant now) {
      return control.connect(*impl_->qp, *to, *params, now);
    });
  });
}

Result<void> QueuePair::connect(std::string_view address, const ConnectionOptions& options) {
  auto waits = device::guarded([&]() -> Result<void> {
    if (!impl_) return device::empty_handle("queue pair");
    auto fd = std::make_unique<device::EventFd>();
    if (fd->get() < 0) return device::no_descriptor("the connection");
    const std::lock_guard guard(impl_->mutex);
    if (impl_->settled != nullptr) {
      return Error{Errc::wrong_state, "another thread is already connecting this queue pair"};
    }
    impl_->settled = std::move(fd);
    return {};
  });
  if (!waits) return waits;
  auto started = connect_start(address, options);
  if (started) started = device::guarded([&] { return device::wait_until_settled(*impl_); });
  const std::lock_guard guard(impl_->mutex);
  impl_->settled.reset();
  return started;
}

namespace {

// Redirects the events of `object`: under ownership, so that none arrives meanwhile.
Result<void> move_events(auto& object, const std::shared_ptr<device::EventQueueImpl>& to,
                         void* context) {
  if (object.device->driver->inherited()) return device::inherited_error();
  if (to == nullptr || to->device != object.device) {
    return Error{Errc::invalid_argument, "the event queue is empty or belongs to another device"};
  }
  std::shared_ptr<device::EventQueueImpl> from;  // destroyed after the ownership is released
  object.device->driver->own([&](Instant) {
    from = std::exchange(object.events, to);
    object.context = context;
    if (from == nullptr) return 0;
    auto events = from->take_of(&object);
    for (auto& entry : events) entry.event.context = context;
    to->put(std::move(events));
    return 0;
  });
  return {};
}

}  // namespace

Result<void> QueuePair::deliver_events(const EventQueue& events, void* context) {
  return device::guarded([&]() -> Result<void> {
    if (!impl_) return device::empty_handle("queue pair");
    return move_events(*impl_, events.impl_, context);
  });
}

Result<void> Listener::deliver_events(const EventQueue& events, void* context) {
  return device::guarded([&]() -> Result<void> {
    if (!impl_) return device::empty_handle("listener");
    return move_events(*impl_, events.impl_, context);
  });
}

std::string QueuePair::peer_private_data() const {
  if (!impl_ || impl_->device->driver->inherited()) return {};
  return device::or_nothing([&] {
    const std::lock_guard guard(impl_->mutex);
    return impl_->private_data;
  });
}

void QueuePair::disconnect() {
  if (!impl_) return;
  impl_->device->driver->own([&](Instant now) {
    impl_->qp->control->disconnect(*impl_->qp, now);
    return 0;
  });
}

void QueuePair::abort() {
  if (!impl_) return;
  impl_->device->driver->own([&](Instant now) {
    impl_->qp->control->abort(*impl_->qp, now);
    return 0;
  });
}

ConnectionStats QueuePair::stats() const {
  if (!impl_) return {};
  return impl_->device->driver->own(
      [&](Instant) { return impl_->qp->control->stats_of(*impl_->qp); });
}

std::uint16_t QueuePair::ird() const {
  if (!impl_) return 0;
  return impl_->device->driver->own(
      [&](Instant) { return impl_->qp->control->depths(*impl_->qp).ird; });
}

std::uint16_t QueuePair::ord() const {
  if (!impl_) return 0;
  return impl_->device->driver->own(
      [&](Instant) { return impl_->qp->control->depths(*impl_->qp).ord; });
}

// ---- requests, events, listeners

std::string ConnectRequest::peer() const {
  if (!impl_) return {};
  return device::or_nothing([&] { return impl_->request.peer.to_string(); });
}
std::string ConnectRequest::local() const {
  if (!impl_) return {};
  return device::or_nothing([&] { return impl_->request.local.to_string(); });
}
std::span<const std::uint8_t> ConnectRequest::private_data() const {
  if (!impl_) return {};
  return impl_->request.private_data;
}
std::uint16_t ConnectRequest::ird() const {
  return impl_ ? impl_->request.ird : 0;
}
std::uint16_t ConnectRequest::ord() const {
  return impl_ ? impl_->request.ord : 0;
}
std::uint8_t ConnectRequest::retry_count() const {
  return roce_peer().retry_count;
}
std::uint8_t ConnectRequest::rnr_retry() const {
  return roce_peer().rnr_retry;
}
RocePeer ConnectRequest::roce_peer() const {
  return impl_ ? impl_->request.roce_peer : RocePeer{};
}
Service ConnectRequest::service() const {
  return impl_ ? device::to_public(impl_->request.service) : Service::rc;
}

Result<void> ConnectRequest::accept(QueuePair& qp, const ConnectionOptions& options) {
  return device::guarded([&]() -> Result<void> {
    if (!impl_) return device::empty_handle("connection request");
    if (!qp) return device::empty_handle("queue pair");
    if (qp.impl_->device != impl_->device) {
      return Error{Errc::invalid_argument, "the queue pair belongs to another device"};
    }
    const verbs::ConnectionRequest& request = impl_->request;
    verbs::ControlPath& control = *qp.impl_->qp->control;
    if (request.service == verbs::Service::Ud) {
      return device::serve_datagrams(*impl_, *qp.impl_, options);
    }
    if (request.control != &control) {
      return Error{Errc::invalid_argument,
                   std::string("the request is for another transport: accept it with a queue pair "
                               "of ") +
                       request.control->name() + " (QpOptions::transport)"};
    }
    if (impl_->device->driver->inherited()) return device::inherited_error();
    if (auto no = device::not_to_accept(*qp.impl_, service())) return *no;
    auto params = device::params_to_accept(options, control);
    if (!params) return params.error();
    if (impl_->answered.exchange(true)) {
      return Error{Errc::wrong_state, "the connection request is already accepted or rejected"};
    }
    auto accepted = device::guarded([&]() -> Result<void> {
      {
        const std::lock_guard guard(qp.impl_->mutex);
        qp.impl_->attempt = device::QpImpl::Attempt::Pending;
        qp.impl_->connection.peer = peer();
      }
      return device::begin(*qp.impl_, [&](verbs::ControlPath&, Instant now) {
        return control.accept(request, *qp.impl_->qp, *params, now);
      });
    });
    if (accepted) return accepted;
    // After no_memory the peer gets a refusal; after the other two errors the request can be
    // answered again. `closed`: the connection has ended meanwhile, nothing to do.
    const Errc why = accepted.error().code;
    if (why == Errc::no_memory) impl_->refuse({});
    if (why == Errc::invalid_argument || why == Errc::wrong_state) impl_->answered = false;
    return accepted;
  });
}

void ConnectRequest::reject(std::span<const std::uint8_t> private_data) {
  if (impl_ && !impl_->answered.exchange(true)) impl_->refuse(private_data);
}

bool EventQueue::poll(Event* out) {
  if (!impl_ || impl_->device->driver->inherited()) return false;
  if (impl_->pop(out)) return true;
  impl_->device->driver->app_poll();
  return impl_->pop(out);
}

bool EventQueue::wait(Event* out, int timeout_ms) {
  if (!impl_) return false;
  device::Driver& driver = *impl_->device->driver;
  const auto look = [&]() -> std::optional<bool> {
    if (impl_->pop(out)) return true;
    if (impl_->take_wake()) return false;
    return std::nullopt;
  };
  return device::wait_for(driver, timeout_ms, look, [&](Duration most, bool driven) {
    if (driven) driver.hand_over();
    impl_->fd.wait(most);
  });
}

void EventQueue::wake() {
  if (impl_ && !impl_->device->driver->inherited()) impl_->wake();
}

int EventQueue::fd() const {
  return impl_ ? impl_->fd.get() : -1;
}

Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;
std::uint16_t Listener::port() const {
  return impl_ ? impl_->port : 0;
}

Result<ConnectRequest> Listener::next(int timeout_ms) {
  return device::guarded([&]() -> Result<ConnectRequest> {
    if (!impl_) return device::empty_handle("listener");
    Event e;
    EventQueue queue(impl_->events);
    if (!queue.wait(&e, timeout_ms)) {
      if (impl_->device->driver->inherited()) return device::inherited_error();
      return Error{Errc::timed_out, "timed out: no connection request arrived"};
    }
    return std::move(e.request);
  });
}

}  // namespace urnic
