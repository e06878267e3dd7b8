#include "iwarp/connection_stats.h"

#include <string>

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
                                                        "terminate",
                                                        "immediate",
                                                        "immediate solicited",
                                                        "atomic request",
                                                        "atomic response"};
  return index < kOpcodeCount ? kLabels[index] : "?";
}

const char* reason_label(std::size_t index) {
  static_assert(kReasonCount == static_cast<std::size_t>(fastpath::Reason::kCount));
  if (index >= kReasonCount) return "?";
  return fastpath::reason_name(static_cast<fastpath::Reason>(index)).data();
}

namespace iwarp {
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
    case Stage::Leaving:
      return "closing";
    case Stage::Terminated:
      return "terminated";
    case Stage::Lingering:
      return "lingering";
  }
  return "?";
}

}  // namespace

// Adds the counters of the connection's stream.
void add_stream(const ddp::Stream& stream, ConnectionStats* s) {
  const ddp::SenderCounters& out = stream.sender.counters();
  const ddp::CompletionWrites& writes = stream.completion_writes;
  s->verbs.completion_wqe_writes = writes.wqe;
  s->verbs.completion_cqe_writes = writes.cqe;
  s->verbs.completion_shared_cqes = writes.partial;
  s->iwarp.ddp.fpdus_sent = out.fpdus;
  s->verbs.writes_sent = out.writes;
  s->verbs.sends_sent = out.sends;
  s->verbs.reads_sent = out.reads;
  s->verbs.read_responses_sent = out.read_responses;
  s->verbs.write_bytes_sent = out.write_bytes;
  s->verbs.send_bytes_sent = out.send_bytes;
  s->verbs.read_response_bytes_sent = out.read_response_bytes;
}

ConnectionStats stats_of(const Connection& c) {
  ConnectionStats s;
  s.qp_number = c.qp != nullptr ? c.qp->number() : 0;
  s.local = endpoint(c.key.local, c.key.local_port);
  s.peer = endpoint(c.key.remote, c.key.remote_port);
  s.state = state_name(c);
  s.iwarp.fast = c.context.type == fastpath::ConnectionType::Fast && c.stage >= Stage::Full;
  s.iwarp.mpa.crc = c.context.config.crc;
  s.iwarp.mpa.framing = mpa::policy_name(c.framing.policy);
  s.iwarp.mpa.framing_sent = mpa::policy_name(
      c.stream != nullptr ? c.stream->sender.framing().policy : mpa::Policy::NoMarkers);
  if (!s.iwarp.fast) {
    s.iwarp.slow_reason = c.stage < Stage::Full   ? "start-up"
                          : c.link != nullptr     ? "no-segments"
                          : !c.context.config.crc ? "no CRC"
                          : c.context.config.initiated_as == fastpath::ConnectionType::Slow
                              ? "initiated SLOW"
                          : c.residue ? "start-up data"
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
  s.iwarp.receive_waits = n.receive_waits;
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
  add_path(c, &s);
  return s;
}

}  // namespace iwarp
}  // namespace urnic
