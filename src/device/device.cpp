// The public device: opens the port, owns engine and driver, and carries events to the consumer.
#include <unistd.h>

#include <algorithm>

#include "base/fused.h"
#include "device/device_impl.h"
#include "device/port_stack.h"
#include "device/stream_port.h"

namespace urnic {
namespace detail {

void EventQueueImpl::push(Event e) {
  const std::lock_guard guard(mutex);
  events.push_back(std::move(e));
  fd.signal();
}

bool EventQueueImpl::pop(Event* out) {
  const std::lock_guard guard(mutex);
  if (events.empty()) return false;
  *out = std::move(events.front());
  events.pop_front();
  if (events.empty()) fd.clear();
  return true;
}

DeviceImpl::DeviceImpl(const Config& c, std::string spec, port::Port p,
                       std::shared_ptr<engine::StreamTransport> stream)
    : config(c), port_spec(std::move(spec)), port(std::move(p)), opened(engine::monotonic_now()) {
  const std::string kind = port_spec.substr(0, port_spec.find(':'));
  engine = std::make_unique<engine::Engine>(engine::options_from(config, kind), &port, 0, this,
                                            std::move(stream));
  engine::DriverOptions d;
  const std::string progress = config.get("progress");
  d.progress = progress == "poll"     ? engine::Progress::Poll
               : progress == "thread" ? engine::Progress::Thread
                                      : engine::Progress::Auto;
  d.spin = Duration::us(config.get_int("spin_us"));
  driver = std::make_unique<engine::Driver>(d, engine.get(), &port, 0);
  if (config.get_bool("stat")) {
    stat_server = std::make_unique<engine::StatServer>([this] { return stats(); });
    if (stat_server->fd() >= 0) {
      driver->watch(stat_server->fd(), [this] { stat_server->serve(); });
    }
  }
}

DeviceImpl::~DeviceImpl() {
  if (driver->inherited()) {  // the engine may be in any state; ports know what a fork is
    [[maybe_unused]] const auto* left_alone = engine.release();
    return;
  }
  driver.reset();  // stops the thread first
  engine.reset();
}

void DeviceImpl::on_completion(verbs::CompletionQueue* cq) {
  static_cast<CqImpl*>(cq)->fd.signal();
}

void DeviceImpl::on_shared_limit(ddp::SharedReceiveQueue* queue) {
  auto* srq = static_cast<SrqImpl*>(queue->owner);
  if (srq == nullptr || !srq->events) return;
  Event event;
  event.kind = EventKind::receive_limit;
  event.context = srq->context;
  srq->events->push(std::move(event));
}

void DeviceImpl::on_cm_event(engine::CmEvent e) {
  using Kind = engine::CmEvent::Kind;
  if (e.kind == Kind::ConnectRequest) {
    auto* listener = static_cast<ListenerImpl*>(e.listener->owner);
    if (listener == nullptr) return;
    auto request = std::make_shared<RequestImpl>();
    request->device = shared_from_this();
    request->connection = e.connection;
    engine->request_info(e.connection, &request->info);
    Event event;
    event.kind = EventKind::connect_request;
    event.context = listener->context;
    event.request.impl_ = std::move(request);
    listener->events->push(std::move(event));
    return;
  }
  auto* qp = static_cast<QpImpl*>(e.qp->owner);
  if (qp == nullptr) return;
  Event event;
  event.context = qp->context;
  if (e.kind == Kind::LastReceive) {
    event.kind = EventKind::last_receive;
    if (qp->events) qp->events->push(std::move(event));
    return;
  }
  event.error = {e.code, e.message};
  event.private_data = e.private_data;
  {
    const std::lock_guard guard(qp->mutex);
    switch (e.kind) {
      case Kind::Established:
        event.kind = EventKind::established;
        qp->outcome = QpImpl::Outcome::Established;
        qp->private_data = e.private_data;
        break;
      case Kind::ConnectFailed:
        event.kind = EventKind::connect_failed;
        qp->outcome = QpImpl::Outcome::Failed;
        qp->error = event.error;
        qp->private_data = e.private_data;
        break;
      case Kind::Disconnected:
        event.kind = EventKind::disconnected;
        break;
      default:
        event.kind = EventKind::failed;
        qp->error = event.error;
        break;
    }
    qp->settled.signal();
  }
  if (qp->events) qp->events->push(std::move(event));
}

EngineStats DeviceImpl::stats() {
  EngineStats s;
  driver->own([&](Instant now) {
    engine->fill_stats(&s);
    s.uptime_ms = static_cast<std::uint64_t>((now - opened).count_ms());
    s.link_up = port.info().link_up != 0;
    s.mac = engine->interface().mac().to_string();
    s.addresses = engine->addresses_text();
    s.wakeups = port.stats().wakeups;
    return 0;
  });
  s.sleeps = driver->sleeps();
  s.pid = static_cast<std::uint64_t>(getpid());
  s.port = port_spec;
  s.name = config.get("name");
  return s;
}

}  // namespace detail

Result<Device> Device::open(const Config& config) {
  if (auto ok = config.check(); !ok) return ok.error();
  const std::string spec = config.get("port");
  std::shared_ptr<engine::StreamTransport> stream;
  port::Port port;
  std::shared_ptr<fault::CaptureFile> capture;
  if (engine::names_stream_transport(spec)) {
    auto opened = engine::open_stream_transport(config);
    if (!opened) return opened.error();
    stream = std::move(*opened);
    port = engine::make_stream_port(stream);
  } else {
    auto opened = engine::open_port_stack(config);
    if (!opened) return opened.error();
    port = std::move(opened->port);
    capture = std::move(opened->capture);
  }
  Device device;
  device.impl_ =
      std::make_shared<detail::DeviceImpl>(config, spec, std::move(port), std::move(stream));
  device.impl_->capture = std::move(capture);
  device.impl_->driver->start();
  return device;
}

DeviceInfo Device::info() const {
  DeviceInfo i;
  i.port = impl_->port_spec;
  i.kernel = std::string(fused_kernel_name());
  impl_->driver->own([&](Instant) {
    i.mac = impl_->engine->interface().mac().to_string();
    i.addresses = impl_->engine->addresses_text();
    i.mtu = impl_->engine->mtu();
    const port::Info info = impl_->port.info();
    i.link_up = info.link_up != 0;
    if (!i.link_up) i.link_reason = info.down_reason;
    return 0;
  });
  if (impl_->capture) i.capture_error = impl_->capture->shortfall();
  return i;
}

namespace {

// The link is there, and no own address still waits for its duplicate detection: until then a
// connection has nothing to come from.
bool ready_to_connect(detail::DeviceImpl& device) {
  return device.driver->own([&](Instant) {
    const auto& own = device.engine->interface().addresses();
    const bool probing = std::any_of(own.begin(), own.end(), [](const net::OwnAddress& a) {
      return a.state == net::AddressState::Tentative;
    });
    return device.port.info().link_up != 0 && !probing;
  });
}

}  // namespace

bool Device::wait_link(int timeout_ms) {
  const Instant until =
      timeout_ms < 0 ? Instant::never() : engine::monotonic_now() + Duration::ms(timeout_ms);
  for (;;) {
    if (impl_->driver->inherited()) return false;
    progress();
    if (ready_to_connect(*impl_)) return true;
    if (engine::monotonic_now() >= until) return false;
    impl_->driver->hand_over();
    usleep(2000);
  }
}

Result<ProtectionDomain> Device::alloc_pd() {
  if (impl_->driver->inherited()) return engine::inherited_error();
  auto pd = std::make_shared<detail::PdImpl>();
  pd->device = impl_;
  pd->id = impl_->driver->own([&](Instant) { return impl_->engine->alloc_pd(); });
  return ProtectionDomain(std::move(pd));
}

Result<MemoryRegion> Device::register_memory(const ProtectionDomain& pd, void* address,
                                             std::size_t length, std::uint32_t access) {
  if (!pd || pd.impl_->device != impl_) {
    return Error{Errc::invalid_argument, "the protection domain belongs to another device"};
  }
  if ((access & access_remote_write) != 0 && (access & access_local_write) == 0) {
    return Error{Errc::invalid_argument, "remote write access needs local write access as well"};
  }
  if ((access & ~15u) != 0) return Error{Errc::invalid_argument, "unknown access rights"};
  if (impl_->driver->inherited()) return engine::inherited_error();
  auto mr = std::make_shared<detail::MrImpl>();
  mr->address = address;
  mr->length = length;
  mr->access = access;
  mr->stag = impl_->driver->own([&](Instant) {
    return impl_->engine->memory().register_memory(pd.impl_->id,
                                                   static_cast<std::uint8_t*>(address), length,
                                                   static_cast<std::uint8_t>(access));
  });
  if (mr->stag == 0) {
    return Error{Errc::no_memory, "the region cannot be registered: table full or range invalid"};
  }
  mr->pd = pd.impl_;
  return MemoryRegion(std::move(mr));
}

Result<CompletionQueue> Device::create_cq(std::uint32_t depth) {
  if (depth == 0 || depth > (1u << 24)) {
    return Error{Errc::invalid_argument, "a completion queue has 1 to 16777216 entries"};
  }
  if (impl_->driver->inherited()) return engine::inherited_error();
  return CompletionQueue(std::make_shared<detail::CqImpl>(impl_, depth));
}

Result<EventQueue> Device::create_event_queue() {
  if (impl_->driver->inherited()) return engine::inherited_error();
  auto q = std::make_shared<detail::EventQueueImpl>();
  q->device = impl_;
  return EventQueue(std::move(q));
}

Result<SharedReceiveQueue> Device::create_srq(const ProtectionDomain& pd, const SrqOptions& o) {
  if (!pd || pd.impl_->device != impl_) {
    return Error{Errc::invalid_argument, "the protection domain belongs to another device"};
  }
  if (o.max_receive == 0 || o.max_receive > 65536 || o.max_receive_sge > 32 ||
      o.limit > o.max_receive) {
    return Error{Errc::invalid_argument,
                 "shared receive queue limits: max_receive 1..65536, SGEs up to 32, limit up to "
                 "max_receive"};
  }
  auto srq = std::make_shared<detail::SrqImpl>();
  srq->device = impl_;
  srq->pd = pd.impl_;
  srq->events = o.events.impl_;
  srq->context = o.context;
  impl_->driver->own([&](Instant) {
    srq->queue = impl_->engine->create_shared_rq(pd.impl_->id, o.max_receive, o.max_receive_sge);
    srq->queue->owner = srq.get();
    if (o.limit != 0) impl_->engine->set_shared_limit(*srq->queue, o.limit);
    return 0;
  });
  return SharedReceiveQueue(std::move(srq));
}

Result<QueuePair> Device::create_qp(const ProtectionDomain& pd, const QpOptions& o) {
  if (!pd || pd.impl_->device != impl_) {
    return Error{Errc::invalid_argument, "the protection domain belongs to another device"};
  }
  if (!o.send_cq || !o.receive_cq) {
    return Error{Errc::invalid_argument,
                 "a queue pair needs a send and a receive completion queue"};
  }
  if (o.max_send == 0 || o.max_send > 65536 || o.max_receive > 65536 || o.max_send_sge > 32 ||
      o.max_receive_sge > 32 || o.max_inline > 4096) {
    return Error{
        Errc::invalid_argument,
        "queue pair limits: max_send 1..65536, max_receive 0..65536, SGEs up to 32, inline "
        "up to 4096 octets"};
  }
  if (impl_->driver->inherited()) return engine::inherited_error();
  if (o.srq && o.srq.impl_->device != impl_) {
    return Error{Errc::invalid_argument, "the shared receive queue belongs to another device"};
  }
  const std::uint32_t method = o.completion_method.value_or(2);
  if (method < 1 || method > 2 || o.completion_threshold.value_or(0) > 65536 ||
      (method == 1 && o.completion_threshold)) {
    return Error{Errc::invalid_argument,
                 "completion_method is 1 or 2, and completion_threshold, up to 65536, goes with "
                 "method 2 alone"};
  }
  auto qp = std::make_shared<detail::QpImpl>();
  qp->device = impl_;
  qp->pd = pd.impl_;
  qp->srq = o.srq.impl_;
  qp->send_cq = o.send_cq.impl_;
  qp->receive_cq = o.receive_cq.impl_;
  qp->events = o.events.impl_;
  qp->context = o.context;
  qp->signal_all = o.signal_all;
  ddp::StreamConfig config;
  config.pd = pd.impl_->id;
  config.max_send_wr = o.max_send;
  config.max_recv_wr = o.max_receive;
  config.max_send_sge = o.max_send_sge;
  config.max_recv_sge = o.max_receive_sge;
  config.max_inline = o.max_inline;
  const engine::Options& options = impl_->engine->options();
  config.completion_method = options.completion_method;
  if (o.completion_method) config.completion_method = static_cast<ddp::CompletionMethod>(method);
  config.completion_threshold = o.completion_threshold.value_or(options.completion_threshold);
  impl_->driver->own([&](Instant) {
    if (qp->srq) config.shared_rq = qp->srq->queue;
    qp->qp = impl_->engine->create_qp(config, qp->send_cq.get(), qp->receive_cq.get());
    qp->qp->owner = qp.get();
    return 0;
  });
  return QueuePair(std::move(qp));
}

Result<Listener> Device::listen(std::uint16_t port, int backlog, const EventQueue& events,
                                void* context) {
  if (impl_->driver->inherited()) return engine::inherited_error();
  auto l = std::make_shared<detail::ListenerImpl>();
  l->device = impl_;
  l->context = context;
  l->events = events.impl_;
  if (!l->events) {
    l->events = std::make_shared<detail::EventQueueImpl>();
    l->events->device = impl_;
  }
  Error error;
  impl_->driver->own([&](Instant) {
    l->listener = impl_->engine->listen(port, backlog, &error);
    if (l->listener != nullptr) {
      l->listener->owner = l.get();
      l->port = l->listener->port;
    }
    return 0;
  });
  if (l->listener == nullptr) return error;
  return Listener(std::move(l));
}

bool Device::progress() {
  return impl_->driver->app_poll();
}
EngineStats Device::stats() const {
  return impl_->stats();
}

}  // namespace urnic
