// Connections as the public API has them: connecting, requests and their answers, events,
// listeners.
#include <utility>

#include "ddp_rdma/stream.h"
#include "device/cm_connection.h"
#include "device/datagram_service.h"
#include "device/device_impl.h"
#include "device/service.h"
#include "device/wait_for.h"
#include "device/zones.h"
#include "roce/context.h"

namespace urnic {
namespace detail {

bool LocalPlace::listen(engine::Engine& engine, int backlog, Error* error) const {
  return is_roce() ? engine.roce().connections().listeners().listen(roce, backlog, error)
                   : engine.iwarp().listen(iwarp, backlog, error);
}

void LocalPlace::close(engine::Engine& engine, Instant now) const {
  if (is_roce()) return engine.roce().connections().listeners().close(roce);
  engine.iwarp().close_listener(iwarp, now);
}

BindingImpl::~BindingImpl() {
  if (!bound) return;
  device->driver->own([&](Instant now) {
    bound.close(*device->engine, now);
    return 0;
  });
}

ListenerImpl::~ListenerImpl() {
  if (!place) return;
  device->driver->own([&](Instant now) {
    place.set_owner(nullptr);
    place.close(*device->engine, now);
    return 0;
  });
  // Requests that nobody has fetched are refused; those that were are their holder's.
  events->take_of(this);
}

RequestImpl::~RequestImpl() {
  if (device != nullptr && !answered.exchange(true)) refuse({});
}

void RequestImpl::refuse(ByteView private_data) const {
  device->driver->own([&](Instant now) {
    if (roce) {
      const auto handle = static_cast<ib_cm::Handle>(connection);
      device->engine->roce().connections().reject(handle, private_data, now);
    } else {
      device->engine->iwarp().reject(connection, private_data, now);
    }
    return 0;
  });
}

}  // namespace detail

namespace {

engine::ConnectParams params_of(const engine::Engine& engine, const ConnectionOptions& o) {
  engine::ConnectParams p = engine.default_params();
  if (o.iwarp.type) {
    p.context.initiated_as = *o.iwarp.type == ConnectionType::fast ? fastpath::ConnectionType::Fast
                                                                   : fastpath::ConnectionType::Slow;
  }
  if (o.iwarp.max_recovery_attempts)
    p.context.max_recovery_attempts = *o.iwarp.max_recovery_attempts;
  if (o.iwarp.crc) p.mpa.crc = *o.iwarp.crc;
  if (o.ird) p.mpa.ird = *o.ird;
  if (o.ord) p.mpa.ord = *o.ord;
  p.private_data.assign(o.private_data.begin(), o.private_data.end());
  p.keepalive = o.iwarp.keepalive;
  p.dscp = static_cast<std::uint8_t>(o.iwarp.traffic_class >> 2);
  p.close_wait_ms = static_cast<std::uint16_t>(o.iwarp.close_wait_ms);
  if (o.timeout_ms > 0) p.timeout = Duration::ms(o.timeout_ms);
  p.refusal_retry = Duration::ms(o.refusal_retry_ms);
  return p;
}

std::optional<Error> check_options(const engine::Engine& engine, const ConnectionOptions& o) {
  if (o.iwarp.require_fast) {  // E-31
    const engine::ConnectParams p = params_of(engine, o);
    const char* why =
        engine.over_kernel_tcp() ? "port = tcp does not show TCP segments (no-segments)"
        : p.context.initiated_as == fastpath::ConnectionType::Slow ? "its type is slow"
        : !p.mpa.crc ? "its MPA CRC may be off (setting crc)"
                     : nullptr;
    if (why != nullptr) {
      return Error{Errc::unsupported,
                   std::string("require_fast: this connection cannot be FAST: ") + why};
    }
  }
  if (auto bad = detail::check_common(o)) return bad;
  const mpa::Policy policy = engine.options().mpa.policy;
  const std::uint32_t room = mpa::max_private_data(true, policy);
  if (o.private_data.size() > room) {
    return Error{Errc::invalid_argument,
                 "private_data: must be at most " + std::to_string(room) + " bytes"};
  }
  if (o.iwarp.max_recovery_attempts && *o.iwarp.max_recovery_attempts == 0 &&
      !mpa::has_markers(policy)) {  // E-3
    return Error{Errc::invalid_argument,
                 "max_recovery_attempts: must be at least 1 without MPA markers"};
  }
  return std::nullopt;
}

}  // namespace

namespace detail {

// What happens to a connection may be told before the call that begins it has returned: it has its
// number by then.
template <class Call>
Result<void> begin(QpImpl& qp, Call&& call) {
  return qp.device->driver->own([&](Instant now) -> Result<void> {
    ++qp.connection.number;
    Result<void> begun = guarded([&] { return call(*qp.device->engine, now); });
    if (!begun) --qp.connection.number;
    return begun;
  });
}

}  // namespace detail

Result<void> QueuePair::connect_start(std::string_view address, const ConnectionOptions& options) {
  return detail::guarded([&]() -> Result<void> {
    if (!impl_) return detail::empty_handle("queue pair");
    const bool roce = engine::is_roce(*impl_->qp);
    const auto to = detail::parse_place(*impl_->device, address);
    if (!to) {
      return Error{Errc::invalid_argument,
                   "invalid address and port: '" + std::string(address) +
                       "' (for example 10.77.0.1:18515 or [fd77::1]:18515)"};
    }
    if (impl_->device->driver->inherited()) return engine::inherited_error();
    if (auto no = detail::not_to_connect(*impl_)) return *no;
    if (auto bad =
            roce ? detail::check_common(options) : check_options(*impl_->device->engine, options)) {
      return *bad;
    }
    const detail::BindingImpl* from = nullptr;
    if (options.source != nullptr) {
      from = options.source->impl_.get();
      if (from == nullptr || from->device != impl_->device || !from->bound ||
          from->bound.is_roce() != roce || from->bound.is_for_datagrams()) {
        return Error{Errc::invalid_argument,
                     "source: the binding is empty, listening or of another device or transport"};
      }
    }
    auto on_link = from != nullptr ? Result<std::optional<IpAddress>>(std::nullopt)
                                   : detail::source_by_zone(*impl_->device, address);
    if (!on_link) return on_link.error();
    {
      const std::lock_guard guard(impl_->mutex);
      impl_->outcome = detail::QpImpl::Outcome::Pending;
      impl_->connection.peer = to->to_string();
    }
    return detail::begin(*impl_, [&](engine::Engine& e, Instant now) {
      if (roce) {
        engine::RoceConnect params = detail::roce_params_of(e, options);
        if (from != nullptr) params.source = from->bound.roce->local;
        if (*on_link) params.source.at.ip = **on_link;
        return e.roce().connections().connect(*impl_->qp, *to, params, now);
      }
      engine::ConnectParams params = params_of(e, options);
      if (from != nullptr) params.source = from->bound.iwarp->to_connect_from();
      return e.iwarp().connect(*impl_->qp, *to, params, now);
    });
  });
}

namespace detail {

// Of a queue pair that has something to wait on.
Result<void> wait_until_settled(QpImpl& qp);

}  // namespace detail

Result<void> QueuePair::connect(std::string_view address, const ConnectionOptions& options) {
  auto waits = detail::guarded([&]() -> Result<void> {
    if (!impl_) return detail::empty_handle("queue pair");
    auto fd = std::make_unique<engine::EventFd>();
    if (fd->get() < 0) return detail::no_descriptor("the connection");
    const std::lock_guard guard(impl_->mutex);
    if (impl_->settled != nullptr) {
      return Error{Errc::wrong_state, "another thread is already connecting this queue pair"};
    }
    impl_->settled = std::move(fd);
    return {};
  });
  if (!waits) return waits;
  auto started = connect_start(address, options);
  if (started) started = detail::guarded([&] { return detail::wait_until_settled(*impl_); });
  const std::lock_guard guard(impl_->mutex);
  impl_->settled.reset();
  return started;
}

namespace detail {

Result<void> wait_until_settled(QpImpl& qp) {
  engine::Driver& driver = *qp.device->driver;
  for (;;) {
    if (driver.inherited()) return engine::inherited_error();
    {
      const std::lock_guard guard(qp.mutex);
      if (qp.outcome == QpImpl::Outcome::Established) return {};
      if (qp.outcome == QpImpl::Outcome::Failed) return qp.error;
    }
    if (driver.has_thread()) {
      driver.hand_over();
      qp.settled->wait(Duration::ms(100));
      qp.settled->clear();
    } else if (!driver.app_poll()) {
      qp.settled->wait(Duration::ms(1));
    }
  }
}

}  // namespace detail

namespace {

// Where the events of `object` go from now on: under ownership, so that none comes meanwhile.
Result<void> move_events(auto& object, const std::shared_ptr<detail::EventQueueImpl>& to,
                         void* context) {
  if (object.device->driver->inherited()) return engine::inherited_error();
  if (to == nullptr || to->device != object.device) {
    return Error{Errc::invalid_argument, "the event queue is empty or belongs to another device"};
  }
  std::shared_ptr<detail::EventQueueImpl> from;  // goes behind the ownership
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
  return detail::guarded([&]() -> Result<void> {
    if (!impl_) return detail::empty_handle("queue pair");
    return move_events(*impl_, events.impl_, context);
  });
}

Result<void> Listener::deliver_events(const EventQueue& events, void* context) {
  return detail::guarded([&]() -> Result<void> {
    if (!impl_) return detail::empty_handle("listener");
    return move_events(*impl_, events.impl_, context);
  });
}

std::string QueuePair::peer_private_data() const {
  if (!impl_ || impl_->device->driver->inherited()) return {};
  return detail::or_nothing([&] {
    const std::lock_guard guard(impl_->mutex);
    return impl_->private_data;
  });
}

void QueuePair::disconnect() {
  if (!impl_) return;
  impl_->device->driver->own([&](Instant now) {
    engine::Engine& e = *impl_->device->engine;
    if (engine::is_roce(*impl_->qp)) {
      e.roce().connections().disconnect(*impl_->qp, now);
    } else {
      e.iwarp().disconnect(*impl_->qp, now);
    }
    return 0;
  });
}

void QueuePair::abort() {
  if (!impl_) return;
  impl_->device->driver->own([&](Instant now) {
    engine::Engine& e = *impl_->device->engine;
    if (engine::is_roce(*impl_->qp)) {
      e.roce().connections().abort(*impl_->qp, now);
    } else {
      e.iwarp().abort(*impl_->qp, now);
    }
    return 0;
  });
}

ConnectionStats QueuePair::stats() const {
  if (!impl_) return {};
  return impl_->device->driver->own([&](Instant) {
    engine::Engine& e = *impl_->device->engine;
    return engine::is_roce(*impl_->qp) ? e.roce().stats_of(*impl_->qp)
                                       : e.iwarp().qp_stats(*impl_->qp);
  });
}

std::uint16_t QueuePair::ird() const {
  if (!impl_) return 0;
  return impl_->device->driver->own([&](Instant) -> std::uint16_t {
    const verbs::QueuePair& qp = *impl_->qp;
    return engine::is_roce(qp) ? roce::context_of(qp).attributes.responder_depth
                               : ddp::stream_of(qp).inbound_reads.limit();
  });
}

std::uint16_t QueuePair::ord() const {
  if (!impl_) return 0;
  return impl_->device->driver->own([&](Instant) -> std::uint16_t {
    const verbs::QueuePair& qp = *impl_->qp;
    return engine::is_roce(qp) ? roce::context_of(qp).attributes.initiator_depth
                               : ddp::stream_of(qp).sender.ord();
  });
}

// ---- requests, events, listeners

std::string ConnectRequest::peer() const {
  if (!impl_) return {};
  return detail::or_nothing([&] {
    return SocketAddress{impl_->info.key.remote, impl_->info.key.remote_port}.to_string();
  });
}
std::string ConnectRequest::local() const {
  if (!impl_) return {};
  return detail::or_nothing([&] {
    return SocketAddress{impl_->info.key.local, impl_->info.key.local_port}.to_string();
  });
}
std::span<const std::uint8_t> ConnectRequest::private_data() const {
  if (!impl_) return {};
  return impl_->info.private_data;
}
std::uint16_t ConnectRequest::ird() const {
  return impl_ ? impl_->info.ird : 0;
}
std::uint16_t ConnectRequest::ord() const {
  return impl_ ? impl_->info.ord : 0;
}
std::uint8_t ConnectRequest::retry_count() const {
  return roce_peer().retry_count;
}
std::uint8_t ConnectRequest::rnr_retry() const {
  return roce_peer().rnr_retry;
}
RocePeer ConnectRequest::roce_peer() const {
  return impl_ ? impl_->of_peer : RocePeer{};
}
Service ConnectRequest::service() const {
  return impl_ ? impl_->service : Service::rc;
}

Result<void> ConnectRequest::accept(QueuePair& qp, const ConnectionOptions& options) {
  return detail::guarded([&]() -> Result<void> {
    if (!impl_) return detail::empty_handle("connection request");
    if (!qp) return detail::empty_handle("queue pair");
    if (qp.impl_->device != impl_->device) {
      return Error{Errc::invalid_argument, "the queue pair belongs to another device"};
    }
    const bool roce = engine::is_roce(*qp.impl_->qp);
    if (impl_->service == Service::ud) return detail::serve_datagrams(*impl_, *qp.impl_, options);
    if (roce != impl_->roce) {
      return Error{
          Errc::invalid_argument,
          std::string("the request is for another transport: accept it with a queue pair of ") +
              (impl_->roce ? "RoCE (QpOptions::transport)" : "iWARP")};
    }
    if (impl_->device->driver->inherited()) return engine::inherited_error();
    if (auto no = detail::not_to_accept(*qp.impl_, impl_->service)) return *no;
    if (auto bad =
            roce ? detail::check_common(options) : check_options(*impl_->device->engine, options)) {
      return *bad;
    }
    if (impl_->answered.exchange(true)) {
      return Error{Errc::wrong_state, "the connection request is already accepted or rejected"};
    }
    auto accepted = detail::guarded([&]() -> Result<void> {
      {
        const std::lock_guard guard(qp.impl_->mutex);
        qp.impl_->outcome = detail::QpImpl::Outcome::Pending;
        qp.impl_->connection.peer = peer();
      }
      return detail::begin(*qp.impl_, [&](engine::Engine& e, Instant now) {
        if (roce) {
          const auto handle = static_cast<ib_cm::Handle>(impl_->connection);
          engine::RoceConnect params = detail::roce_params_of(e, options);
          params.psn = impl_->terms.psn;
          return e.roce().connections().accept(handle, *qp.impl_->qp, params, now);
        }
        return e.iwarp().accept(impl_->connection, *qp.impl_->qp, params_of(e, options), now);
      });
    });
    if (accepted) return accepted;
    // The peer is not left waiting, or the request can be answered otherwise. Nothing happens to a
    // connection that has ended meanwhile.
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
  engine::Driver& driver = *impl_->device->driver;
  const auto look = [&]() -> std::optional<bool> {
    if (impl_->pop(out)) return true;
    if (impl_->take_wake()) return false;
    return std::nullopt;
  };
  return engine::wait_for(driver, timeout_ms, look, [&](Duration most, bool driven) {
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
  return detail::guarded([&]() -> Result<ConnectRequest> {
    if (!impl_) return detail::empty_handle("listener");
    Event e;
    EventQueue queue(impl_->events);
    if (!queue.wait(&e, timeout_ms)) {
      if (impl_->device->driver->inherited()) return engine::inherited_error();
      return Error{Errc::timed_out, "timed out: no connection request arrived"};
    }
    return std::move(e.request);
  });
}

}  // namespace urnic
