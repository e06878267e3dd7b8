// Counters of the engine and its connections as the plain values of the public header (D10).
#include "ddp_rdma/violation.h"
#include "engine/engine.h"
#include "fastpath/in_logic.h"

namespace urnic {

const char* opcode_label(std::size_t index) {
  static constexpr const char* kLabels[kOpcodeCount] = {"write",
                                                        "read request",
                                                        "read response",
                                                        "send",
                                                        "send invalidate",
                                                        "send solicited",
                                                        "send invalidate solicited",
                                                        "terminate"};
  return index < kOpcodeCount ? kLabels[index] : "?";
}

const char* reason_label(std::size_t index) {
  static_assert(kReasonCount == static_cast<std::size_t>(fastpath::Reason::kCount));
  if (index >= kReasonCount) return "?";
  return fastpath::reason_name(static_cast<fastpath::Reason>(index)).data();
}

namespace engine {

using namespace iwarp;
namespace {

std::string endpoint(const IpAddress& ip, std::uint16_t port) {
  return SocketAddress{ip, port}.to_string();
}

const char* state_name(const Connection& c) {
  switch (c.stage) {
    case Stage::Opening:
      return "opening";
    case Stage::Startup:
      return "startup";
    case Stage::Full:
      return "established";
    case Stage::Closing:
      return "closing";
    case Stage::Terminated:
      return "terminated";
    case Stage::Lingering:
      return "lingering";
  }
  return "?";
}

// What the stream of a connection has counted itself.
void add_stream(const ddp::Stream& stream, ConnectionStats* s) {
  const ddp::SenderCounters& out = stream.sender.counters();
  const ddp::CompletionWrites& writes = stream.completion_writes;
  s->completion_wqe_writes = writes.wqe;
  s->completion_cqe_writes = writes.cqe;
  s->completion_partial_cqes = writes.partial;
  s->fpdus_sent = out.fpdus;
  s->writes_sent = out.writes;
  s->sends_sent = out.sends;
  s->reads_sent = out.reads;
  s->read_responses_sent = out.read_responses;
  s->write_bytes_sent = out.write_bytes;
  s->send_bytes_sent = out.send_bytes;
  s->read_response_bytes_sent = out.read_response_bytes;
}

}  // namespace

// The connection goes on without its stream, and is counted at its own end without it.
void Engine::stream_ended(const ddp::Stream& stream) {
  ConnectionStats s;
  add_stream(stream, &s);
  ended_.add(s);
}

ConnectionStats Engine::connection_stats(const Connection& c) const {
  ConnectionStats s;
  s.qp_number = c.qp != nullptr ? c.qp->number() : 0;
  s.local = endpoint(c.key.local, c.key.local_port);
  s.peer = endpoint(c.key.remote, c.key.remote_port);
  s.state = state_name(c);
  s.fast = c.context.type == fastpath::ConnectionType::Fast && c.stage >= Stage::Full;
  s.crc = c.context.config.crc;
  s.framing = mpa::policy_name(c.framing.policy);
  s.framing_sent =
      mpa::policy_name(c.stream != nullptr ? c.stream->sender.policy() : mpa::Policy::NoMarkers);
  if (!s.fast) {
    s.slow_reason = c.stage < Stage::Full   ? "start-up"
                    : c.link != nullptr     ? "no-segments"
                    : !c.context.config.crc ? "no CRC"
                    : c.context.config.initiated_as == fastpath::ConnectionType::Slow
                        ? "initiated SLOW"
                    : c.residue ? "start-up residue"
                                : "downgraded";
  }
  const ConnectionCounters& n = c.counters;
  s.downgrades = n.downgrades;
  s.upgrades = n.upgrades;
  s.recovery_attempts = n.recovery_attempts;
  s.immediate_dup_acks = n.immediate_dup_acks;
  s.reasons = n.reasons;
  s.fpdus_received = n.fpdus_in;
  s.bytes_fast = n.bytes_fast;
  s.bytes_slow = n.bytes_slow;
  s.detours = n.detours;
  s.bytes_detour = n.bytes_detour;
  s.bytes_copied = n.bytes_copied;
  s.payload_placed = n.payload_placed;
  s.holes_opened = c.hole_counters.tally().opened;
  s.holes_closed = c.hole_counters.tally().closed;
  s.empty_rq_drops = n.empty_rq_drops;
  s.write_bytes_received = n.write_bytes_in;
  s.send_bytes_received = n.send_bytes_in;
  s.read_response_bytes_received = n.read_response_bytes_in;
  s.sends_received = n.sends_in;
  s.read_requests_received = n.read_requests_in;
  s.terminates_sent = n.terminates_sent;
  s.terminates_received = n.terminates_received;
  s.segments_in = n.segments_in;
  s.segments_out = n.segments_out;
  s.dup_acks_out = n.dup_acks_out;
  if (c.stream != nullptr) add_stream(*c.stream, &s);
  s.retransmits = n.retransmits;
  s.rto_expirations = n.rto_expirations;
  s.dup_acks_in = n.dup_acks_in;
  s.cwnd = c.tcb.cc.cwnd;
  s.ssthresh = c.tcb.cc.ssthresh;
  s.srtt_us = static_cast<std::uint32_t>(c.tcb.rtt.srtt.count_us());
  s.rto_us = static_cast<std::uint32_t>(c.tcb.rtt.rto.count_us());
  s.mss = c.tcb.snd.mss;
  if (c.link != nullptr) {
    const sockets::PathInfo p = c.link->socket.info();
    s.cwnd = p.cwnd;
    s.ssthresh = p.ssthresh;
    s.srtt_us = p.srtt_us;
    s.rto_us = p.rto_us;
    s.mss = p.mss;
    s.retransmits = p.retransmits;
  }
  return s;
}

ConnectionStats Engine::qp_stats(const verbs::QueuePair& qp) const {
  if (const Connection* c = find(qp.connection)) return connection_stats(*c);
  if (const ConnectionStats* last = ended_.last_of(qp.number())) return *last;
  ConnectionStats s;
  s.qp_number = qp.number();
  s.state = verbs::name(qp.state);
  return s;
}

EngineTables Engine::tables() const {
  EngineTables t;
  t.time_wait = time_wait_.size();
  t.connections = connections_.size() + t.time_wait;
  t.flows = connections_.flows() + t.time_wait;
  for (const auto& l : listeners_) {
    t.pending += l->pending();
    t.half_open += l->backlog.half_open;
  }
  t.queue_pairs = qps_.size();
  t.kept_stats = ended_.kept();
  t.timers = timers_.size();
  t.waiting_to_send = sending_.size();
  t.waiting_to_drain = draining_.size();
  t.looped = loop_.size();
  t.regions = memory_.in_use();
  t.neighbours = interface_.neighbours().size();
  t.reassembly_octets = pool_.in_use();
  return t;
}

std::string Engine::addresses_text() const {
  if (kernel_ != nullptr) {
    return kernel_->options.bind.is_any() ? "this host's" : kernel_->options.bind.to_string();
  }
  std::string out;
  for (const net::OwnAddress& a : interface_.addresses()) {
    if (!out.empty()) out += ' ';
    out += a.prefix.to_string();
    if (a.state == net::AddressState::Tentative) out += " (tentative)";
    if (a.state == net::AddressState::Duplicate) out += " (duplicate)";
  }
  return out;
}

void Engine::fill_stats(EngineStats* out) const {
  out->rx_frames = counters_.rx_frames;
  out->rx_bytes = counters_.rx_bytes;
  out->tx_frames = tx_.frames_sent();
  out->tx_bytes = tx_.octets_sent();
  const port::Stats p = port_->stats();
  if (kernel_ != nullptr) {
    out->rx_bytes = p.rx_bytes;
    out->tx_bytes = p.tx_bytes;
  }
  out->rx_bad_port = p.rx_bad;
  out->rx_bad_ip = counters_.rx_bad_ip;
  out->rx_bad_tcp_checksum = counters_.rx_bad_tcp_checksum;
  out->rx_fragments = interface_.counters().dropped_by(net::DropReason::Fragment);
  const tcp::HostCounters& host = counters_.tcp;
  out->rx_no_connection = host.no_connection;
  out->rx_tcp_dropped = counters_.rx_tcp_dropped + host.dropped_backlog;
  out->cookies_sent = host.cookies_sent;
  out->cookies_taken = host.cookies_taken;
  out->challenge_acks = host.challenge_acks;
  out->challenge_acks_withheld = host.challenge_acks_withheld;
  out->rst_sent = counters_.rst_sent;
  out->turned_away = kernel_ != nullptr ? kernel_->turned_away : 0;
  out->address_conflicts = interface_.counters().address_conflicts;
  out->tx_full = counters_.tx_full;
  out->polls = counters_.polls;
  out->connections_opened = counters_.connections_opened;
  out->connections_closed = counters_.connections_closed;
  out->connections_failed = counters_.connections_failed;
  out->reassembly_bytes = pool_.in_use();
  out->regions = memory_.in_use();
  out->ended = ended_.totals();
  out->connections.clear();
  connections_.for_each(
      [&](const Connection& c) { out->connections.push_back(connection_stats(c)); });
}

}  // namespace engine
}  // namespace urnic
