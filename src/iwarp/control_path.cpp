#include "iwarp/control_path.h"

#include <optional>
#include <string>
#include <utility>

#include "ddp_rdma/stream.h"

namespace urnic::iwarp {

using verbs::QpState;

ControlPath::ControlPath(Side* side, verbs::Completions* completions, verbs::MemoryTable* memory,
                         verbs::QueuePairs* qps)
    : side_(*side), completions_(*completions), memory_(*memory), qps_(*qps) {
  side_.use(this);
}

// ---- queue pairs

verbs::QueuePair* ControlPath::create_qp(ddp::StreamConfig config, verbs::CompletionQueue* send,
                                         verbs::CompletionQueue* receive) {
  if (config.id != 0) {
    if (qps_.has(config.id)) return nullptr;
  } else {
    config.id = qps_.new_number();
  }
  if (config.id == 0) return nullptr;
  auto made = std::make_unique<verbs::QueuePair>(config.id, verbs::kIwarpRules, verbs::Service::Rc,
                                                 config, side_.queue_layout(), send, receive);
  made->control = this;
  side_.attach(*made, config);
  verbs::QueuePair* qp = qps_.add(std::move(made));  // adds it completely, or not at all
  qp->state.modify(QpState::Init);
  return qp;
}

Result<verbs::QueuePair*> ControlPath::create(const verbs::QpRequest& r) {
  if (r.service != verbs::Service::Rc) {
    return Error{Errc::unsupported, "service: must be rc with iWARP"};
  }
  const Options& o = options();
  ddp::StreamConfig config;
  static_cast<verbs::WorkQueueSizes&>(config) = r.sizes;
  config.id = r.number;
  config.pd = r.pd;
  config.completion_method = o.completion_method;
  if (r.iwarp.completion_method) {
    config.completion_method = *r.iwarp.completion_method == 1 ? ddp::CompletionMethod::PerSend
                                                               : ddp::CompletionMethod::Shared;
  }
  config.completion_threshold = r.iwarp.completion_threshold.value_or(o.completion_threshold);
  config.receive_wait =
      r.iwarp.receive_wait_ms ? Duration::ms(*r.iwarp.receive_wait_ms) : o.receive_wait;
  verbs::QueuePair* const made = create_qp(config, r.send, r.receive);
  if (made != nullptr) return made;
  if (r.number == 0) return Error{Errc::no_memory, "out of memory"};
  return Error{Errc::in_use, "number: another queue pair already has this number"};
}

void ControlPath::destroy(verbs::QueuePair* qp, Instant now) {
  memory_.unbind_windows_of(qp->number());
  side_.destroy(qps_.take(qp), now);
}

verbs::QpVerdict ControlPath::move(verbs::QueuePair& qp, QpState to, std::uint32_t mask,
                                   Instant now) {
  const verbs::QpMove move = qp.state.judge(to, mask);
  if (!move.ok()) return move.verdict;
  const Side::Scope scope(side_);
  if (to == QpState::Sqd) {  // the orderly end changes the state itself
    side_.disconnect(qp, now);
    return move.verdict;
  }
  // The end of the connection changes the state to Error, flushes and reports.
  if (to == QpState::Error) side_.abort(qp, now);
  qp.state.modify(to, mask);
  if (move.effect == verbs::QpEffect::FlushAll) flush(completions_, qp, verbs::Status::Flushed);
  if (move.effect == verbs::QpEffect::Discard) {
    side_.abort_silently(qp, now);
    for (verbs::CompletionQueue* cq : {qp.send_cq, qp.receive_cq}) cq->forget(qp.number());
    ddp::stream_of(qp).reset();
    memory_.unbind_windows_of(qp.number());
    qp.starved = false;
    qp.last_receive_reported = false;
  }
  return move.verdict;
}

Result<void> ControlPath::modify(verbs::QueuePair& qp, QpState to, const QpAttributes& a,
                                 Instant now) {
  if (a.access && (*a.access & ~std::uint32_t{ddp::kAllRemoteAccess}) != 0) {
    return Error{Errc::invalid_argument,
                 "access: only access_remote_write, access_remote_read and access_remote_atomic "
                 "are allowed"};
  }
  const verbs::QpVerdict verdict = move(qp, to, verbs::kQpAttrState, now);
  if (verdict != verbs::QpVerdict::Ok) return verbs::no_such_move(qp.state, to);
  if (a.access) ddp::stream_of(qp).remote_access = static_cast<std::uint8_t>(*a.access);
  return {};
}

verbs::ControlPath::Depths ControlPath::depths(const verbs::QueuePair& qp) const {
  const ddp::Stream& s = ddp::stream_of(qp);
  return {static_cast<std::uint16_t>(s.inbound_reads.limit()),
          static_cast<std::uint16_t>(s.sender.ord())};
}

void ControlPath::sends_posted(verbs::QueuePair& qp, Instant now) {
  const Side::Scope scope(side_);
  flush_posted(completions_, qp);
  side_.sends_posted(qp, now);
  side_.leave(now);
}

void ControlPath::receives_posted(verbs::QueuePair& qp, Instant now) {
  const Side::Scope scope(side_);
  flush_posted(completions_, qp);
  side_.receives_posted(qp, now);
  side_.leave(now);
}

void ControlPath::fail(verbs::QueuePair& qp, Errc code, const char* why, Instant now) {
  side_.fail(qp, code, why, now);
}

bool ControlPath::completes_on_overrun(const verbs::QueuePair& qp) const {
  return qp.send_cq->overrun() || qp.receive_cq->overrun();
}

ConnectionStats ControlPath::stats_of(const verbs::QueuePair& qp) const {
  return side_.qp_stats(qp);
}

void ControlPath::detach_region(std::uint32_t stag) {
  qps_.for_each([&](verbs::QueuePair& qp) {
    if (qp.control == this) ddp::stream_of(qp).sender.detach_region(stag);
  });
}

// ---- listeners

Result<verbs::Listener*> ControlPath::bind(const verbs::LocalEnd& local, verbs::Service service) {
  if (service != verbs::Service::Rc) {
    return Error{Errc::unsupported, "service: must be rc, or with RoCE also ud or xrc_receive"};
  }
  auto made = side_.bind(local);
  if (!made) return made.error();
  made.value()->control = this;
  return made.value();
}

Result<void> ControlPath::listen(verbs::Listener& l, int backlog) {
  return side_.listen(static_cast<Listener*>(&l), backlog);
}

void ControlPath::close(verbs::Listener& l, Instant now) {
  side_.close_listener(static_cast<Listener*>(&l), now);
}

// ---- connections

ConnectParams ControlPath::params_of(const verbs::ConnectParams& o) const {
  ConnectParams p = default_params(options());
  if (o.iwarp.type) {
    p.context.initiated_as = *o.iwarp.type == ConnectionType::fast ? fastpath::ConnectionType::Fast
                                                                   : fastpath::ConnectionType::Slow;
  }
  if (o.iwarp.max_recovery_attempts) {
    p.context.max_recovery_attempts = *o.iwarp.max_recovery_attempts;
  }
  if (o.iwarp.crc) p.mpa.crc = *o.iwarp.crc;
  if (o.ird) p.mpa.ird = *o.ird;
  if (o.ord) p.mpa.ord = *o.ord;
  p.private_data.assign(o.private_data.begin(), o.private_data.end());
  p.keepalive = o.iwarp.keepalive;
  p.dscp = static_cast<std::uint8_t>(o.iwarp.traffic_class >> 2);
  p.close_wait_ms = static_cast<std::uint16_t>(o.iwarp.close_wait_ms);
  if (o.timeout > Duration::zero()) p.timeout = o.timeout;
  p.refusal_retry = o.refusal_retry;
  return p;
}

namespace {

// E-31: the reason why the connection could not be FAST; null if it can.
const char* why_slow(const ConnectParams& p, bool over_kernel_tcp) {
  if (over_kernel_tcp) return "port = tcp does not show TCP segments (no-segments)";
  if (p.context.initiated_as == fastpath::ConnectionType::Slow) return "its type is slow";
  return p.mpa.crc ? nullptr : "its MPA CRC may be off (setting crc)";
}

}  // namespace

Result<void> ControlPath::check(const verbs::ConnectParams& o) const {
  const char* const slow =
      o.iwarp.require_fast ? why_slow(params_of(o), over_kernel_tcp()) : nullptr;
  if (slow != nullptr) {
    return Error{Errc::unsupported,
                 std::string("require_fast: this connection cannot be FAST: ") + slow};
  }
  const mpa::Policy policy = options().mpa.policy;
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
  return {};
}

Result<void> ControlPath::connect(verbs::QueuePair& qp, const SocketAddress& to,
                                  const verbs::ConnectParams& o, Instant now) {
  ConnectParams p = params_of(o);
  if (o.source != nullptr) p.source = static_cast<const Listener*>(o.source)->to_connect_from();
  return side_.connect(qp, to, p, now);
}

Result<void> ControlPath::accept(const verbs::ConnectionRequest& r, verbs::QueuePair& qp,
                                 const verbs::ConnectParams& o, Instant now) {
  return side_.accept(r.id, qp, params_of(o), now);
}

void ControlPath::reject(const verbs::ConnectionRequest& r, ByteView private_data, Instant now) {
  side_.reject(r.id, private_data, now);
}

void ControlPath::disconnect(verbs::QueuePair& qp, Instant now) {
  side_.disconnect(qp, now);
}

void ControlPath::abort(verbs::QueuePair& qp, Instant now) {
  side_.abort(qp, now);
}

}  // namespace urnic::iwarp
