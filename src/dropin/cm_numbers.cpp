#include "dropin/cm_numbers.h"

#include <utility>

#include "dropin/errors.h"
#include "dropin/roce_states.h"

namespace urnic::dropin {
namespace {

constexpr std::uint32_t k24Bits = 0xffffff;

class NumberSubject : public IdSubject {
 public:
  using IdSubject::IdSubject;
  void on_event(Event& event) override {
    const std::lock_guard guard(Process::get().cm);
    if (id_ != nullptr) id_->on_connection(event);
  }
};

CmQueuePair named_by(const rdma_conn_param& p) {
  return {p.qp_num & k24Bits, p.srq != 0};
}

// Undoes a failed call: there is no connection. Needs Process::cm.
void undo(CmId* id, IdState stage) {
  Process::get().remove(id->numbered.number);
  id->numbered.number = 0;
  id->numbered.subject.reset();
  id->stage = stage;
}

// The connection of the id if it is in `stage`, else null. Needs Process::cm.
std::shared_ptr<CmConnection> connection_of(const CmId& id, IdState stage) {
  return id.stage == stage ? id.numbered.connection : nullptr;
}

}  // namespace

int connect_number(CmId* id, const rdma_conn_param& p) {
  Process& process = Process::get();
  const std::lock_guard beginning(id->numbered.beginning);
  auto subject = std::make_shared<NumberSubject>(id);
  std::string to;
  ConnectionOptions o;
  {
    const std::lock_guard guard(process.cm);
    if (id->stage != IdState::RouteResolved) return EINVAL;
    id->stage = IdState::Connecting;
    id->numbered.subject = subject;
    id->numbered.number = process.add(subject);
    o = options_of(*id, p);
    to = text_of(id->destination);
  }
  o.refusal_retry_ms = kRefusalRetryMs;
  if (!id->bindings.empty()) o.source = &id->bindings.front().bound;
  Adapter& adapter = *id->adapter;
  auto begun = adapter.device().cm_connect_start(to, named_by(p), adapter.events(),
                                                 Process::as_context(id->numbered.number), o);
  const std::lock_guard guard(process.cm);
  if (begun) {
    id->numbered.connection = std::make_shared<CmConnection>(std::move(*begun));
    return 0;
  }
  const Errc code = begun.error().code;
  if (is_of_the_call(code)) {
    undo(id, IdState::RouteResolved);
    return to_errno(code);
  }
  fail_connection(id, begun.error());
  return 0;
}

int accept_number(CmId* id, const rdma_conn_param& p) {
  Process& process = Process::get();
  const std::lock_guard beginning(id->numbered.beginning);
  auto subject = std::make_shared<NumberSubject>(id);
  ConnectRequest request;
  ConnectionOptions o;
  {
    const std::lock_guard guard(process.cm);
    if (id->stage != IdState::Requested) return EINVAL;
    id->stage = IdState::Accepting;
    id->numbered.subject = subject;
    id->numbered.number = process.add(subject);
    request = std::move(id->request);
    o = options_of(*id, p);
  }
  auto accepted = request.accept_number(named_by(p), id->adapter->events(),
                                        Process::as_context(id->numbered.number), o);
  const std::lock_guard guard(process.cm);
  if (accepted) {
    id->numbered.connection = std::make_shared<CmConnection>(std::move(*accepted));
    return 0;
  }
  const Errc code = accepted.error().code;
  if (code == Errc::closed) {  // the peer has gone, as in accept_on() (cm_connect.cpp)
    fail_connection(id, accepted.error());
    return 0;
  }
  const bool open = code == Errc::invalid_argument;  // the program may answer it again
  if (open) id->request = std::move(request);
  undo(id, open ? IdState::Requested : IdState::Ended);
  return to_errno(code);
}

int establish_number(CmId* id) {
  const std::lock_guard beginning(id->numbered.beginning);
  std::shared_ptr<CmConnection> connection;
  {
    const std::lock_guard guard(Process::get().cm);
    connection = connection_of(*id, IdState::Connecting);
    if (connection == nullptr || !id->numbered.answered) return EINVAL;
    id->stage = IdState::Connected;  // its end may be reported before the call has returned
  }
  if (connection->confirm()) return 0;
  const std::lock_guard guard(Process::get().cm);
  if (id->stage == IdState::Connected) id->stage = IdState::Connecting;
  return EINVAL;
}

int reject_answer(CmId* id, std::span<const std::uint8_t> data) {
  const std::lock_guard beginning(id->numbered.beginning);
  std::shared_ptr<CmConnection> connection;
  {
    const std::lock_guard guard(Process::get().cm);
    connection = connection_of(*id, IdState::Connecting);
    if (connection == nullptr || !id->numbered.answered) return ENOENT;
    id->stage = IdState::Ended;
  }
  return connection->reject(data) ? 0 : EINVAL;
}

int notify_number(CmId* id, ibv_event_type event) {
  if (event != IBV_EVENT_COMM_EST) return EINVAL;
  const std::lock_guard beginning(id->numbered.beginning);
  std::shared_ptr<CmConnection> connection;
  {
    const std::lock_guard guard(Process::get().cm);
    if (connection_of(*id, IdState::Connected) != nullptr) return EISCONN;
    connection = connection_of(*id, IdState::Accepting);
  }
  return connection != nullptr && connection->notice_request() ? 0 : EINVAL;
}

int disconnect_number(CmId* id) {
  std::shared_ptr<CmConnection> connection;
  {
    const std::lock_guard beginning(id->numbered.beginning);
    const std::lock_guard guard(Process::get().cm);
    connection = id->numbered.connection;
    if (connection == nullptr) return failed(EINVAL);
    // The connection is not established yet: a kernel returns success and does nothing.
    if (id->stage == IdState::Connecting || id->stage == IdState::Accepting) return 0;
    if (would_wait_forever(*id)) return failed(EINVAL);
  }
  connection->disconnect();
  return complete(id);
}

// ---- rdma_init_qp_attr

namespace {

// The attributes known so far, which depend on the messages of connection management that were
// received. Null: no connection is in progress. Needs Process::cm.
std::optional<Result<QpAttributes>> attributes_of(const CmId& id) {
  switch (id.stage) {
    case IdState::Requested: {
      QpAttributes a = id.request.attributes();
      a.min_rnr_timer = kMinRnrTimer;
      if (id.path_options.tos && a.path) a.path->traffic_class = *id.path_options.tos;
      if (id.path_options.ack_timeout && a.ack_timeout) a.ack_timeout = id.path_options.ack_timeout;
      return a;
    }
    case IdState::Connecting:
    case IdState::Accepting:
    case IdState::Connected:
      if (id.numbered.connection != nullptr) return id.numbered.connection->attributes();
      if (id.end != nullptr) return id.end->handle.attributes();
      return Error{Errc::wrong_state, {}};
    case IdState::Ended:
      return Error{Errc::wrong_state, {}};
    default:
      return std::nullopt;
  }
}

// Before there is a connection, Linux's rdma_cm returns the attributes for INIT, whatever state is
// requested.
int init_without_connection(const CmId& id, ibv_qp_attr* attr, int* mask) {
  const ibv_qp_attr init = init_attributes(true, mask);
  attr->pkey_index = init.pkey_index;
  attr->port_num = init.port_num;
  attr->qp_access_flags = id.handle.base.qp != nullptr ? init.qp_access_flags : 0;
  return 0;
}

int fill(Adapter& adapter, const QpAttributes& a, ibv_qp_attr* attr, int* mask) {
  switch (attr->qp_state) {
    case IBV_QPS_INIT: {
      const ibv_qp_attr init = init_attributes(a.responder_depth.value_or(1) != 0, mask);
      attr->pkey_index = init.pkey_index;
      attr->port_num = init.port_num;
      attr->qp_access_flags = init.qp_access_flags;
      return 0;
    }
    case IBV_QPS_RTR:
      if (!a.dest_qp) return EINVAL;  // the peer has not sent it yet
      *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
      break;
    case IBV_QPS_RTS:
      if (!a.sq_psn) return EINVAL;
      *mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
              IBV_QP_MAX_QP_RD_ATOMIC;
      break;
    default:
      return EINVAL;
  }
  show_numbers(a, *mask, attr);
  if ((*mask & IBV_QP_AV) != 0) attr->ah_attr = address_vector_of(adapter, a);
  return 0;
}

}  // namespace

int init_attributes_of(CmId* id, ibv_qp_attr* attr, int* mask) {
  const std::lock_guard beginning(id->numbered.beginning);
  const std::lock_guard guard(Process::get().cm);
  if (attr->qp_state != IBV_QPS_INIT && attr->qp_state != IBV_QPS_RTR &&
      attr->qp_state != IBV_QPS_RTS) {
    return EINVAL;
  }
  auto known = attributes_of(*id);
  if (!known) return init_without_connection(*id, attr, mask);
  if (!*known) return EINVAL;
  return fill(*id->adapter, **known, attr, mask);
}

}  // namespace urnic::dropin
