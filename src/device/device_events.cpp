// What the engine tells, on its way to the consumer: event queues, completion queues, the log.
#include <algorithm>
#include <cstring>

#include "device/device_impl.h"
#include "device/udp_addresses.h"

namespace urnic {
namespace detail {

EventQueueImpl::~EventQueueImpl() {
  if (device == nullptr) return;  // there was no descriptor for it
  const std::lock_guard guard(device->mutex);
  if (device->events == this) device->events = nullptr;
}

void EventQueueImpl::push(Event e, const void* from) {
  const std::lock_guard guard(mutex);
  events.push_back({std::move(e), from});
  fd.signal();
}

void EventQueueImpl::push_news(Event e) {
  push(std::move(e), nullptr);
  const std::lock_guard guard(mutex);
  const auto is_news = [](const Entry& entry) { return entry.from == nullptr; };
  if (std::count_if(events.begin(), events.end(), is_news) > std::ptrdiff_t{kMostNews}) {
    events.erase(std::find_if(events.begin(), events.end(), is_news));
  }
}

bool EventQueueImpl::pop(Event* out) {
  const std::lock_guard guard(mutex);
  if (events.empty()) return false;
  *out = std::move(events.front().event);
  events.pop_front();
  if (events.empty() && !woken) fd.clear();
  return true;
}

void EventQueueImpl::wake() {
  const std::lock_guard guard(mutex);
  woken = true;
  fd.signal();
}

bool EventQueueImpl::take_wake() {
  const std::lock_guard guard(mutex);
  if (!woken) return false;
  woken = false;
  if (events.empty()) fd.clear();
  return true;
}

std::list<EventQueueImpl::Entry> EventQueueImpl::take_of(const void* from) {
  std::list<Entry> taken;
  const std::lock_guard guard(mutex);
  for (auto it = events.begin(); it != events.end();) {
    const auto e = it++;
    if (e->from == from) taken.splice(taken.end(), events, e);
  }
  if (events.empty() && !woken) fd.clear();
  return taken;
}

void EventQueueImpl::put(std::list<Entry> more) {
  if (more.empty()) return;
  const std::lock_guard guard(mutex);
  events.splice(events.end(), more);
  fd.signal();
}

void DeviceImpl::on_completion(verbs::CompletionQueue* cq) {
  static_cast<CqImpl*>(cq)->notify();
}

void DeviceImpl::on_shared_limit(verbs::SharedReceiveQueue* queue) {
  auto* srq = static_cast<SrqImpl*>(queue->owner);
  if (srq == nullptr || !srq->events) return;
  Event event;
  event.kind = EventKind::receive_limit;
  event.context = srq->context;
  srq->events->push(std::move(event), srq);
}

void DeviceImpl::tell(EventKind kind, const void* from, void* about, const char* why) {
  const std::lock_guard guard(mutex);
  if (events == nullptr) return;
  try {
    Event event;
    event.kind = kind;
    event.context = about != nullptr ? about : context;
    event.error.message = why;
    from != nullptr ? events->push(std::move(event), from) : events->push_news(std::move(event));
  } catch (const std::bad_alloc&) {
    // News of the device: lost, and no connection with them.
  }
}

void DeviceImpl::forget_events(const void* from) {
  const std::lock_guard guard(mutex);
  if (events != nullptr) events->take_of(from);
}

void DeviceImpl::on_cq_overrun(verbs::CompletionQueue* queue) {
  auto* cq = static_cast<CqImpl*>(queue);
  cq->notify();  // armed or not: whoever sleeps on it would sleep for ever
  log_quietly(engine::LogLevel::Error, [&] {
    return "completion queue overrun: all " + std::to_string(cq->depth()) +
           " entries are in use; create it larger";
  });
  tell(EventKind::cq_overrun, queue, cq->context,
       "completion queue overrun: create it larger or poll it more often");
}

void DeviceImpl::on_address_conflict(const IpAddress& address, const MacAddress& with) {
  const std::string text =
      "IP address " + address.to_string() + " is also in use by " + with.to_string();
  log_quietly(engine::LogLevel::Warn, [&] { return std::string(text); });
  tell(EventKind::address_conflict, nullptr, nullptr, text.c_str());
}

void DeviceImpl::watch_addresses() {
  address_news = std::make_unique<sockets::AddressNews>();
  if (address_news->fd() < 0) {
    log(engine::LogLevel::Warn,
        std::string("cannot watch for changes of this machine's addresses: ") +
            std::strerror(address_news->error()));
    return;
  }
  driver->watch(address_news->fd(), [this] {
    or_nothing([&] {
      if (!address_news->take()) return;
      if (!engine->over_kernel_tcp()) {
        const std::vector<IpPrefix> now = engine::udp_addresses_now();
        driver->own([&](Instant) { return engine->roce().set_addresses(now), 0; });
      }
      tell(EventKind::addresses_changed, nullptr, nullptr, "");
    });
  });
}

void DeviceImpl::on_link(bool up, const std::string& why) {
  link_reason = up ? "" : why;
  log_quietly(engine::LogLevel::Info,
              [&] { return up ? "link up" : "link down" + (why.empty() ? "" : ": " + why); });
  tell(up ? EventKind::link_up : EventKind::link_down, nullptr, nullptr, why.c_str());
}

namespace {

std::string ends_of(const engine::FlowKey& key) {
  return SocketAddress{key.local, key.local_port}.to_string() + " - " +
         SocketAddress{key.remote, key.remote_port}.to_string();
}

const char* name_of(engine::Note note) {
  switch (note) {
    case engine::Note::Refused:
      return "segment dropped";
    case engine::Note::Downgraded:
      return "downgraded to SLOW";
    case engine::Note::Upgraded:
      return "upgraded to FAST";
    case engine::Note::TurnedAway:
      return "connection rejected";
  }
  return "";
}

const char* name_of(engine::CmEvent::Kind kind) {
  using Kind = engine::CmEvent::Kind;
  switch (kind) {
    case Kind::ConnectRequest:
      return "connect request";
    case Kind::Established:
      return "established";
    case Kind::ConnectFailed:
      return "connect failed";
    case Kind::Disconnected:
      return "disconnected";
    case Kind::Failed:
      return "failed";
    case Kind::LastReceive:
      return "last receive";
    case Kind::EarlyData:
      return "data before established";
    case Kind::AccessError:
      return "access error";
    case Kind::RequestError:
      return "request error";
    case Kind::Fatal:
      return "fatal error";
    case Kind::TimeWaitOver:
      return "time-wait is over";
    case Kind::Answered:
      return "answered";
  }
  return "";
}

// Of what says nothing of the connection.
std::optional<EventKind> asynchronous(engine::CmEvent::Kind kind) {
  using Kind = engine::CmEvent::Kind;
  switch (kind) {
    case Kind::LastReceive:
      return EventKind::last_receive;
    case Kind::EarlyData:
      return EventKind::communication_established;
    case Kind::AccessError:
      return EventKind::access_error;
    case Kind::RequestError:
      return EventKind::request_error;
    case Kind::Fatal:
      return EventKind::fatal;
    case Kind::TimeWaitOver:
      return EventKind::time_wait_over;
    default:
      return std::nullopt;
  }
}

}  // namespace

void DeviceImpl::on_note(engine::Note note, const engine::FlowKey& key, const char* why) {
  log_quietly(engine::LogLevel::Debug,
              [&] { return ends_of(key) + ": " + name_of(note) + ": " + why; });
}

// What needs memory comes first. Once it is queued the request is the consumer's alone: the last to
// let go of it refuses it, for which we, who own the engine, would wait for ever.
void DeviceImpl::pass_on(ListenerImpl& listener, std::shared_ptr<RequestImpl> request) {
  std::list<EventQueueImpl::Entry> one(1);
  request->device = shared_from_this();
  one.front().from = &listener;
  one.front().event.kind = EventKind::connect_request;
  one.front().event.context = listener.context;
  one.front().event.request.impl_ = std::move(request);
  listener.events->put(std::move(one));
}

void DeviceImpl::on_cm_event(engine::CmEvent e) {
  using Kind = engine::CmEvent::Kind;
  if (e.kind == Kind::ConnectRequest) {
    auto* listener = static_cast<ListenerImpl*>(e.listener->owner);
    if (listener == nullptr) return;
    iwarp::Side::RequestInfo info;
    engine->iwarp().request_info(e.connection, &info);
    log_quietly(engine::LogLevel::Info, [&] { return ends_of(info.key) + ": " + name_of(e.kind); });
    auto request = std::make_shared<RequestImpl>();
    request->connection = e.connection;
    request->info = std::move(info);
    return pass_on(*listener, std::move(request));
  }
  auto* qp = static_cast<QpImpl*>(e.qp->owner);
  if (qp == nullptr) return;
  // What needs memory comes before what is changed: the engine tells again what it could not.
  Event event;
  event.connection = qp->connection.number;
  event.context = qp->context;
  event.error = {e.code, e.message};
  if (const auto kind = asynchronous(e.kind)) {
    event.kind = *kind;
    const bool wanted = qp->asynchronous_events || *kind == EventKind::last_receive;
    if (wanted && qp->events) qp->events->push(std::move(event), qp);
    log_event(*qp, e);
    return;
  }
  event.private_data = e.private_data;
  event.roce_peer = e.roce_peer;
  Error error = event.error;
  std::string private_data = e.private_data;
  {
    const std::lock_guard guard(qp->mutex);
    switch (e.kind) {
      case Kind::Established:
        event.kind = EventKind::established;
        qp->outcome = QpImpl::Outcome::Established;
        qp->private_data = std::move(private_data);
        break;
      case Kind::ConnectFailed:
        event.kind = EventKind::connect_failed;
        qp->outcome = QpImpl::Outcome::Failed;
        qp->error = std::move(error);
        qp->private_data = std::move(private_data);
        break;
      case Kind::Disconnected:
        event.kind = EventKind::disconnected;
        break;
      default:
        event.kind = EventKind::failed;
        qp->error = std::move(error);
        break;
    }
    qp->settle();
  }
  if (qp->events) qp->events->push(std::move(event), qp);
  log_event(*qp, e);
}

// ---- RoCE

void DeviceImpl::on_roce_request(engine::RoceListener& at, const engine::RoceRequest& what) {
  auto* const listener = static_cast<ListenerImpl*>(at.owner);
  if (listener == nullptr) return;
  auto request = std::make_shared<RequestImpl>();
  request->roce = true;
  request->service = what.datagrams ? Service::ud : what.xrc ? Service::xrc_receive : Service::rc;
  request->connection = what.handle;
  request->info.key = {what.local.ip, what.peer.ip, what.local.port, what.peer.port};
  const ByteView data = what.data.view();
  request->info.private_data.assign(data.begin(), data.end());
  request->info.ird = what.ird;
  request->terms = what.terms;
  request->of_peer = what.of_peer;
  request->info.ord = what.ord;
  log_quietly(engine::LogLevel::Info, [&] {
    return ends_of(request->info.key) + ": " + name_of(engine::CmEvent::Kind::ConnectRequest) +
           (what.datagrams ? " (RoCE, datagrams)" : " (RoCE)");
  });
  pass_on(*listener, std::move(request));
}

// What needs memory comes first: it is told again when there was none.
void DeviceImpl::on_roce_answer(void* owner, const engine::RoceAnswer& answer) {
  auto& asked = *static_cast<ResolutionImpl*>(owner);
  Event event;
  event.kind = answer.found ? EventKind::resolved : EventKind::resolve_failed;
  event.context = asked.context;
  const ByteView data = answer.data.view();
  event.private_data.assign(reinterpret_cast<const char*>(data.data()), data.size());
  if (answer.found) {
    event.peer.path.remote = answer.way.remote.to_string();
    event.peer.path.local = answer.way.local.to_string();
    event.peer.qp = answer.service.qpn;
    event.peer.qkey = answer.service.qkey;
  } else {
    event.error = {answer.code, answer.why};
  }
  log_quietly(engine::LogLevel::Info, [&] {
    return asked.local.to_string() + " - " + answer.way.remote.to_string() +
           (answer.found ? ": datagrams go to QP " + std::to_string(answer.service.qpn)
                         : std::string(": datagram service not found: ") + answer.why);
  });
  asked.events->push(std::move(event), &asked);
}

// What needs memory comes first: an end is told again when there was none.
void DeviceImpl::on_roce_agreement(void* owner, const engine::CmEvent& e) {
  using Kind = engine::CmEvent::Kind;
  auto& c = *static_cast<CmConnectionImpl*>(owner);
  Event event;
  event.kind = e.kind == Kind::Answered       ? EventKind::answered
               : e.kind == Kind::Established  ? EventKind::established
               : e.kind == Kind::Disconnected ? EventKind::disconnected
               : e.kind == Kind::TimeWaitOver ? EventKind::time_wait_over
                                              : EventKind::connect_failed;
  event.context = c.context;
  event.error = {e.code, e.message};
  event.private_data = e.private_data;
  event.roce_peer = e.roce_peer;
  log_quietly(engine::LogLevel::Info, [&] {
    return c.peer + ", connection without a queue pair: " + name_of(e.kind) +
           (e.message.empty() ? "" : ": " + e.message);
  });
  c.events->push(std::move(event), &c);
}

// Within a burst. Without memory nothing is told: the state says it, and completions do.
void DeviceImpl::tell_quietly(QpImpl& qp, EventKind kind, const Error& error) const {
  if (!qp.events) return;
  try {
    Event event;
    event.kind = kind;
    event.connection = qp.connection.number;
    event.context = qp.context;
    event.error = error;
    qp.events->push(std::move(event), &qp);
  } catch (const std::bad_alloc&) {
  }
}

void DeviceImpl::tell_failed(QpImpl& qp, Errc code, const std::string& why,
                             std::optional<EventKind> cause) {
  tell_quietly(qp, EventKind::failed, {code, why});
  if (cause && qp.asynchronous_events) tell_quietly(qp, *cause, {code, why});
  log_quietly(engine::LogLevel::Info, [&] {
    const std::lock_guard guard(qp.mutex);
    return "QP " + std::to_string(qp.qp->number()) + ", " + qp.connection.peer + ": failed: " + why;
  });
}

void DeviceImpl::on_qp_failed(verbs::QueuePair& of, Errc code, const std::string& why) {
  auto* qp = static_cast<QpImpl*>(of.owner);
  if (qp != nullptr) tell_failed(*qp, code, why, std::nullopt);
}

void DeviceImpl::on_qp_event(verbs::QueuePair& of, roce::QpEvent event) {
  using Kind = roce::QpEvent;
  auto* qp = static_cast<QpImpl*>(of.owner);
  if (qp == nullptr) return;
  switch (event) {
    case Kind::Established:
      if (qp->asynchronous_events) tell_quietly(*qp, EventKind::communication_established);
      return;
    case Kind::Drained:
      return tell_quietly(*qp, EventKind::send_queue_drained);
    case Kind::LastReceive:
      return tell_quietly(*qp, EventKind::last_receive);
    case Kind::RefusedAccess:
      return tell_failed(*qp, Errc::protocol,
                         "the peer requested memory that it has no access rights to",
                         EventKind::access_error);
    case Kind::RefusedRequest:
      return tell_failed(*qp, Errc::protocol, "the peer sent an invalid request",
                         EventKind::request_error);
    case Kind::RefusedFault:
      return tell_failed(*qp, Errc::io,
                         "an internal error occurred while executing a request of the peer",
                         EventKind::fatal);
    case Kind::Failed:
      return tell_failed(*qp, Errc::reset,
                         "a work request failed: see the status of its completion", std::nullopt);
    case Kind::Silent:  // of a queue pair with a connection alone, which says so itself
      return;
  }
}

void DeviceImpl::log_event(QpImpl& qp, const engine::CmEvent& e) const {
  log_quietly(engine::LogLevel::Info, [&] {
    const std::lock_guard guard(qp.mutex);
    return "QP " + std::to_string(e.qp->number()) + ", " + qp.connection.peer + ": " +
           name_of(e.kind) + (e.message.empty() ? "" : ": " + e.message);
  });
}

}  // namespace detail
}  // namespace urnic
