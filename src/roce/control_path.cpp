#include "roce/control_path.h"

#include <utility>

#include "ib_cm/consent.h"
#include "roce/attributes.h"

namespace urnic::roce {
namespace {

Options with_queues(const Options& options, ib::XrcQueues* xrc) {
  Options all = options;
  all.xrc = xrc;
  return all;
}

// The largest path MTU whose packets fit, with either version of IP.
ib::PathMtu path_mtu_within(std::uint32_t ip_mtu) {
  constexpr std::uint32_t kIpv6Header = 40;
  ib::PathMtu mtu = ib::PathMtu::k4096;
  while (mtu != ib::PathMtu::k256 && ib::bytes(mtu) + kIpv6Header + kMostAround > ip_mtu) {
    mtu = static_cast<ib::PathMtu>(ib::bytes(mtu) / 2);
  }
  return mtu;
}

// EUI-64 (RFC 4291, appendix A).
std::uint64_t guid_of(const MacAddress& mac) {
  const auto& m = mac.bytes;
  std::uint64_t guid = 0;
  for (const std::uint8_t byte : {static_cast<std::uint8_t>(m[0] ^ 2), m[1], m[2],
                                  std::uint8_t{0xff}, std::uint8_t{0xfe}, m[3], m[4], m[5]}) {
    guid = guid << 8 | byte;
  }
  return guid;
}

ib_cm::Options cm_options(const Options& options, const net::Wire& wire) {
  ib_cm::Options cm;
  cm.key = options.cm_key;
  cm.ca_guid = guid_of(wire.interface().mac());
  cm.most_mtu = [&wire](const ib_cm::AddressPair& a) {
    return path_mtu_within(wire.mtu_between(a.local, a.remote));
  };
  if (options.selective) cm.extensions = ib_cm::kExtensionSelective | ib_cm::kExtensionParts;
  return cm;
}

}  // namespace

ControlPath::ControlPath(const Options& options, const ConnectDefaults& defaults,
                         const GateRules* gate, verbs::Hooks* hooks,
                         verbs::Completions* completions, net::Wire* wire,
                         verbs::MemoryTable* memory, verbs::QueuePairs* qps)
    : wire_(*wire),
      qps_(*qps),
      defaults_(defaults),
      loss_(options.loss),
      xrc_queues_(options.key),
      connections_(cm_options(options, *wire), options, gate, hooks, wire, &side_, qps, this),
      side_(with_queues(options, &xrc_queues_), &connections_, completions, wire, memory) {}

// The halves return to the side what they have borrowed before the side is destroyed.
ControlPath::~ControlPath() {
  qps_.for_each([this](verbs::QueuePair& qp) {
    if (qp.control != this) return;
    context_of(qp).responder.reset();
    context_of(qp).requester.reset();
  });
}

// A number that a queue pair of another transport has is closed unused; its entry then has another
// generation.
std::unique_ptr<verbs::QueuePair> ControlPath::new_pair(verbs::Service service, verbs::PdId pd,
                                                        const verbs::WorkQueueSizes& sizes,
                                                        verbs::CompletionQueue* send,
                                                        verbs::CompletionQueue* receive,
                                                        const ib::LossRules* loss,
                                                        std::uint32_t domain) {
  constexpr int kMost = 256;  // in a row: practically no number is left
  for (int i = 0; i < kMost; ++i) {
    auto made = side_.create(service, pd, sizes, send, receive, loss, domain);
    if (made == nullptr || !qps_.has(made->number())) return made;
    side_.destroy(std::move(made));
  }
  return nullptr;
}

verbs::QueuePair* ControlPath::create_qp(verbs::Service service, verbs::PdId pd,
                                         const verbs::WorkQueueSizes& sizes,
                                         verbs::CompletionQueue* send,
                                         verbs::CompletionQueue* receive, const ib::LossRules* loss,
                                         std::uint32_t domain) {
  auto made = new_pair(service, pd, sizes, send, receive, loss, domain);
  if (made == nullptr) return nullptr;
  made->control = this;
  try {
    return qps_.add(std::move(made));
  } catch (...) {
    side_.destroy(std::move(made));
    throw;
  }
}

verbs::SharedReceiveQueue* ControlPath::create_xrc_queue(verbs::PdId pd, std::uint32_t max_wr,
                                                         std::uint32_t max_sge,
                                                         std::uint32_t domain,
                                                         verbs::CompletionQueue* completions) {
  verbs::SharedReceiveQueue* const queue = qps_.create_shared(pd, max_wr, max_sge);
  try {
    if (xrc_queues_.open(queue, domain, completions)) return queue;
  } catch (...) {
    qps_.destroy_shared(queue);
    throw;
  }
  qps_.destroy_shared(queue);
  return nullptr;
}

void ControlPath::destroy_xrc_queue(verbs::SharedReceiveQueue* queue) {
  close_xrc(&xrc_queues_, side_.contexts(), queue);
  qps_.destroy_shared(queue);
}

void ControlPath::destroy(verbs::QueuePair* qp, Instant now) {
  const bool rests = connections_.abort_silently(*qp, true, now);
  side_.destroy(qps_.take(qp, rests), rests ? Side::Number::Rests : Side::Number::Free);
}

Modified ControlPath::move(verbs::QueuePair& qp, const QpChange& change, Instant now) {
  wire_.begin_sending();
  const Modified done = side_.modify(qp, change, now);
  const bool forgotten = done == Modified::Ok && change.to == verbs::QpState::Reset;
  if (forgotten) connections_.abort_silently(qp, false, now);
  return done;
}

Paths::Opened ControlPath::open_path(const ib::AddressVector& av, Instant now) {
  wire_.begin_sending();
  return side_.paths().open(av, now);
}

void ControlPath::sends_posted(verbs::QueuePair& qp, Instant now) {
  wire_.begin_sending();
  side_.sends_posted(qp, now);
}

void ControlPath::receives_posted(verbs::QueuePair& qp, Instant now) {
  wire_.begin_sending();
  side_.receives_posted(qp, now);
}

void ControlPath::fail(verbs::QueuePair& qp, Errc code, const char* why, Instant) {
  if (side_.fail(qp)) connections_.failed(qp, code, why);
}

void ControlPath::give_up_link(const std::string& why, Instant now) {
  qps_.for_each([&](verbs::QueuePair& qp) {
    const bool out = qp.control == this && (side_.goes_out(qp) || connections_.asks_out(qp));
    if (out) fail(qp, Errc::unreachable, why.c_str(), now);
  });
}

// ---- verbs::ControlPath

Result<verbs::QueuePair*> ControlPath::create(const verbs::QpRequest& r) {
  if (r.number != 0) {
    return Error{Errc::unsupported, "number: must be 0 with RoCE (the device chooses it)"};
  }
  ib::LossRules loss = loss_;
  if (r.roce.type) {
    loss.type =
        *r.roce.type == ConnectionType::slow ? ib::ConnectionType::Slow : ib::ConnectionType::Fast;
  }
  loss.max_recovery_attempts = r.roce.max_recovery_attempts.value_or(loss.max_recovery_attempts);
  verbs::QueuePair* const made =
      create_qp(r.service, r.pd, r.sizes, r.send, r.receive, &loss, r.xrc_domain);
  if (made == nullptr) return Error{Errc::no_memory, "out of memory"};
  return made;
}

Result<void> ControlPath::modify(verbs::QueuePair& qp, verbs::QpState to, const QpAttributes& a,
                                 Instant now) {
  auto change = change_of(qp.state, to, a, wire_.interface());
  if (!change) return change.error();
  const Modified done = move(qp, *change, now);
  if (done == Modified::Ok) return {};
  return refusal(done, qp, *change, wire_.mtu_between(change->av.local, change->av.remote));
}

QpAttributes ControlPath::attributes(const verbs::QueuePair& qp) const {
  return attributes_of(qp);
}

verbs::ControlPath::Depths ControlPath::depths(const verbs::QueuePair& qp) const {
  const ib::QpAttributes& a = context_of(qp).attributes;
  return {static_cast<std::uint16_t>(a.responder_depth),
          static_cast<std::uint16_t>(a.initiator_depth)};
}

std::uint32_t ControlPath::most_datagram() const {
  return ib::bytes(ib::path_mtu_of(wire_.mtu()));
}

bool ControlPath::completes_on_overrun(const verbs::QueuePair& qp) const {
  return roce::completes_on_overrun(qp);
}

Result<std::uint32_t> ControlPath::create_handle(const QpPath& path, Instant now) {
  auto av = vector_of(path, wire_.interface());
  if (!av) return av.error();
  const Paths::Opened made = open_path(*av, now);
  if (made.verdict != Modified::Ok) {
    return Error{Errc::invalid_argument, "path: must be two unicast addresses of one IP version"};
  }
  if (made.handle == 0) {
    return Error{Errc::no_memory, "the limit of 2^20 address handles is reached"};
  }
  return made.handle;
}

// ---- listeners

Result<verbs::Listener*> ControlPath::bind(const verbs::LocalEnd& local, verbs::Service service) {
  if (service != verbs::Service::Rc && service != verbs::Service::Ud &&
      service != verbs::Service::XrcReceive) {
    return Error{Errc::unsupported, "service: must be rc, or with RoCE also ud or xrc_receive"};
  }
  auto made = connections_.listeners().bind(local, service);
  if (!made) return made.error();
  made.value()->control = this;
  return made.value();
}

Result<void> ControlPath::listen(verbs::Listener& l, int backlog) {
  return connections_.listeners().listen(static_cast<Listener*>(&l), backlog);
}

void ControlPath::close(verbs::Listener& l, Instant) {
  connections_.listeners().close(static_cast<Listener*>(&l));
}

// ---- connections

ConnectParams ControlPath::params_of(const verbs::ConnectParams& o) const {
  ConnectParams p;
  p.ird = o.ird.value_or(defaults_.ird);
  p.ord = o.ord.value_or(defaults_.ord);
  p.retry_count = o.roce.retry_count.value_or(p.retry_count);
  p.rnr_retry = o.roce.rnr_retry.value_or(p.rnr_retry);
  p.ack_timeout = o.roce.ack_timeout;
  p.min_rnr_timer = o.roce.min_rnr_timer.value_or(p.min_rnr_timer);
  p.traffic_class = o.roce.traffic_class;
  p.flow_control = o.roce.flow_control;
  p.private_data = o.private_data;
  p.timeout = o.timeout > Duration::zero() ? o.timeout : defaults_.timeout;
  p.refusal_retry = o.refusal_retry;
  if (o.source != nullptr) p.source = o.source->local;
  if (o.source_ip) p.source.at.ip = *o.source_ip;
  return p;
}

Result<void> ControlPath::connect(verbs::QueuePair& qp, const SocketAddress& to,
                                  const verbs::ConnectParams& p, Instant now) {
  return connections_.connect(qp, to, params_of(p), now);
}

Result<void> ControlPath::accept(const verbs::ConnectionRequest& r, verbs::QueuePair& qp,
                                 const verbs::ConnectParams& p, Instant now) {
  ConnectParams params = params_of(p);
  params.psn = r.attributes.rq_psn;
  return connections_.accept(static_cast<ib_cm::Handle>(r.id), qp, params, now);
}

void ControlPath::reject(const verbs::ConnectionRequest& r, ByteView private_data, Instant now) {
  connections_.reject(static_cast<ib_cm::Handle>(r.id), private_data, now);
}

void ControlPath::disconnect(verbs::QueuePair& qp, Instant now) {
  connections_.disconnect(qp, now);
}

void ControlPath::abort(verbs::QueuePair& qp, Instant now) {
  connections_.abort(qp, now);
}

}  // namespace urnic::roce
