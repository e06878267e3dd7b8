// The public API for resolving UD queue pairs, and for answering such requests.
#include "device/datagram_service.h"

#include <utility>

#include "device/zones.h"
#include "roce/context.h"

namespace urnic {
namespace device {

ResolutionImpl::~ResolutionImpl() {
  device->driver->own([&](Instant now) {
    device->engine->roce_control().connections().resolver().give_up(id, now);
    return 0;
  });
  events->take_of(this);
}

Result<void> serve_datagrams(RequestImpl& request, QpImpl& qp, const ConnectionOptions& options) {
  if (qp.qp->state.service() != verbs::Service::Ud) {
    return Error{Errc::invalid_argument,
                 "the request is for datagrams: accept it with a UD queue pair"};
  }
  if (request.device->driver->inherited()) return device::inherited_error();
  if (request.answered.exchange(true)) {
    return Error{Errc::wrong_state, "the request is already accepted or rejected"};
  }
  auto served = request.device->driver->own([&](Instant now) -> Result<void> {
    const auto handle = static_cast<ib_cm::Handle>(request.request.id);
    const std::uint32_t qkey = options.roce.qkey.value_or(roce::context_of(*qp.qp).attributes.qkey);
    auto& questions = request.device->engine->roce_control().connections().resolver();
    return questions.serve(handle, *qp.qp, qkey, options.private_data, now);
  });
  // The peer still waits for an answer; the program may send another one.
  if (!served && served.error().code != Errc::closed) request.answered = false;
  return served;
}

Result<void> serve_number(RequestImpl& request, std::uint32_t number, std::uint32_t qkey,
                          std::span<const std::uint8_t> data) {
  if (request.request.service != verbs::Service::Ud || number > 0xffffff) {
    return Error{Errc::invalid_argument, "the request is not for datagrams, or the QP number " +
                                             std::to_string(number) + " exceeds 24 bits"};
  }
  if (request.device->driver->inherited()) return device::inherited_error();
  if (request.answered.exchange(true)) {
    return Error{Errc::wrong_state, "the request is already accepted or rejected"};
  }
  auto served = request.device->driver->own([&](Instant now) -> Result<void> {
    const auto handle = static_cast<ib_cm::Handle>(request.request.id);
    auto& questions = request.device->engine->roce_control().connections().resolver();
    return questions.serve(handle, number, qkey, data, now);
  });
  if (!served && served.error().code != Errc::closed) request.answered = false;
  return served;
}

namespace {

Result<roce::SidrQuery> to_ask(const DeviceImpl& device, const BindingImpl* from,
                               const ResolveOptions& o) {
  if (o.refusal_retry_ms < 0 || o.refusal_retry_ms > 100) {
    return Error{Errc::invalid_argument, "refusal_retry_ms: must be between 0 and 100"};
  }
  roce::SidrQuery ask;
  if (o.source != nullptr) {
    if (from == nullptr || from->device.get() != &device || from->bound == nullptr ||
        from->bound->service != verbs::Service::Ud) {
      return Error{
          Errc::invalid_argument,
          "source: the binding is empty, listening, of another device or not for datagrams "
          "(BindOptions::service)"};
    }
    ask.source = from->bound->local;
  }
  ask.private_data = o.private_data;
  ask.timeout =
      o.timeout_ms > 0 ? Duration::ms(o.timeout_ms) : device.engine->options().startup_timeout;
  ask.refusal_retry = Duration::ms(o.refusal_retry_ms);
  return ask;
}

Result<std::shared_ptr<ResolutionImpl>> begin(const std::shared_ptr<DeviceImpl>& device,
                                              std::string_view address,
                                              const std::shared_ptr<EventQueueImpl>& events,
                                              void* context, const BindingImpl* from,
                                              const ResolveOptions& options) {
  if (!device->engine->options().speaks_roce) {
    return Error{Errc::unsupported, "datagrams need RoCE: set transport = roce or both"};
  }
  const auto to = parse_place(*device, address);
  if (!to) {
    return Error{Errc::invalid_argument, "invalid address and port: '" + std::string(address) +
                                             "' (for example 10.77.0.1:18515 or [fd77::1]:18515)"};
  }
  auto ask = to_ask(*device, from, options);
  if (!ask) return ask.error();
  if (from == nullptr) {
    auto on_link = source_by_zone(*device, address);
    if (!on_link) return on_link.error();
    if (*on_link) ask->source.at.ip = **on_link;
  }
  auto made = std::make_shared<ResolutionImpl>();
  made->device = device;
  made->events = events;
  made->context = context;
  auto asked = device->driver->own([&](Instant now) -> Result<roce::SidrResolver::Asked> {
    auto& questions = device->engine->roce_control().connections().resolver();
    auto r = questions.ask(made.get(), *to, *ask, now);
    if (r) {  // set before an event can be delivered
      made->id = r->id;
      made->local = r->from;
    }
    return r;
  });
  if (!asked) return asked.error();
  return made;
}

}  // namespace
}  // namespace device

Resolution& Resolution::operator=(Resolution&&) noexcept = default;
Resolution::~Resolution() = default;
std::string Resolution::local() const {
  return device::or_nothing([&] { return impl_ ? impl_->local.to_string() : std::string(); });
}

Result<void> ConnectRequest::accept_datagrams(std::uint32_t number, std::uint32_t qkey,
                                              std::span<const std::uint8_t> private_data) {
  return device::guarded([&]() -> Result<void> {
    if (!impl_) return device::empty_handle("connection request");
    return device::serve_number(*impl_, number, qkey, private_data);
  });
}

Result<Resolution> Device::resolve_start(std::string_view address, const EventQueue& events,
                                         void* context, const ResolveOptions& options) {
  return device::guarded([&]() -> Result<Resolution> {
    if (auto no = device::unusable(impl_)) return *no;
    if (!events || events.impl_->device != impl_) {
      return Error{Errc::invalid_argument, "the event queue is empty or belongs to another device"};
    }
    const device::BindingImpl* from = options.source ? options.source->impl_.get() : nullptr;
    auto made = device::begin(impl_, address, events.impl_, context, from, options);
    if (!made) return made.error();
    return Resolution(std::move(*made));
  });
}

Result<DatagramPeer> Device::resolve(std::string_view address, const ResolveOptions& options) {
  return device::guarded([&]() -> Result<DatagramPeer> {
    auto queue = create_event_queue();
    if (!queue) return queue.error();
    auto asked = resolve_start(address, *queue, nullptr, options);
    if (!asked) return asked.error();
    Event e;
    while (!queue->wait(&e, -1)) {
      if (impl_->driver->inherited()) return device::inherited_error();
    }
    if (e.kind != EventKind::resolved) return e.error;
    e.peer.private_data = std::move(e.private_data);
    return std::move(e.peer);
  });
}

}  // namespace urnic
