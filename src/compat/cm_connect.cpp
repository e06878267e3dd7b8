// Addresses, requests, connections: what the calls of rdma_cm do and what becomes of them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "compat/cm_id.h"
#include "compat/errors.h"

namespace urnic::compat {
namespace {

constexpr int kBacklog = 128;
// Programs announce a port before they listen on it.
constexpr int kRefusalRetryMs = 100;

// What a queue pair with nothing else to say of itself offers (R: 255 is "the most").
std::uint16_t reads(std::uint8_t asked, const char* setting) {
  const std::int64_t most = Process::get().config().get_int(setting);
  return static_cast<std::uint16_t>(asked == 0xff ? std::min<std::int64_t>(most, 255) : asked);
}

bool too_many_reads(const rdma_conn_param& p) {
  const auto above = [](std::uint8_t asked, const char* setting) {
    return asked != 0xff && asked > Process::get().config().get_int(setting);
  };
  return above(p.responder_resources, "ird") || above(p.initiator_depth, "ord");
}

ConnectionOptions options_of(const rdma_conn_param& p) {
  ConnectionOptions o;
  o.ird = reads(p.responder_resources, "ird");
  o.ord = reads(p.initiator_depth, "ord");
  o.private_data = {static_cast<const std::uint8_t*>(p.private_data),
                    p.private_data == nullptr ? 0u : p.private_data_len};
  return o;
}

// The queue pair of the id, or the one the parameters name.
std::shared_ptr<Endpoint> endpoint_for(rdma_cm_id* r, const rdma_conn_param* p) {
  if (r->qp != nullptr) return Qp::of(r->qp)->end;
  return p == nullptr ? nullptr : endpoint_of(p->qp_num);
}

int status_of(const Error& e) {
  return -to_errno(e.code);
}

class ListenSubject : public Subject {
 public:
  explicit ListenSubject(CmId* id) : id_(id) {}
  void on_event(Event& event) override {
    if (event.kind != EventKind::connect_request) return;
    // The new id needs the device; both are there since rdma_listen, so this does not fail.
    if (Process::get().shared_context() == nullptr || default_pd() == nullptr) return;
    const std::lock_guard guard(Process::get().cm);
    if (id_ != nullptr) id_->on_request(event);
  }
  void detach() { id_ = nullptr; }  // under Process::cm

 private:
  CmId* id_;
};

}  // namespace

void CmId::on_request(Event& event) {
  CmId* made = make_id(CmChannel::of(id().channel), id().context, id().ps, sync);
  if (made == nullptr) return;  // dropping the request refuses it
  made->stage = Stage::Requested;
  made->request = std::move(event.request);
  from_text(made->request.local(), &made->source);
  from_text(made->request.peer(), &made->destination);
  made->show_addresses();
  rdma_cm_id& r = made->id();
  made->responder_resources =
      static_cast<std::uint8_t>(std::min<unsigned>(made->request.ird(), 255));
  made->initiator_depth = static_cast<std::uint8_t>(std::min<unsigned>(made->request.ord(), 255));
  r.verbs = id_verbs;
  r.pd = id_pd;
  r.port_num = 1;
  auto e = std::make_unique<CmEvent>();
  e->base.id = &r;
  e->base.listen_id = &id();
  e->base.event = RDMA_CM_EVENT_CONNECT_REQUEST;
  const auto data = made->request.private_data();
  e->private_data.assign(data.begin(), data.end());
  rdma_conn_param& conn = e->base.param.conn;
  if (!data.empty()) {
    conn.private_data = e->private_data.data();
    conn.private_data_len = static_cast<std::uint8_t>(std::min<std::size_t>(data.size(), 255));
  }
  conn.responder_resources = made->responder_resources;
  conn.initiator_depth = made->initiator_depth;
  deliver(this, e.release());
}

void CmId::on_connection(Event& event) {
  switch (event.kind) {
    case EventKind::established:
      if (stage != Stage::Connecting && stage != Stage::Accepting) return;
      stage = Stage::Connected;
      if (end != nullptr) show_source(end->handle.stats().local);
      tell(RDMA_CM_EVENT_ESTABLISHED, 0, std::move(event.private_data));
      return;
    case EventKind::connect_failed: {
      if (stage != Stage::Connecting && stage != Stage::Accepting) return;
      const bool passive = stage == Stage::Accepting;
      stage = Stage::Ended;
      const Errc code = event.error.code;
      const bool rejected = code == Errc::rejected || code == Errc::refused;
      const bool unreachable = code == Errc::unreachable || code == Errc::timed_out;
      tell(passive       ? RDMA_CM_EVENT_CONNECT_ERROR
           : rejected    ? RDMA_CM_EVENT_REJECTED
           : unreachable ? RDMA_CM_EVENT_UNREACHABLE
                         : RDMA_CM_EVENT_CONNECT_ERROR,
           status_of(event.error), std::move(event.private_data));
      return;
    }
    case EventKind::disconnected:
    case EventKind::failed: {
      const Stage before = stage;
      stage = Stage::Ended;
      if (before == Stage::Connected) tell(RDMA_CM_EVENT_DISCONNECTED, 0);
      if (before == Stage::Connecting || before == Stage::Accepting) {
        tell(RDMA_CM_EVENT_CONNECT_ERROR, status_of(event.error));
      }
      return;
    }
    default:
      return;
  }
}

namespace {

// Address and port are the id's from now on.
int keep_address(CmId* id, Address* a) {
  auto bound = Process::get().device().bind(text_of(*a), id->options);
  if (!bound) return to_errno(bound.error().code);
  set_port(a, bound->port());
  id->bound = std::move(*bound);
  return 0;
}

int bind_to(CmId* id, const sockaddr* address) {
  Address a;
  if (!copy_address(address, &a)) return EAFNOSUPPORT;
  if (id->stage != Stage::Idle) return EINVAL;
  if (const int e = Process::get().open(); e != 0) return e;
  if (!is_wildcard(a)) {
    if (!is_ours(a)) return ENODEV;
    if (const int e = give_device(id); e != 0) return e;
  }
  if (const int e = keep_address(id, &a); e != 0) return e;
  const std::lock_guard guard(Process::get().cm);
  id->source = a;
  id->show_addresses();
  id->stage = Stage::Bound;
  return 0;
}

int resolve_address(CmId* id, const sockaddr* source, const sockaddr* destination) {
  if (destination == nullptr) return EINVAL;
  if (id->stage != Stage::Idle && id->stage != Stage::Bound) return EINVAL;
  Address to;
  if (!copy_address(destination, &to)) return EAFNOSUPPORT;
  if (id->stage == Stage::Idle && source != nullptr && source->sa_family != AF_UNSPEC) {
    if (const int e = bind_to(id, source); e != 0) return e;
  }
  if (const int e = Process::get().open(); e != 0) return e;
  Address from{};
  const int unreachable = choose_source(to, &from);
  if (unreachable == 0) {
    if (const int e = give_device(id); e != 0) return e;
  }
  const std::lock_guard guard(Process::get().cm);
  id->destination = to;
  if (unreachable != 0) {
    id->stage = Stage::Idle;
    id->tell(RDMA_CM_EVENT_ADDR_ERROR, -unreachable);
    return 0;
  }
  if (id->stage == Stage::Idle) {
    id->source = from;
  } else if (is_wildcard(id->source)) {
    set_port(&from, port_of(id->source));
    id->source = from;
  }
  id->show_addresses();
  id->stage = Stage::AddressResolved;
  id->tell(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
  return 0;
}

int resolve_route(CmId* id) {
  const std::lock_guard guard(Process::get().cm);
  if (id->stage != Stage::AddressResolved) return EINVAL;
  id->stage = Stage::RouteResolved;
  id->tell(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
  return 0;
}

int connect_to(CmId* id, const rdma_conn_param* given) {
  rdma_cm_id& r = id->id();
  rdma_conn_param p{};
  if (given != nullptr) {
    p = *given;
  } else {
    p.responder_resources = p.initiator_depth = 0xff;
  }
  if (too_many_reads(p)) return EINVAL;
  auto end = endpoint_for(&r, given);
  if (end == nullptr) return EINVAL;
  std::string to;
  {
    const std::lock_guard guard(Process::get().cm);
    if (id->stage != Stage::RouteResolved) return EINVAL;
    id->stage = Stage::Connecting;
    id->end = end;
    end->manager = id;
    const ConnectionOptions o = options_of(p);
    id->responder_resources = static_cast<std::uint8_t>(*o.ird);
    id->initiator_depth = static_cast<std::uint8_t>(*o.ord);
    to = text_of(id->destination);
  }
  ConnectionOptions o = options_of(p);
  o.refusal_retry_ms = kRefusalRetryMs;
  if (id->bound) o.source = &id->bound;
  const auto started = end->handle.connect_start(to, o);
  if (started) {
    const std::string local = end->handle.stats().local;
    const std::lock_guard guard(Process::get().cm);
    if (id->stage == Stage::Connecting) id->show_source(local);
    return 0;
  }
  const std::lock_guard guard(Process::get().cm);
  const Errc code = started.error().code;
  if (code == Errc::wrong_state || code == Errc::invalid_argument || code == Errc::no_memory) {
    id->stage = Stage::RouteResolved;
    id->detach_end();
    return to_errno(code);
  }
  // What the network says comes as an event.
  Event e;
  e.kind = EventKind::connect_failed;
  e.error = started.error();
  id->on_connection(e);
  return 0;
}

int accept_on(CmId* id, const rdma_conn_param* given) {
  rdma_cm_id& r = id->id();
  rdma_conn_param p{};
  if (given != nullptr) {
    p = *given;
  } else {
    p.responder_resources = id->responder_resources;
    p.initiator_depth = id->initiator_depth;
  }
  if (too_many_reads(p)) return EINVAL;
  auto end = endpoint_for(&r, given);
  if (end == nullptr) return EINVAL;
  ConnectRequest request;
  {
    const std::lock_guard guard(Process::get().cm);
    if (id->stage != Stage::Requested) return EINVAL;
    id->stage = Stage::Accepting;
    id->end = end;
    end->manager = id;
    request = std::move(id->request);
  }
  auto ok = request.accept(end->handle, options_of(p));
  if (ok) return 0;
  const std::lock_guard guard(Process::get().cm);
  id->stage = Stage::Ended;
  id->detach_end();
  return ok.error().code == Errc::closed ? ECONNRESET : to_errno(ok.error().code);
}

int listen_on(CmId* id, int backlog) {
  Process& process = Process::get();
  if (id->stage == Stage::Idle) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    if (const int e = bind_to(id, reinterpret_cast<sockaddr*>(&any)); e != 0) return e;
  }
  if (id->stage != Stage::Bound) return EINVAL;
  // For the ids of requests.
  id->id_verbs = process.shared_context();
  if (id->id_verbs == nullptr) return errno;
  id->id_pd = default_pd();
  if (id->id_pd == nullptr) return errno;
  auto subject = std::make_shared<ListenSubject>(id);
  id->subject = subject;
  id->number = process.add(std::move(subject));
  auto listener = process.device().listen(id->bound, backlog > 0 ? backlog : kBacklog,
                                          process.events(), Process::as_context(id->number));
  if (!listener) {
    process.remove(id->number);
    id->number = 0;
    id->subject.reset();
    return to_errno(listener.error().code);
  }
  const std::lock_guard guard(process.cm);
  id->listener = std::move(*listener);
  id->show_addresses();
  id->stage = Stage::Listening;
  return 0;
}

}  // namespace

int CmId::set_binding(bool* option, bool value) {
  if (stage != Stage::Idle && stage != Stage::Bound) return EINVAL;
  const bool before = std::exchange(*option, value);
  if (stage == Stage::Idle || before == value) return 0;
  bound = Binding();  // and again, as is wanted now
  return keep_address(this, &source);
}

void CmId::stop_listening() {
  if (subject != nullptr) static_cast<ListenSubject*>(subject.get())->detach();
  subject.reset();
}

}  // namespace urnic::compat

using namespace urnic::compat;  // the exported functions stand for themselves

namespace {

int answer(int error) {
  return error == 0 ? 0 : failed(error);
}

// What was begun well; a synchronous id waits for it.
int begun(CmId* id, int error) {
  return error == 0 ? complete(id) : failed(error);
}

}  // namespace

int urnic_rdma_bind_addr(rdma_cm_id* r, sockaddr* address) {
  return guarded(
      [&] { return answer(address == nullptr ? EINVAL : bind_to(CmId::of(r), address)); }, -1);
}

int urnic_rdma_resolve_addr(rdma_cm_id* r, sockaddr* source, sockaddr* destination, int) {
  return guarded(
      [&] { return begun(CmId::of(r), resolve_address(CmId::of(r), source, destination)); }, -1);
}

int urnic_rdma_resolve_route(rdma_cm_id* r, int) {
  return guarded([&] { return begun(CmId::of(r), resolve_route(CmId::of(r))); }, -1);
}

int urnic_rdma_connect(rdma_cm_id* r, rdma_conn_param* p) {
  return guarded([&] { return begun(CmId::of(r), connect_to(CmId::of(r), p)); }, -1);
}

int urnic_rdma_accept(rdma_cm_id* r, rdma_conn_param* p) {
  return guarded([&] { return begun(CmId::of(r), accept_on(CmId::of(r), p)); }, -1);
}

int urnic_rdma_listen(rdma_cm_id* r, int backlog) {
  return guarded([&] { return answer(listen_on(CmId::of(r), backlog)); }, -1);
}

int urnic_rdma_reject(rdma_cm_id* r, const void* data, std::uint8_t length) {
  return guarded(
      [&] {
        CmId* id = CmId::of(r);
        urnic::ConnectRequest request;
        {
          const std::lock_guard guard(Process::get().cm);
          if (id->stage != Stage::Requested) return failed(EINVAL);
          id->stage = Stage::Ended;
          request = std::move(id->request);
        }
        request.reject({static_cast<const std::uint8_t*>(data), data == nullptr ? 0u : length});
        return 0;
      },
      -1);
}

int urnic_rdma_disconnect(rdma_cm_id* r) {
  return guarded(
      [&] {
        CmId* id = CmId::of(r);
        std::shared_ptr<Endpoint> end;
        {
          const std::lock_guard guard(Process::get().cm);
          const bool had_one = id->stage == Stage::Connected || id->stage == Stage::Ended;
          if (!had_one || id->end == nullptr) return failed(EINVAL);
          end = id->end;
        }
        end->disconnect();
        return complete(id);
      },
      -1);
}

// For programs that move their queue pair themselves. iWARP has no such step: a connection whose
// ESTABLISHED has come is established.
int urnic_rdma_establish(rdma_cm_id* r) {
  const std::lock_guard guard(Process::get().cm);
  return r->qp == nullptr && CmId::of(r)->stage == Stage::Connected ? 0 : failed(EINVAL);
}

// What happened on the queue pair is known without being told.
int urnic_rdma_notify(rdma_cm_id* r, ibv_event_type) {
  return CmId::of(r)->end == nullptr ? failed(EINVAL) : 0;
}

int urnic_rdma_get_request(rdma_cm_id* listen, rdma_cm_id** out) {
  CmId* id = CmId::of(listen);
  if (!id->sync) return failed(EINVAL);
  if (listen->event != nullptr) {
    urnic_rdma_ack_cm_event(listen->event);
    listen->event = nullptr;
  }
  rdma_cm_event* event;
  if (urnic_rdma_get_cm_event(listen->channel, &event) != 0) return -1;
  return guarded(
      [&] {
        int error = 0;
        if (event->status != 0) {
          error = event->status < 0 ? -event->status : event->status;
        } else if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
          error = EINVAL;
        } else if (id->request_qp != nullptr) {
          ibv_qp_init_attr attr = *id->request_qp;
          if (urnic_rdma_create_qp(event->id, id->request_pd, &attr) != 0) error = errno;
        }
        if (error != 0) {
          urnic_rdma_ack_cm_event(event);
          return failed(error);
        }
        *out = event->id;
        (*out)->event = event;
        return 0;
      },
      -1);
}
