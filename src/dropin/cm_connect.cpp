// Connection requests and connections of rdma_cm: the calls, and the events that follow them.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "dropin/cm_datagrams.h"
#include "dropin/cm_id.h"
#include "dropin/cm_numbers.h"
#include "dropin/errors.h"
#include "dropin/injected_answers.h"
#include "dropin/undo.h"

namespace urnic::dropin {
namespace {

// Larger values are treated as this one, as in the kernel.
constexpr std::uint8_t kMostRetries = 7;

// 255 means "the maximum": when connecting, of the device; when accepting, of the peer's request.
constexpr std::uint8_t kAsManyReads = 255;

std::uint8_t reads(std::uint8_t asked, std::uint8_t most) {
  return asked == kAsManyReads ? most : asked;
}

bool too_many_reads(const Adapter& on, const rdma_conn_param& p) {
  const auto above = [&](std::uint8_t asked, const char* setting) {
    return asked != kAsManyReads && asked > on.most_reads(setting);
  };
  return above(p.responder_resources, "ird") || above(p.initiator_depth, "ord");
}

// The parameters of the queue pair that a peer's message contains.
rdma_conn_param shown(const RocePeer& peer) {
  rdma_conn_param p{};
  p.qp_num = peer.qp_number;
  p.retry_count = peer.retry_count;
  p.rnr_retry_count = peer.rnr_retry;
  p.srq = peer.srq ? 1 : 0;
  p.flow_control = peer.flow_control ? 1 : 0;
  return p;
}

int status_of(const Error& e) {
  return -to_errno(e.code);
}

}  // namespace

ConnectionOptions options_of(const CmId& id, const rdma_conn_param& p) {
  ConnectionOptions o;
  o.ird = p.responder_resources;
  o.ord = p.initiator_depth;
  if (id.adapter->traits().carries_conn_param) {
    o.roce.retry_count = std::min(p.retry_count, kMostRetries);
    o.roce.rnr_retry = std::min(p.rnr_retry_count, kMostRetries);
    o.roce.ack_timeout = id.path_options.ack_timeout;
    o.roce.min_rnr_timer = kMinRnrTimer;
    o.roce.traffic_class = id.path_options.tos;
    o.roce.flow_control = p.flow_control != 0;
  } else {
    o.iwarp.traffic_class = id.path_options.tos.value_or(0);
  }
  o.private_data = private_data_of(&p);
  return o;
}

std::shared_ptr<Endpoint> endpoint_for(CmId* id, const rdma_conn_param* p) {
  if (ibv_qp* qp = id->id().qp; qp != nullptr) {
    auto end = Qp::of(qp)->end;
    return &end->adapter == id->adapter ? end : nullptr;
  }
  return p == nullptr ? nullptr : endpoint_of(*id->adapter, p->qp_num);
}

void CmId::on_request(Event& event, Adapter& at, ibv_context* verbs, ibv_pd* pd) {
  CmId* made = make_id(CmChannel::of(id().channel), id().context, id().ps, sync);
  if (made == nullptr) return;  // destroying the request refuses it
  Undo whole([&] {
    if (made->sync) delete CmChannel::of(made->id().channel);
    delete made;
  });
  made->adapter = &at;
  made->stage = IdState::Requested;
  made->request = std::move(event.request);
  from_text(made->request.local(), &made->source);
  from_text(made->request.peer(), &made->destination);
  if (is_link_local(made->source)) {  // then the peer is on the same link
    give_link(&made->source, link_of(at, made->source));
    give_link(&made->destination, made->source.v6.sin6_scope_id);
  }
  made->show_addresses();
  rdma_cm_id& r = made->id();
  // Limit the requested values to those of the device, so that accept can take the reported values.
  made->responder_resources =
      static_cast<std::uint8_t>(std::min<unsigned>(made->request.ird(), at.most_reads("ird")));
  made->initiator_depth =
      static_cast<std::uint8_t>(std::min<unsigned>(made->request.ord(), at.most_reads("ord")));
  r.verbs = verbs;
  r.pd = pd;
  r.port_num = 1;
  made->show_path();
  auto e = std::make_unique<CmEvent>();
  e->base.id = &r;
  e->base.listen_id = &id();
  e->base.event = RDMA_CM_EVENT_CONNECT_REQUEST;
  const auto data = made->request.private_data();
  if (has_datagrams()) {
    fill_request(e.get(), {data.begin(), data.end()});
  } else {
    rdma_conn_param& conn = e->base.param.conn;
    conn = shown(made->request.roce_peer());
    conn.responder_resources = made->responder_resources;
    conn.initiator_depth = made->initiator_depth;
    e->keep_data({data.begin(), data.end()});
  }
  deliver(this, std::move(e));
  whole.keep();
}

// The agreed values, which may be smaller than those this end requested. A kernel reports nothing
// to RoCE's passive end, not even the private data of the last message.
rdma_conn_param CmId::agreed(const RocePeer& peer, bool passive) const {
  if (end == nullptr || !end->handle || (passive && !adapter->traits().acceptor_learns_conn_param))
    return {};
  const auto number = [&](std::uint16_t reads) {
    return static_cast<std::uint8_t>(std::min<unsigned>(reads, 255));
  };
  rdma_conn_param p = shown(peer);
  p.responder_resources = number(end->handle.ird());
  p.initiator_depth = number(end->handle.ord());
  return p;
}

namespace {

struct Failure {
  rdma_cm_event_type type;
  int status;
};

// On RoCE a refusal is recognized by the reject reason in the message, at either end.
Failure failure_of(const Event& e, bool passive, const TransportTraits& traits) {
  if (const int reason = e.roce_peer.reject_reason; reason != 0) {
    return {RDMA_CM_EVENT_REJECTED, reason};
  }
  const int status = status_of(e.error);
  const Errc code = e.error.code;
  const bool heard_nothing = code == Errc::unreachable || code == Errc::timed_out;
  if (heard_nothing && (traits.acceptor_sees_unreachable || !passive))
    return {RDMA_CM_EVENT_UNREACHABLE, status};
  const bool rejected = code == Errc::rejected || code == Errc::refused;
  if (rejected && !passive) return {RDMA_CM_EVENT_REJECTED, status};
  return {RDMA_CM_EVENT_CONNECT_ERROR, status};
}

}  // namespace

void fail_connection(CmId* id, const Error& error) {
  Event e;
  e.kind = EventKind::connect_failed;
  e.error = error;
  id->on_connection(e);
}

void CmId::on_connection(Event& event) {
  switch (event.kind) {
    case EventKind::established: {
      if (stage != IdState::Connecting && stage != IdState::Accepting) return;
      const bool passive = stage == IdState::Accepting;
      const rdma_conn_param shown = agreed(event.roce_peer, passive);
      stage = IdState::Connected;
      if (passive && !adapter->traits().acceptor_learns_conn_param) event.private_data.clear();
      // Otherwise the port is the bound one, which is known already.
      if (end != nullptr && !adapter->traits().resolve_addr_binds)
        show_source(end->handle.stats().local);
      tell(RDMA_CM_EVENT_ESTABLISHED, 0, std::move(event.private_data), shown);
      return;
    }
    case EventKind::answered: {
      if (stage != IdState::Connecting) return;
      numbered.answered = true;
      rdma_conn_param p = shown(event.roce_peer);
      p.responder_resources = event.roce_peer.ird;
      p.initiator_depth = event.roce_peer.ord;
      tell(RDMA_CM_EVENT_CONNECT_RESPONSE, 0, std::move(event.private_data), p);
      return;
    }
    case EventKind::connect_failed: {
      if (stage != IdState::Connecting && stage != IdState::Accepting) return;
      const Failure f = failure_of(event, stage == IdState::Accepting, adapter->traits());
      stage = IdState::Ended;
      tell(f.type, f.status, std::move(event.private_data));
      return;
    }
    case EventKind::disconnected:
    case EventKind::failed: {
      const IdState before = stage;
      stage = IdState::Ended;
      if (before == IdState::Connected) tell(RDMA_CM_EVENT_DISCONNECTED, 0);
      if (before == IdState::Connecting || before == IdState::Accepting) {
        tell(RDMA_CM_EVENT_CONNECT_ERROR, status_of(event.error));
      }
      return;
    }
    case EventKind::time_wait_over:
      if (stage == IdState::Ended) tell(RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
      return;
    default:
      return;
  }
}

namespace {

int resolve_route(CmId* id) {
  const std::lock_guard guard(Process::get().cm);
  if (id->stage != IdState::AddressResolved) return EINVAL;
  id->stage = IdState::RouteResolved;
  id->show_path();
  id->tell(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
  return 0;
}

int connect_to(CmId* id, const rdma_conn_param* given) {
  rdma_conn_param p{};
  if (given != nullptr) {
    p = *given;
  } else {
    p.responder_resources = p.initiator_depth = kAsManyReads;
    p.retry_count = p.rnr_retry_count = kMostRetries;
  }
  if (id->adapter == nullptr || too_many_reads(*id->adapter, p)) return EINVAL;
  p.responder_resources = reads(p.responder_resources, id->adapter->most_reads("ird"));
  p.initiator_depth = reads(p.initiator_depth, id->adapter->most_reads("ord"));
  if (has_number_alone(*id)) return connect_number(id, p);
  auto end = endpoint_for(id, given);
  if (end == nullptr) return EINVAL;
  std::string to;
  ConnectionOptions o;
  std::optional<std::uint8_t> timeout;
  {
    const std::lock_guard guard(Process::get().cm);
    if (id->stage != IdState::RouteResolved) return EINVAL;
    id->stage = IdState::Connecting;
    id->end = end;
    end->manager = id;
    o = options_of(*id, p);
    timeout = id->path_options.ack_timeout;
    to = text_of(id->destination);
  }
  o.refusal_retry_ms = kRefusalRetryMs;
  if (!id->bindings.empty()) o.source = &id->bindings.front().bound;
  end->allow(*o.ird != 0);
  end->tell_timeout(timeout);
  std::string local;  // set if connecting chooses the port
  const auto started = [&] {
    const auto held = end->hold();
    auto begun = end->handle.connect_start(to, o);
    if (begun && !id->adapter->traits().resolve_addr_binds) local = end->handle.stats().local;
    return begun;
  }();
  if (started) {
    if (local.empty()) return 0;
    const std::lock_guard guard(Process::get().cm);
    if (id->stage == IdState::Connecting) id->show_source(local);
    return 0;
  }
  const std::lock_guard guard(Process::get().cm);
  const Errc code = started.error().code;
  if (is_of_the_call(code)) {
    id->stage = IdState::RouteResolved;
    id->detach_end();
    return to_errno(code);
  }
  fail_connection(id, started.error());
  return 0;
}

int accept_on(CmId* id, const rdma_conn_param* given) {
  rdma_conn_param p{};
  if (given != nullptr) {
    p = *given;
  } else {
    p.responder_resources = p.initiator_depth = kAsManyReads;
    p.rnr_retry_count = kMostRetries;
  }
  if (id->adapter == nullptr || too_many_reads(*id->adapter, p)) return EINVAL;
  p.responder_resources = reads(p.responder_resources, id->responder_resources);
  p.initiator_depth = reads(p.initiator_depth, id->initiator_depth);
  if (has_number_alone(*id)) return accept_number(id, p);
  auto end = endpoint_for(id, given);
  if (end == nullptr) return EINVAL;
  ConnectRequest request;
  ConnectionOptions o;
  std::optional<std::uint8_t> timeout;
  {
    const std::lock_guard guard(Process::get().cm);
    if (id->stage != IdState::Requested) return EINVAL;
    id->stage = IdState::Accepting;
    id->end = end;
    end->manager = id;
    request = std::move(id->request);
    o = options_of(*id, p);
    timeout = id->path_options.ack_timeout;
  }
  end->allow(*o.ird != 0);
  end->tell_timeout(timeout);
  const auto ok = [&] {
    const auto held = end->hold();
    return request.accept(end->handle, o);
  }();
  if (ok) {
    end->refresh();  // over RoCE it is in RTS now
    return 0;
  }
  const std::lock_guard guard(Process::get().cm);
  if (ok.error().code != Errc::closed) {
    id->stage = IdState::Ended;
    id->detach_end();
    return to_errno(ok.error().code);
  }
  // The peer has gone, which is not an error of the call. It is reported as an event, as with an
  // adapter that finds out when its answer is not acknowledged. All programs handle that event, but
  // not all handle an error here.
  (void)end->handle.modify(QpState::error);
  fail_connection(id, ok.error());
  return 0;
}

}  // namespace

}  // namespace urnic::dropin

using namespace urnic::dropin;  // the exported functions are in the global namespace

namespace {

// There is no connection: moves the queue pair to Error, without any message or event.
int leave_datagrams(CmId* id) {
  {
    const std::lock_guard guard(Process::get().cm);
    if (id->stage != IdState::Connected) return failed(EINVAL);
  }
  if (id->id().qp == nullptr) return 0;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  return zero_or_failed(urnic_ibv_modify_qp(id->id().qp, &attr, IBV_QP_STATE));
}

}  // namespace

int urnic_rdma_resolve_route(rdma_cm_id* r, int) {
  if (const int e = injected(VerbsKind::rdma_resolve_route); e != 0) return failed(e);
  const auto fault = injected_answer(kRouteAnswers);
  return guarded(
      [&] {
        CmId* id = CmId::of(r);
        return begun(id, fault ? give(id, *fault) : resolve_route(id));
      },
      -1);
}

int urnic_rdma_connect(rdma_cm_id* r, rdma_conn_param* p) {
  if (const int e = injected(VerbsKind::rdma_connect); e != 0) return failed(e);
  const auto fault = injected_answer(kConnectAnswers);
  return guarded(
      [&] {
        CmId* id = CmId::of(r);
        if (fault) return begun(id, give(id, *fault));
        return begun(id, id->has_datagrams() ? connect_datagrams(id, p) : connect_to(id, p));
      },
      -1);
}

int urnic_rdma_accept(rdma_cm_id* r, rdma_conn_param* p) {
  if (const int e = injected(VerbsKind::rdma_accept); e != 0) return failed(e);
  return guarded(
      [&] {
        CmId* id = CmId::of(r);
        if (!id->has_datagrams()) return begun(id, accept_on(id, p));
        return zero_or_failed(accept_datagrams(id, p));  // no event follows
      },
      -1);
}

int urnic_rdma_reject(rdma_cm_id* r, const void* data, std::uint8_t length) {
  return guarded(
      [&] {
        CmId* id = CmId::of(r);
        const std::span said{static_cast<const std::uint8_t*>(data), data == nullptr ? 0u : length};
        if (has_number_alone(*id)) {
          if (const int e = reject_answer(id, said); e != ENOENT) return zero_or_failed(e);
        }
        urnic::ConnectRequest request;
        {
          const std::lock_guard guard(Process::get().cm);
          if (id->stage != IdState::Requested) return failed(EINVAL);
          id->stage = IdState::Ended;
          request = std::move(id->request);
        }
        request.reject(said);
        return 0;
      },
      -1);
}

int urnic_rdma_disconnect(rdma_cm_id* r) {
  return guarded(
      [&] {
        CmId* id = CmId::of(r);
        if (id->has_datagrams()) return leave_datagrams(id);
        if (has_number_alone(*id)) return disconnect_number(id);
        std::shared_ptr<Endpoint> end;
        {
          const std::lock_guard guard(Process::get().cm);
          const bool had_one = id->stage == IdState::Connected || id->stage == IdState::Ended;
          if (!had_one || id->end == nullptr) return failed(EINVAL);
          if (would_wait_forever(*id)) return failed(EINVAL);
          end = id->end;
        }
        end->disconnect();
        return complete(id);
      },
      -1);
}

// For programs that move their queue pair themselves. iWARP has no such step: the connection is
// established as soon as ESTABLISHED has arrived.
int urnic_rdma_establish(rdma_cm_id* r) {
  CmId* id = CmId::of(r);
  if (has_number_alone(*id)) {
    return zero_or_failed(guarded([&] { return establish_number(id); }, ENOMEM));
  }
  const std::lock_guard guard(Process::get().cm);
  const bool moves = id->adapter != nullptr && id->adapter->traits().connection_moves_qp;
  return moves && r->qp == nullptr && id->stage == IdState::Connected ? 0 : failed(EINVAL);
}

// The library knows already what happens on a queue pair of the id; nothing to do.
int urnic_rdma_notify(rdma_cm_id* r, ibv_event_type event) {
  CmId* id = CmId::of(r);
  if (has_number_alone(*id)) {
    return zero_or_failed(guarded([&] { return notify_number(id, event); }, ENOMEM));
  }
  return id->end == nullptr ? failed(EINVAL) : 0;
}

int urnic_rdma_get_request(rdma_cm_id* listen, rdma_cm_id** out) {
  CmId* id = CmId::of(listen);
  if (!id->sync) return failed(EINVAL);
  drop_last_event(listen);
  rdma_cm_event* event;
  if (urnic_rdma_get_cm_event(listen->channel, &event) != 0) return -1;
  return guarded(
      [&] {
        int error = 0;
        if (event->status != 0) {
          error = std::abs(event->status);
        } else if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
          error = EINVAL;
        } else if (id->of_requests.qp != nullptr) {
          ibv_qp_init_attr attr = *id->of_requests.qp;
          if (urnic_rdma_create_qp(event->id, id->of_requests.pd, &attr) != 0) error = errno;
        }
        if (error != 0) {
          listen->event = event;  // the program may still answer the request that is in it
          return failed(error);
        }
        *out = event->id;
        (*out)->event = event;
        return 0;
      },
      -1);
}
