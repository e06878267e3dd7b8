#include "cli/perf/perf_session.h"

namespace urnic::cli {
namespace {

constexpr double kPatience = 30;  // seconds without progress
constexpr double kWaiting = 2;    // seconds the next client must wait
constexpr const char* kWireGone = "the link to the peer is down";

void reject_busy(ConnectRequest& request) {
  const std::string busy = "the server is busy with another client";
  request.reject({reinterpret_cast<const std::uint8_t*>(busy.data()), busy.size()});
}

}  // namespace

const char* name_of(Transport transport) {
  return transport == Transport::roce ? "RoCE" : "iWARP";
}

Result<std::unique_ptr<PerfControl>> PerfControl::make(Device& device, const ProtectionDomain& pd,
                                                       Transport transport,
                                                       const EventQueue& events, void* context) {
  auto control = std::make_unique<PerfControl>();
  auto cq = device.create_cq(4 * kBuffers);
  if (!cq) return cq.error();
  control->cq_ = std::move(*cq);
  auto buffer = RdmaBuffer::make(device, pd, 2 * kBuffers * kPerfMessage, access_local_write);
  if (!buffer) return buffer.error();
  control->buffer_ = std::move(*buffer);
  QpOptions options;
  options.send_cq = options.receive_cq = control->cq_;
  options.events = events;
  options.context = context;
  options.transport = transport;
  options.max_send = options.max_receive = kBuffers;
  auto qp = device.create_qp(pd, options);
  if (!qp) return qp.error();
  control->qp_ = std::move(*qp);
  if (auto ok = make_ready(control->qp_); !ok) return ok.error();
  for (std::uint32_t i = 0; i < kBuffers; ++i) {
    if (auto ok = control->post_receive(i); !ok) return ok.error();
  }
  return control;
}

Result<void> PerfControl::post_receive(std::uint32_t index) {
  const Sge sge = buffer_.sge(index * kPerfMessage, kPerfMessage);
  return qp_.post_receive({index, {&sge, 1}});
}

Result<void> PerfControl::send(const PerfMessage& m) {
  const std::size_t at = (kBuffers + next_send_++ % kBuffers) * kPerfMessage;
  encode(m, std::span<std::uint8_t, kPerfMessage>(buffer_.data() + at, kPerfMessage));
  const Sge sge = buffer_.sge(at, kPerfMessage);
  SendRequest request;
  request.wr_id = kBuffers;
  request.sges = {&sge, 1};
  return qp_.post_send(request);
}

Result<std::optional<PerfMessage>> PerfControl::receive() {
  Completion c;
  while (cq_.poll({&c, 1}) == 1) {
    if (c.status != WcStatus::success) {
      return Error{Errc::reset, "the peer disconnected"};
    }
    if (c.wr_id >= kBuffers) continue;
    const auto index = static_cast<std::uint32_t>(c.wr_id);
    auto m = decode_perf({buffer_.data() + index * kPerfMessage, c.byte_len});
    if (!m.ok()) return Error{Errc::protocol, m.error()};
    if (auto ok = post_receive(index); !ok) return ok.error();
    if (m->kind == PerfKind::Error) return Error{Errc::rejected, "the peer reports: " + m->text};
    return std::optional<PerfMessage>(std::move(*m));
  }
  return std::optional<PerfMessage>();
}

void PerfSession::on_event(Event& e) {
  switch (e.kind) {
    case EventKind::established:
      return;
    case EventKind::disconnected:
      ended = true;
      return;
    case EventKind::connect_request:
      if (waiting) return reject_busy(e.request);
      waiting = std::move(e.request);
      waiting_at = e.context;
      waiting_since = now_seconds();
      return;
    case EventKind::link_down:
      if (failure.empty()) failure = kWireGone;
      return;
    case EventKind::link_up:
    case EventKind::address_conflict:
    case EventKind::addresses_changed:
      return;
    default:
      if (failure.empty()) failure = e.error.message;
  }
}

bool PerfSession::alive(double last_progress) {
  const double now = now_seconds();
  Event e;
  while (events.poll(&e)) {
    on_event(e);
    e = {};
  }
  if (waiting && now - waiting_since > kWaiting) {
    reject_busy(waiting);
    waiting = {};
  }
  if (failure.empty() && ended) failure = "the peer closed the connection";
  if (failure.empty() && stop_requested()) failure = "stopped";
  if (failure.empty() && !device.info().link_up) failure = kWireGone;
  if (failure.empty() && now - last_progress > kPatience) {
    failure = "no progress for " + std::to_string(static_cast<int>(kPatience)) + " s";
  }
  return failure.empty();
}

Result<QueuePair> PerfSession::make_qp(void* context) {
  QpOptions options;
  options.send_cq = options.receive_cq = cq;
  options.events = events;
  options.context = context;
  options.transport = transport;
  options.max_send = kPerfMaxDepth + 64;
  options.max_receive = 2 * kPerfMaxDepth;
  options.max_send_sge = options.max_receive_sge = 1;
  options.max_inline = kPerfMaxInline;
  auto qp = device.create_qp(pd, options);
  if (!qp) return qp;
  if (auto ok = make_ready(*qp); !ok) return ok.error();
  return qp;
}

void PerfSession::add_stats(PerfMessage* m) {
  for (const QueuePair& qp : qps) {
    const ConnectionStats s = qp.stats();
    m->bytes_fast += s.iwarp.bytes_fast;
    m->bytes_slow += s.iwarp.bytes_slow;
    m->downgrades += s.iwarp.downgrades + s.roce.roce_downgrades;
    m->upgrades += s.iwarp.upgrades + s.roce.roce_upgrades;
    m->recoveries += s.iwarp.recovery_attempts + s.roce.gap_recoveries;
    m->retransmits += s.iwarp.tcp.retransmits + s.roce.requests_repeated;
  }
}

}  // namespace urnic::cli
