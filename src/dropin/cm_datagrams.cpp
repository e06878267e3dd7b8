#include "dropin/cm_datagrams.h"

#include <algorithm>
#include <utility>

#include "dropin/address_handle.h"
#include "dropin/gids.h"

namespace urnic::dropin {
namespace {

constexpr std::uint8_t kHopLimit = 64;
// The status in RDMA_CM_EVENT_UNREACHABLE, as a kernel sets it: that of the peer's answer.
constexpr int kNoSuchService = 1, kRejected = 2;

int status_of(const Error& e) {
  if (e.code == Errc::refused) return kNoSuchService;
  return e.code == Errc::rejected ? kRejected : -to_errno(e.code);
}

void point_at_data(CmEvent* e) {
  rdma_ud_param& ud = e->base.param.ud;
  if (e->private_data.empty()) return;
  ud.private_data = e->private_data.data();
  ud.private_data_len =
      static_cast<std::uint8_t>(std::min<std::size_t>(e->private_data.size(), 255));
}

// The peer has answered, or the request has failed. Needs Process::cm.
void on_resolved(CmId* id, Event& event) {
  if (id->stage != IdState::Connecting) return;
  auto e = std::make_unique<CmEvent>();
  e->base.id = &id->id();
  e->private_data = std::move(event.private_data);
  rdma_ud_param& ud = e->base.param.ud;
  ud = {};
  if (event.kind == EventKind::resolved) {
    id->stage = IdState::Connected;
    e->base.event = RDMA_CM_EVENT_ESTABLISHED;
    ud.ah_attr = address_vector_between(*id->adapter, id->source, id->destination);
    ud.ah_attr.grh.hop_limit = kHopLimit;
    ud.ah_attr.grh.traffic_class = id->path_options.tos.value_or(0);
    ud.qp_num = event.peer.qp;
    ud.qkey = event.peer.qkey;
  } else {
    id->stage = IdState::Ended;
    e->base.event = RDMA_CM_EVENT_UNREACHABLE;
    e->base.status = status_of(event.error);
  }
  point_at_data(e.get());
  deliver(id, std::move(e));
}

class DatagramSubject : public IdSubject {
 public:
  using IdSubject::IdSubject;
  void on_event(Event& event) override {
    const std::lock_guard guard(Process::get().cm);
    if (id_ != nullptr) on_resolved(id_, event);
  }
};

}  // namespace

void keep_those_with_datagrams(std::vector<Adapter*>* adapters) {
  std::erase_if(*adapters, [](const Adapter* a) { return !a->traits().has_datagrams; });
}

void fill_request(CmEvent* e, std::string private_data) {
  e->private_data = std::move(private_data);
  e->base.param.ud = {};
  point_at_data(e);
}

int connect_datagrams(CmId* id, const rdma_conn_param* p) {
  if (id->adapter == nullptr) return EINVAL;
  Process& process = Process::get();
  auto subject = std::make_shared<DatagramSubject>(id);
  std::string to;
  {
    const std::lock_guard guard(process.cm);
    if (id->stage != IdState::RouteResolved) return EINVAL;
    id->stage = IdState::Connecting;
    id->question.subject = subject;
    to = text_of(id->destination);
  }
  ResolveOptions o;
  o.private_data = private_data_of(p);
  o.refusal_retry_ms = kRefusalRetryMs;
  if (!id->bindings.empty()) o.source = &id->bindings.front().bound;
  const std::uint64_t number = process.add(subject);
  Adapter& adapter = *id->adapter;
  auto asked = adapter.device().resolve_start(to, adapter.events(), Process::as_context(number), o);
  const std::lock_guard guard(process.cm);
  id->question.number = number;
  if (asked) {
    id->show_source(asked->local());
    id->question.resolution = std::move(*asked);
    return 0;
  }
  const Errc code = asked.error().code;
  if (code == Errc::invalid_argument || code == Errc::no_memory) {
    id->stage = IdState::RouteResolved;
    id->question = {};
    process.remove(number);
    return to_errno(code);
  }
  Event e;  // errors of the network are reported as events
  e.kind = EventKind::resolve_failed;
  e.error = asked.error();
  on_resolved(id, e);
  return 0;
}

int accept_datagrams(CmId* id, const rdma_conn_param* p) {
  if (id->adapter == nullptr) return EINVAL;
  // If the id has no queue pair, the number in `p` is the answer, whichever queue pair it belongs
  // to.
  auto end = id->id().qp != nullptr ? endpoint_for(id, p) : nullptr;
  if (end == nullptr && (id->id().qp != nullptr || p == nullptr)) return EINVAL;
  ConnectRequest request;
  {
    const std::lock_guard guard(Process::get().cm);
    if (id->stage != IdState::Requested) return EINVAL;
    id->stage = IdState::Accepting;
    request = std::move(id->request);
  }
  ConnectionOptions o;
  o.private_data = private_data_of(p);
  const auto ok = [&] {
    if (end == nullptr) {
      return request.accept_datagrams(p->qp_num & 0xffffff, RDMA_UDP_QKEY, o.private_data);
    }
    const auto held = end->hold();
    return request.accept(end->handle, o);
  }();
  const std::lock_guard guard(Process::get().cm);
  if (ok) {
    id->stage = IdState::Connected;
    return 0;
  }
  if (ok.error().code == Errc::closed) {
    id->stage = IdState::Ended;
    return ECONNRESET;
  }
  id->stage = IdState::Requested;  // the program may answer it again
  id->request = std::move(request);
  return to_errno(ok.error().code);
}

int init_datagrams(ibv_qp_attr* attr, int* mask) {
  switch (attr->qp_state) {
    case IBV_QPS_INIT:
      attr->pkey_index = 0;
      attr->port_num = 1;
      attr->qkey = RDMA_UDP_QKEY;
      *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
      return 0;
    case IBV_QPS_RTR:
      *mask = IBV_QP_STATE;
      return 0;
    case IBV_QPS_RTS:
      attr->sq_psn = 0;
      *mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
      return 0;
    default:
      return EINVAL;
  }
}

int ready_datagrams(ibv_qp* qp) {
  for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr attr{};
    attr.qp_state = to;
    int mask = 0;
    (void)init_datagrams(&attr, &mask);
    if (const int e = urnic_ibv_modify_qp(qp, &attr, mask); e != 0) return e;
  }
  return 0;
}

}  // namespace urnic::dropin
