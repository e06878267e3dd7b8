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
  for (const auto& c : connection_counters()) f(c.name, s.*c.value);
  f("cwnd", s.cwnd);
  f("ssthresh", s.ssthresh);
  f("srtt_us", s.srtt_us);
  f("rto_us", s.rto_us);
  f("mss", s.mss);
}

}  // namespace urnic
