// The public device: opens the port, owns engine and driver, and delivers events to the consumer.
#include <unistd.h>

#include <algorithm>

#include "base/fused.h"
#include "device/device_impl.h"
#include "device/engine_options.h"
#include "device/kernel_tcp_port.h"
#include "device/mapping.h"
#include "device/nap.h"
#include "device/port_stack.h"
#include "device/secrets.h"
#include "device/service.h"
#include "device/udp_addresses.h"

namespace urnic {
namespace device {

DeviceImpl::DeviceImpl(const Config& c, std::string spec, port::Port p,
                       std::shared_ptr<engine::KernelTcp> kernel, std::unique_ptr<device::Log> l,
                       const engine::Options& options)
    : config(c),
      port_spec(std::move(spec)),
      port(std::move(p)),
      opened(monotonic_now()),
      logger(std::move(l)) {
  engine = std::make_unique<engine::Engine>(options, &port, 0, this, std::move(kernel));
  device::DriverOptions d;
  const std::string progress = config.get("progress");
  d.progress = progress == "poll"     ? device::Progress::Poll
               : progress == "thread" ? device::Progress::Thread
                                      : device::Progress::Auto;
  d.spin = Duration::us(config.get_int("spin_us"));
  d.lookout = Duration::us(config.get_int("lookout_us"));
  // Two ends of a memif on the same core would stay there: if they sleep by turns, the scheduler
  // sees no load to spread; if they poll, it does.
  if (engine->over_kernel_tcp()) d.doze = Duration::us(config.get_int("doze_us"));
  driver = std::make_unique<device::Driver>(d, engine.get(), &port, 0);
  if (config.get_bool("stat")) serve_statistics();
}

void DeviceImpl::serve_statistics() {
  const device::StatSource source{
      [this] { return totals(); },
      [this](engine::StatsPlace* place, std::size_t most, std::vector<ConnectionStats>* out) {
        return driver->own(
            [&](Instant) { return engine::add_connections(*engine, place, most, out); });
      }};
  stat_server = std::make_unique<device::StatServer>(source);
  if (stat_server->fd() >= 0) {
    driver->watched().watch(stat_server->fd(),
                            [this] { or_nothing([&] { stat_server->serve(); }); });
  }
  if (!device::has_stat_directory()) return;
  counter_report = std::make_unique<device::CounterReport>(
      source, config.get("device"), port_spec,
      [this](const std::string& why) { log(device::LogLevel::Warn, why); });
  driver->watched().watch_activity(device::CounterReport::kDistance, [this] {
    return std::max(device::CounterReport::kDistance,
                    or_nothing([&] { return counter_report->publish(); }));
  });
}

void DeviceImpl::publish_counters() {
  if (counter_report != nullptr) or_nothing([&] { counter_report->publish(); });
}

DeviceImpl::~DeviceImpl() {
  if (driver->inherited()) {  // the engine may be in any state; ports can handle a fork
    [[maybe_unused]] const auto* left_alone = engine.release();
    if (logger != nullptr) logger->forget();
    return;
  }
  finish_ends();
  finish_faults(Duration::s(1));
  publish_counters();
  driver.reset();  // stops the thread first
  engine.reset();
}

Result<verbs::ControlPath*> control_of(engine::Engine& engine,
                                       const std::optional<Transport>& named) {
  if (named && *named != Transport::iwarp && *named != Transport::roce) {
    return Error{Errc::invalid_argument, "transport: must be iwarp or roce"};
  }
  const Transport own =
      engine.control(Transport::iwarp) != nullptr ? Transport::iwarp : Transport::roce;
  if (verbs::ControlPath* const control = engine.control(named.value_or(own))) return control;
  return Error{Errc::unsupported,
               std::string("this device does not support ") +
                   (*named == Transport::roce ? "RoCE: set transport = roce or both"
                                              : "iWARP: set transport = iwarp or both")};
}

std::string DeviceImpl::why_down() const {
  return port.why();
}

// The ownership is released between two pieces, so that waiting threads get it first.
EngineStats DeviceImpl::stats() {
  constexpr std::size_t kPiece = 64;
  EngineStats s = totals();
  for (engine::StatsPlace place; driver->own([&](Instant) {
         return engine::add_connections(*engine, &place, kPiece, &s.connections);
       });) {
  }
  return s;
}

EngineStats DeviceImpl::totals() {
  EngineStats s;
  driver->own([&](Instant now) {
    engine->fill_stats(&s, false);
    s.uptime_ms = static_cast<std::uint64_t>((now - opened).count_ms());
    s.port.link_up = port.info().link_up != 0;
    s.port.mac = engine->interface().mac().to_string();
    s.net.addresses = engine->addresses_text();
    s.wakeups = port.stats().wakeups;
    s.port.link_losses = link_losses;
    s.port.link_reason = s.port.link_up ? "" : why_down();
    return 0;
  });
  s.sleeps = driver->sleeps();
  s.pid = static_cast<std::uint64_t>(getpid());
  s.port.spec = port_spec;
  s.name = config.get("name");
  return s;
}

}  // namespace device

namespace {

Result<std::shared_ptr<device::DeviceImpl>> open_device(const Config& whole) {
  auto chosen = whole.one();
  if (!chosen) return chosen.error();
  const Config& config = *chosen;
  if (auto ok = config.check(); !ok) return ok.error();
  auto log = device::Log::open(config);
  if (!log) return log.error();
  const std::string spec = config.get("port");
  std::shared_ptr<engine::KernelTcp> kernel;
  port::Port port;
  std::shared_ptr<fault::CaptureFile> capture;
  std::shared_ptr<fault::FaultControl> faults;
  if (device::names_kernel_tcp(spec)) {
    auto opened = device::open_kernel_tcp(config);
    if (!opened) return opened.error();
    kernel = std::move(opened->transport);
    capture = std::move(opened->capture);
    port = device::make_kernel_tcp_port(kernel);
  } else {
    auto opened = device::open_port_stack(config);
    if (!opened) return opened.error();
    port = std::move(opened->port);
    capture = std::move(opened->capture);
    faults = std::move(opened->faults);
  }
  engine::Options options = device::options_from(config, spec.substr(0, spec.find(':')));
  auto seed = device::random_seed();
  auto mac = device::random_mac();
  if (!seed) return seed.error();
  if (!mac) return mac.error();
  if (options.socket_port != 0) {
    auto own = device::addresses_of_udp_port(spec);
    if (!own) return own.error();
    options.addresses = std::move(*own);
    options.route_mtu = device::route_mtus_of_udp_port(spec);
  }
  const bool has_all_addresses = kernel != nullptr          ? kernel->options.bind.is_any()
                                 : options.socket_port != 0 ? device::has_addresses_of_machine(spec)
                                                            : false;
  options.seed = *seed;
  options.own_mac = *mac;
  auto device = std::make_shared<device::DeviceImpl>(
      config, spec, std::move(port), std::move(kernel), std::move(*log), std::move(options));
  device->capture = std::move(capture);
  device->faults = std::move(faults);
  device->log(device::LogLevel::Info, "opened " + spec);
  if (has_all_addresses) device->watch_addresses();
  if (auto started = device->driver->start(); !started) return started.error();
  return device;
}

}  // namespace

Result<Device> Device::open(const Config& config) {
  return device::guarded([&]() -> Result<Device> {
    auto opened = open_device(config);
    if (!opened) return opened.error();
    Device device;
    device.impl_ = std::move(*opened);
    return device;
  });
}

DeviceInfo Device::info() const {
  return device::or_nothing([&]() -> DeviceInfo {
    DeviceInfo i;
    if (!impl_) return i;
    i.port = impl_->port_spec;
    i.kernel = std::string(fused_kernel_name());
    i.identity = impl_->config.get("identity");
    if (i.identity == "auto") {
      i.identity = impl_->config.get("transport") == "roce" ? "roce" : "iwarp";
    }
    impl_->driver->own([&](Instant) {
      i.mac = impl_->engine->interface().mac().to_string();
      i.addresses = impl_->engine->addresses_text();
      i.mtu = impl_->engine->mtu();
      const port::Info info = impl_->port.info();
      i.link_up = info.link_up != 0;
      if (!i.link_up) i.link_reason = impl_->why_down();
      return 0;
    });
    if (impl_->capture) i.capture_error = impl_->capture->shortfall();
    return i;
  });
}

namespace {

// True if the link is up and every own address has passed duplicate detection; before that, a
// connection has no source address.
bool ready_to_connect(device::DeviceImpl& device) {
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
  if (!impl_) return false;
  const Instant until = device::deadline_in(timeout_ms);
  for (;;) {
    if (impl_->driver->inherited()) return false;
    progress();
    if (ready_to_connect(*impl_)) return true;
    if (monotonic_now() >= until) return false;
    impl_->driver->hand_over();
    usleep(2000);
  }
}

namespace {

const Error kForeignPd{Errc::invalid_argument,
                       "the protection domain is empty or belongs to another device"};

}  // namespace

Result<void> Device::deliver_events(const EventQueue& events, void* context) {
  return device::guarded([&]() -> Result<void> {
    if (auto no = device::unusable(impl_)) return *no;
    if (events && events.impl_->device != impl_) {
      return Error{Errc::invalid_argument, "the event queue belongs to another device"};
    }
    const std::lock_guard guard(impl_->mutex);
    impl_->events = events.impl_.get();
    impl_->context = context;
    return {};
  });
}

Result<ProtectionDomain> Device::alloc_pd() {
  return device::guarded([&]() -> Result<ProtectionDomain> {
    if (auto no = device::unusable(impl_)) return *no;
    auto pd = std::make_shared<device::PdImpl>();
    pd->device = impl_;
    pd->id = impl_->driver->own([&](Instant) { return impl_->engine->queue_pairs().new_pd(); });
    return ProtectionDomain(std::move(pd));
  });
}

Result<MemoryRegion> Device::register_memory(const ProtectionDomain& pd, void* address,
                                             std::size_t length, std::uint32_t access,
                                             std::optional<std::uint64_t> iova) {
  return device::guarded([&]() -> Result<MemoryRegion> {
    if (auto no = device::unusable(impl_)) return *no;
    if (!pd || pd.impl_->device != impl_) return kForeignPd;
    auto mr = std::make_shared<device::MrImpl>();
    mr->address = address;
    mr->length = length;
    mr->iova = iova;
    mr->access = access;
    if (auto no = device::not_registrable(*mr)) return *no;
    device::FaultHandler::look_again();
    if (auto no = device::not_present(*mr, *impl_)) return *no;
    mr->stag = impl_->driver->own([&](Instant) {
      return impl_->engine->memory().register_memory(pd.impl_->id, mr->extent(),
                                                     static_cast<std::uint8_t>(access));
    });
    if (mr->stag == 0) {
      return Error{Errc::no_memory,
                   "cannot register the region: the limit of memory regions is reached"};
    }
    mr->pd = pd.impl_;
    return MemoryRegion(std::move(mr));
  });
}

Result<MemoryWindow> Device::create_window(const ProtectionDomain& pd, WindowType type) {
  return device::guarded([&]() -> Result<MemoryWindow> {
    if (auto no = device::unusable(impl_)) return *no;
    if (!pd || pd.impl_->device != impl_) return kForeignPd;
    if (type != WindowType::type1 && type != WindowType::type2) {
      return Error{Errc::invalid_argument, "invalid memory window type: must be type1 or type2"};
    }
    auto window = std::make_shared<device::WindowImpl>();
    window->type = type;
    window->key = impl_->driver->own([&](Instant) {
      return impl_->engine->memory().allocate_window(pd.impl_->id,
                                                     static_cast<verbs::WindowType>(type));
    });
    if (window->key == 0) {
      return Error{Errc::no_memory,
                   "cannot create the memory window: the limit of memory windows is reached"};
    }
    window->pd = pd.impl_;
    return MemoryWindow(std::move(window));
  });
}

Result<CompletionQueue> Device::create_cq(std::uint32_t depth, void* context) {
  return device::guarded([&]() -> Result<CompletionQueue> {
    if (auto no = device::unusable(impl_)) return *no;
    if (depth == 0 || depth > device::kMostCompletions) return device::depth_error();
    auto cq = std::make_shared<device::CqImpl>(impl_, depth);
    cq->context = context;
    return CompletionQueue(std::move(cq));
  });
}

Result<EventQueue> Device::create_event_queue() {
  return device::guarded([&]() -> Result<EventQueue> {
    if (auto no = device::unusable(impl_)) return *no;
    auto q = std::make_shared<device::EventQueueImpl>();
    if (!q->usable()) return device::no_descriptor("an event queue");
    q->device = impl_;
    return EventQueue(std::move(q));
  });
}

namespace {

std::optional<Error> wrong_with(const QpOptions& o, const device::DeviceImpl* device,
                                const device::DeviceImpl* send, const device::DeviceImpl* receive,
                                const device::DeviceImpl* shared,
                                const device::DeviceImpl* events) {
  if (const char* const no = device::not_of_end(o)) return Error{Errc::invalid_argument, no};
  if ((o.send_cq && send != device) || (o.receive_cq && receive != device) ||
      (o.srq && shared != device) || (o.events && events != device)) {
    return Error{
        Errc::invalid_argument,
        "a completion queue, shared receive queue or event queue belongs to another device"};
  }
  if (o.max_send > 65536 || o.max_receive > 65536 || o.max_send_sge > 32 ||
      o.max_receive_sge > 32 || o.max_inline > 4096) {
    return Error{Errc::invalid_argument,
                 "queue pair: at most 65536 for max_send and max_receive, 32 SGEs, 4096 bytes for "
                 "max_inline"};
  }
  if (o.number > 0xffffff) {
    return Error{Errc::invalid_argument, "number: must be at most 16777215 (24 bits)"};
  }
  const std::uint32_t method = o.iwarp.completion_method.value_or(2);
  if (method < 1 || method > 2 || o.iwarp.completion_threshold.value_or(0) > 65536 ||
      (method == 1 && o.iwarp.completion_threshold)) {
    return Error{Errc::invalid_argument,
                 "completion_method: must be 1 or 2; completion_threshold: at most 65536, only "
                 "with method 2"};
  }
  return std::nullopt;
}

verbs::QpRequest request_of(const QpOptions& o, const device::QpImpl& qp) {
  verbs::QpRequest r;
  r.pd = qp.pd->id;
  r.service = device::to_inner(o.service);
  r.number = o.number;
  r.sizes.max_send_wr = o.max_send;
  r.sizes.max_recv_wr = o.max_receive;
  r.sizes.max_send_sge = o.max_send_sge;
  r.sizes.max_recv_sge = o.max_receive_sge;
  r.sizes.max_inline = o.max_inline;
  r.sizes.shared_rq = qp.srq != nullptr ? qp.srq->queue : nullptr;
  r.send = qp.send_cq.get();
  r.receive = qp.receive_cq.get();
  r.xrc_domain = qp.xrc != nullptr ? qp.xrc->id : 0;
  r.iwarp = o.iwarp;
  r.roce = o.roce;
  return r;
}

const device::DeviceImpl* device_of(const auto& handle) {
  return handle == nullptr ? nullptr : handle->device.get();
}

}  // namespace

Result<QueuePair> Device::create_qp(const ProtectionDomain& pd, const QpOptions& o) {
  return device::guarded([&]() -> Result<QueuePair> {
    if (auto no = device::unusable(impl_)) return *no;
    if (!pd || pd.impl_->device != impl_) return kForeignPd;
    if (auto wrong =
            wrong_with(o, impl_.get(), device_of(o.send_cq.impl_), device_of(o.receive_cq.impl_),
                       device_of(o.srq.impl_), device_of(o.events.impl_))) {
      return *wrong;
    }
    auto control = device::control_of(*impl_->engine, o.transport);
    if (!control) return control.error();
    if (o.service > Service::xrc_receive) {
      return Error{Errc::invalid_argument, "invalid service: must be a value of enum Service"};
    }
    if (o.xrc_domain && device_of(o.xrc_domain.impl_) != impl_.get()) {
      return Error{Errc::invalid_argument, "the XRC domain belongs to another device"};
    }
    auto qp = std::make_shared<device::QpImpl>();
    qp->device = impl_;
    qp->xrc = o.xrc_domain.impl_;
    qp->pd = pd.impl_;
    qp->srq = o.srq.impl_;
    qp->send_cq = o.send_cq.impl_;
    qp->receive_cq = o.receive_cq.impl_;
    qp->events = o.events.impl_;
    qp->context = o.context;
    qp->signal_all = o.signal_all;
    qp->asynchronous_events = o.asynchronous_events;
    const verbs::QpRequest request = request_of(o, *qp);
    auto made = impl_->driver->own([&](Instant) {
      auto created = (*control)->create(request);
      if (!created) return created;
      qp->qp = *created;
      qp->qp->owner = qp.get();
      qp->most_datagram = (*control)->most_datagram();
      return created;
    });
    if (!made) return made.error();
    return QueuePair(std::move(qp));
  });
}

Result<AddressHandle> Device::create_address_handle(const ProtectionDomain& pd,
                                                    const QpPath& path) {
  return device::guarded([&]() -> Result<AddressHandle> {
    if (auto no = device::unusable(impl_)) return *no;
    if (!pd || pd.impl_->device != impl_) return kForeignPd;
    auto roce = device::control_of(*impl_->engine, Transport::roce);
    if (!roce) return roce.error();
    auto made = std::make_shared<device::AddressHandleImpl>();
    made->pd = pd.impl_;
    auto handle = impl_->driver->own(
        [&](Instant now) { return impl_->engine->roce_control().create_handle(path, now); });
    if (!handle) return handle.error();
    made->handle = *handle;
    return AddressHandle(std::move(made));
  });
}

bool Device::progress() {
  return impl_ && impl_->driver->app_poll();
}
bool Device::is_in_call() {
  return device::Ownership::is_owner();
}

void Device::disconnect_all(int timeout_ms) {
  if (impl_) device::or_nothing([&] { impl_->disconnect_all(Duration::ms(timeout_ms)); });
}
EngineStats Device::stats() const {
  if (!impl_) return {};
  return device::or_nothing([&] { return impl_->stats(); });
}

}  // namespace urnic
