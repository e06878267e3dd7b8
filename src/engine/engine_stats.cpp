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
  s->verbs.completion_wqe_writes = writes.wqe;
  s->verbs.completion_cqe_writes = writes.cqe;
  s->verbs.completion_partial_cqes = writes.partial;
  s->iwarp.ddp.fpdus_sent = out.fpdus;
  s->verbs.writes_sent = out.writes;
  s->verbs.sends_sent = out.sends;
  s->verbs.reads_sent = out.reads;
  s->verbs.read_responses_sent = out.read_responses;
  s->verbs.write_bytes_sent = out.write_bytes;
  s->verbs.send_bytes_sent = out.send_bytes;
  s->verbs.read_response_bytes_sent = out.read_response_bytes;
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
  s.iwarp.fast = c.context.type == fastpath::ConnectionType::Fast && c.stage >= Stage::Full;
  s.iwarp.mpa.crc = c.context.config.crc;
  s.iwarp.mpa.framing = mpa::policy_name(c.framing.policy);
  s.iwarp.mpa.framing_sent =
      mpa::policy_name(c.stream != nullptr ? c.stream->sender.policy() : mpa::Policy::NoMarkers);
  if (!s.iwarp.fast) {
    s.iwarp.slow_reason = c.stage < Stage::Full   ? "start-up"
                          : c.link != nullptr     ? "no-segments"
                          : !c.context.config.crc ? "no CRC"
                          : c.context.config.initiated_as == fastpath::ConnectionType::Slow
                              ? "initiated SLOW"
                          : c.residue ? "start-up residue"
                                      : "downgraded";
  }
  const ConnectionCounters& n = c.counters;
  s.iwarp.downgrades = n.downgrades;
  s.iwarp.upgrades = n.upgrades;
  s.iwarp.recovery_attempts = n.recovery_attempts;
  s.iwarp.immediate_dup_acks = n.immediate_dup_acks;
  s.iwarp.reasons = n.reasons;
  s.iwarp.ddp.fpdus_received = n.fpdus_in;
  s.iwarp.bytes_fast = n.bytes_fast;
  s.iwarp.bytes_slow = n.bytes_slow;
  s.iwarp.detours = n.detours;
  s.iwarp.bytes_detour = n.bytes_detour;
  s.iwarp.bytes_copied = n.bytes_copied;
  s.verbs.payload_placed = n.payload_placed;
  s.iwarp.holes_opened = c.hole_counters.tally().opened;
  s.iwarp.holes_closed = c.hole_counters.tally().closed;
  s.iwarp.empty_rq_drops = n.empty_rq_drops;
  s.verbs.write_bytes_received = n.write_bytes_in;
  s.verbs.send_bytes_received = n.send_bytes_in;
  s.verbs.read_response_bytes_received = n.read_response_bytes_in;
  s.verbs.sends_received = n.sends_in;
  s.verbs.read_requests_received = n.read_requests_in;
  s.iwarp.ddp.terminates_sent = n.terminates_sent;
  s.iwarp.ddp.terminates_received = n.terminates_received;
  s.iwarp.tcp.segments_in = n.segments_in;
  s.iwarp.tcp.segments_out = n.segments_out;
  s.iwarp.tcp.dup_acks_out = n.dup_acks_out;
  if (c.stream != nullptr) add_stream(*c.stream, &s);
  s.iwarp.tcp.retransmits = n.retransmits;
  s.iwarp.tcp.rto_expirations = n.rto_expirations;
  s.iwarp.tcp.dup_acks_in = n.dup_acks_in;
  s.iwarp.tcp.cwnd = c.tcb.cc.cwnd;
  s.iwarp.tcp.ssthresh = c.tcb.cc.ssthresh;
  s.iwarp.tcp.srtt_us = static_cast<std::uint32_t>(c.tcb.rtt.srtt.count_us());
  s.iwarp.tcp.rto_us = static_cast<std::uint32_t>(c.tcb.rtt.rto.count_us());
  s.iwarp.tcp.mss = c.tcb.snd.mss;
  if (c.link != nullptr) {
    const sockets::PathInfo p = c.link->socket.info();
    s.iwarp.tcp.cwnd = p.cwnd;
    s.iwarp.tcp.ssthresh = p.ssthresh;
    s.iwarp.tcp.srtt_us = p.srtt_us;
    s.iwarp.tcp.rto_us = p.rto_us;
    s.iwarp.tcp.mss = p.mss;
    s.iwarp.tcp.retransmits = p.retransmits;
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
  out->port.rx_frames = counters_.rx_frames;
  out->port.rx_bytes = counters_.rx_bytes;
  out->port.tx_frames = tx_.frames_sent();
  out->port.tx_bytes = tx_.octets_sent();
  const port::Stats p = port_->stats();
  if (kernel_ != nullptr) {
    out->port.rx_bytes = p.rx_bytes;
    out->port.tx_bytes = p.tx_bytes;
  }
  out->port.rx_bad_port = p.rx_bad;
  out->net.rx_bad_ip = 0;
  for (const net::DropReason r : {net::DropReason::IpVersion, net::DropReason::IpHeader,
                                  net::DropReason::IpChecksum, net::DropReason::Ipv6Extension}) {
    out->net.rx_bad_ip += interface_.counters().dropped_by(r);
  }
  out->iwarp.rx_bad_tcp_checksum = counters_.rx_bad_tcp_checksum;
  out->net.rx_fragments = interface_.counters().dropped_by(net::DropReason::Fragment);
  const tcp::HostCounters& host = counters_.tcp;
  out->iwarp.rx_no_connection = host.no_connection;
  out->iwarp.rx_tcp_dropped = counters_.rx_tcp_dropped + host.dropped_backlog;
  out->iwarp.cookies_sent = host.cookies_sent;
  out->iwarp.cookies_taken = host.cookies_taken;
  out->iwarp.challenge_acks = host.challenge_acks;
  out->iwarp.challenge_acks_withheld = host.challenge_acks_withheld;
  out->iwarp.rst_sent = counters_.rst_sent;
  out->iwarp.turned_away = kernel_ != nullptr ? kernel_->turned_away : 0;
  out->net.address_conflicts = interface_.counters().address_conflicts;
  out->port.tx_full = counters_.tx_full;
  out->polls = counters_.polls;
  out->connections_opened = counters_.connections_opened;
  out->connections_closed = counters_.connections_closed;
  out->connections_failed = counters_.connections_failed;
  out->iwarp.reassembly_bytes = pool_.in_use();
  out->verbs.regions = memory_.in_use();
  out->ended = ended_.totals();
  out->connections.clear();
  connections_.for_each(
      [&](const Connection& c) { out->connections.push_back(connection_stats(c)); });
}

}  // namespace engine
}  // namespace urnic
