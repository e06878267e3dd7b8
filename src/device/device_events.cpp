// Delivers the engine's reports to the consumer: event queues, completion queues, the log.
#include <algorithm>
#include <cstring>

#include "device/device_impl.h"
#include "device/udp_addresses.h"

namespace urnic {
namespace device {

EventQueueImpl::~EventQueueImpl() {
  if (device == nullptr) return;  // no descriptor was left for the queue
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
    // The event of the device is lost; connections are not affected.
  }
}

void DeviceImpl::forget_events(const void* from) {
  const std::lock_guard guard(mutex);
  if (events != nullptr) events->take_of(from);
}

void DeviceImpl::on_cq_overrun(verbs::CompletionQueue* queue) {
  auto* cq = static_cast<CqImpl*>(queue);
  cq->notify();  // armed or not: otherwise a thread that sleeps on it would never wake
  log_quietly(device::LogLevel::Error, [&] {
    return "completion queue overrun: all " + std::to_string(cq->depth()) +
           " entries are in use; create it larger";
  });
  tell(EventKind::cq_overrun, queue, cq->context,
       "completion queue overrun: create it larger or poll it more often");
}

void DeviceImpl::on_address_conflict(const IpAddress& address, const MacAddress& with) {
  const std::string text =
      "IP address " + address.to_string() + " is also in use by " + with.to_string();
  log_quietly(device::LogLevel::Warn, [&] { return std::string(text); });
  tell(EventKind::address_conflict, nullptr, nullptr, text.c_str());
}

void DeviceImpl::watch_addresses() {
  address_news = std::make_unique<kernel_tcp::AddressNews>();
  if (address_news->fd() < 0) {
    log(device::LogLevel::Warn,
        std::string("cannot watch for changes of this machine's addresses: ") +
            std::strerror(address_news->error()));
    return;
  }
  driver->watched().watch(address_news->fd(), [this] {
    or_nothing([&] {
      if (!address_news->take()) return;
      if (!engine->over_kernel_tcp()) {
        const std::vector<IpPrefix> now = device::udp_addresses_now();
        driver->own([&](Instant) { return engine->roce_control().set_addresses(now), 0; });
      }
      tell(EventKind::addresses_changed, nullptr, nullptr, "");
    });
  });
}

void DeviceImpl::on_link(bool up, const std::string& why) {
  link_reason = up ? "" : why;
  if (!up) ++link_losses;
  log_quietly(device::LogLevel::Info,
              [&] { return up ? "link up" : "link down" + (why.empty() ? "" : ": " + why); });
  tell(up ? EventKind::link_up : EventKind::link_down, nullptr, nullptr, why.c_str());
}

namespace {

std::string ends_of(const SocketAddress& local, const SocketAddress& peer) {
  return local.to_string() + " - " + peer.to_string();
}

const char* name_of(verbs::Note note) {
  switch (note) {
    case verbs::Note::Refused:
      return "segment dropped";
    case verbs::Note::Downgraded:
      return "downgraded to SLOW";
    case verbs::Note::Upgraded:
      return "upgraded to FAST";
    case verbs::Note::TurnedAway:
      return "connection rejected";
  }
  return "";
}

const char* name_of(verbs::CmEvent::Kind kind) {
  using Kind = verbs::CmEvent::Kind;
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
    case Kind::Drained:
      return "send queue drained";
    case Kind::TimeWaitOver:
      return "time-wait is over";
    case Kind::Answered:
      return "answered";
  }
  return "";
}

// The event for those reports that do not change the state of the connection.
std::optional<EventKind> asynchronous(verbs::CmEvent::Kind kind) {
  using Kind = verbs::CmEvent::Kind;
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
    case Kind::Drained:
      return EventKind::send_queue_drained;
    case Kind::TimeWaitOver:
      return EventKind::time_wait_over;
    default:
      return std::nullopt;
  }
}

}  // namespace

void DeviceImpl::on_note(verbs::Note note, const SocketAddress& local, const SocketAddress& peer,
                         const char* why) {
  log_quietly(device::LogLevel::Debug,
              [&] { return ends_of(local, peer) + ": " + name_of(note) + ": " + why; });
}

// Allocates memory first. Once the request is queued, the consumer may own it alone: destroying the
// last reference refuses the request, which needs the ownership of the engine and would deadlock
// here, because this thread already holds it.
void DeviceImpl::pass_on(verbs::CmEvent e) {
  auto* const listener = static_cast<ListenerImpl*>(e.listener->owner);
  if (listener == nullptr) return;
  const verbs::ConnectionRequest& asked = e.request;
  log_quietly(device::LogLevel::Info, [&] {
    return ends_of(asked.local, asked.peer) + ": connect request (" + asked.control->name() +
           (asked.service == verbs::Service::Ud ? ", datagrams)" : ")");
  });
  auto request = std::make_shared<RequestImpl>();
  request->request = std::move(e.request);
  std::list<EventQueueImpl::Entry> one(1);
  request->device = shared_from_this();
  one.front().from = listener;
  one.front().event.kind = EventKind::connect_request;
  one.front().event.context = listener->context;
  one.front().event.request.impl_ = std::move(request);
  listener->events->put(std::move(one));
}

void DeviceImpl::on_cm_event(verbs::CmEvent e) {
  using Kind = verbs::CmEvent::Kind;
  if (e.kind == Kind::ConnectRequest) return pass_on(std::move(e));
  auto* qp = static_cast<QpImpl*>(e.qp->owner);
  if (qp == nullptr) return;
  // Allocate memory before changing anything: if that fails, the engine reports the event again.
  Event event;
  event.connection = qp->connection.number;
  event.context = qp->context;
  event.error = {e.code, e.message};
  if (const auto kind = asynchronous(e.kind)) {
    event.kind = *kind;
    const bool always = *kind == EventKind::last_receive || *kind == EventKind::send_queue_drained;
    const bool wanted = qp->asynchronous_events || always;
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
        qp->attempt = QpImpl::Attempt::Established;
        qp->private_data = std::move(private_data);
        break;
      case Kind::ConnectFailed:
        event.kind = EventKind::connect_failed;
        qp->attempt = QpImpl::Attempt::Failed;
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

// Allocates memory first: without it the answer is reported again later.
void DeviceImpl::on_datagram_answer(void* owner, const verbs::DatagramAnswer& answer) {
  auto& asked = *static_cast<ResolutionImpl*>(owner);
  Event event;
  event.kind = answer.found ? EventKind::resolved : EventKind::resolve_failed;
  event.context = asked.context;
  const ByteView data = answer.private_data;
  event.private_data.assign(reinterpret_cast<const char*>(data.data()), data.size());
  if (answer.found) {
    event.peer.path.remote = answer.remote.to_string();
    event.peer.path.local = answer.local.to_string();
    event.peer.qp = answer.qp_number;
    event.peer.qkey = answer.qkey;
  } else {
    event.error = {answer.code, answer.why};
  }
  log_quietly(device::LogLevel::Info, [&] {
    return asked.local.to_string() + " - " + answer.remote.to_string() +
           (answer.found ? ": datagrams go to QP " + std::to_string(answer.qp_number)
                         : std::string(": datagram service not found: ") + answer.why);
  });
  asked.events->push(std::move(event), &asked);
}

// Allocates memory first: without it an end is reported again later.
void DeviceImpl::on_cm_connection(void* owner, const verbs::CmEvent& e) {
  using Kind = verbs::CmEvent::Kind;
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
  log_quietly(device::LogLevel::Info, [&] {
    return c.peer + ", connection without a queue pair: " + name_of(e.kind) +
           (e.message.empty() ? "" : ": " + e.message);
  });
  c.events->push(std::move(event), &c);
}

void DeviceImpl::log_event(QpImpl& qp, const verbs::CmEvent& e) const {
  log_quietly(device::LogLevel::Info, [&] {
    const std::lock_guard guard(qp.mutex);
    return "QP " + std::to_string(e.qp->number()) + ", " + qp.connection.peer + ": " +
           name_of(e.kind) + (e.message.empty() ? "" : ": " + e.message);
  });
}

}  // namespace device
}  // namespace urnic
