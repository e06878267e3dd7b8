// The counters of a connection by name, for all who write or read them.
#pragma once

#include "urnic/stats.h"

namespace urnic {

// `f(name, member)` for each. S is ConnectionStats, const or not. Without the rows of InLogic's
// table, which have labels of their own (reason_label).
template <class S, class F>
void connection_members(S& s, F&& f) {
  f("qp_number", s.qp_number);
  f("local", s.local);
  f("peer", s.peer);
  f("state", s.state);
  f("fast", s.fast);
  f("slow_reason", s.slow_reason);
  f("crc", s.crc);
  f("framing", s.framing);
  f("framing_sent", s.framing_sent);
  f("downgrades", s.downgrades);
  f("upgrades", s.upgrades);
  f("recovery_attempts", s.recovery_attempts);
  f("immediate_dup_acks", s.immediate_dup_acks);
  f("bytes_fast", s.bytes_fast);
  f("bytes_slow", s.bytes_slow);
  f("bytes_copied", s.bytes_copied);
  f("payload_placed", s.payload_placed);
  f("holes_opened", s.holes_opened);
  f("holes_closed", s.holes_closed);
  f("empty_rq_drops", s.empty_rq_drops);
  f("completion_wqe_writes", s.completion_wqe_writes);
  f("completion_cqe_writes", s.completion_cqe_writes);
  f("completion_partial_cqes", s.completion_partial_cqes);
  f("writes_sent", s.writes_sent);
  f("sends_sent", s.sends_sent);
  f("reads_sent", s.reads_sent);
  f("read_responses_sent", s.read_responses_sent);
  f("write_bytes_sent", s.write_bytes_sent);
  f("send_bytes_sent", s.send_bytes_sent);
  f("read_response_bytes_sent", s.read_response_bytes_sent);
  f("write_bytes_received", s.write_bytes_received);
  f("send_bytes_received", s.send_bytes_received);
  f("read_response_bytes_received", s.read_response_bytes_received);
  f("sends_received", s.sends_received);
  f("read_requests_received", s.read_requests_received);
  f("terminates_sent", s.terminates_sent);
  f("terminates_received", s.terminates_received);
  f("segments_in", s.segments_in);
  f("segments_out", s.segments_out);
  f("retransmits", s.retransmits);
  f("rto_expirations", s.rto_expirations);
  f("dup_acks_in", s.dup_acks_in);
  f("dup_acks_out", s.dup_acks_out);
  f("cwnd", s.cwnd);
  f("ssthresh", s.ssthresh);
  f("srtt_us", s.srtt_us);
  f("rto_us", s.rto_us);
  f("mss", s.mss);
}

}  // namespace urnic
