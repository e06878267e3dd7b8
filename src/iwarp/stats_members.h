// The named members of a connection's statistics, for all code that writes or reads them.
#pragma once

#include "urnic/stats.h"

namespace urnic {

// Calls `f(group, name, member)` for each, with the group as in Counter. S is ConnectionStats,
// const or not. Excludes the rows that have labels: labelled_members().
template <class S, class F>
void connection_members(S& s, F&& f) {
  f("", "qp_number", s.qp_number);
  f("", "local", s.local);
  f("", "peer", s.peer);
  f("", "state", s.state);
  f("", "transport", s.transport);
  f("iwarp", "fast", s.iwarp.fast);
  f("iwarp", "slow_reason", s.iwarp.slow_reason);
  f("roce", "fast", s.roce.fast);
  f("roce", "selective", s.roce.selective);
  f("roce", "slow_reason", s.roce.slow_reason);
  for (const auto& c : connection_counters()) f(c.group, c.name, c.of(s));
  f("iwarp.mpa", "crc", s.iwarp.mpa.crc);
  f("iwarp.mpa", "framing", s.iwarp.mpa.framing);
  f("iwarp.mpa", "framing_sent", s.iwarp.mpa.framing_sent);
  f("iwarp.tcp", "cwnd", s.iwarp.tcp.cwnd);
  f("iwarp.tcp", "ssthresh", s.iwarp.tcp.ssthresh);
  f("iwarp.tcp", "srtt_us", s.iwarp.tcp.srtt_us);
  f("iwarp.tcp", "rto_us", s.iwarp.tcp.rto_us);
  f("iwarp.tcp", "mss", s.iwarp.tcp.mss);
}

// Calls `f(group, name, counts, label)` for each array whose entries have labels.
template <class S, class F>
void labelled_members(S& s, F&& f) {
  f("iwarp", "reasons", s.iwarp.reasons, reason_label);
  f("iwarp.ddp", "fpdus_sent", s.iwarp.ddp.fpdus_sent, opcode_label);
  f("iwarp.ddp", "fpdus_received", s.iwarp.ddp.fpdus_received, opcode_label);
}

}  // namespace urnic
