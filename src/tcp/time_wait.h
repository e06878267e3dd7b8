// Connections in TIME-WAIT (RFC 9293 3.6.1, 3.10.7.4) that nobody holds any more: what their
// answers need, and not the connection. A host moves them here, where each takes about 150 octets
// instead of some thousands for a minute.
#pragma once

#include <optional>
#include <vector>

#include "base/time.h"
#include "tcp/challenge.h"
#include "tcp/flow.h"
#include "tcp/host_logic.h"
#include "tcp/segment.h"

namespace urnic::tcp {

struct TimeWait {
  Instant until;
  Duration wait;                          // once more, when the peer's FIN comes again
  Seq snd_nxt, rcv_nxt;                   // behind both FINs
  std::uint32_t window = 0, max_wnd = 0;  // what we offered last; the largest the peer offered
  std::uint32_t ts_recent = 0, ts_offset = 0;
  Instant ts_recent_at;
  std::uint64_t challenge_key = 0;
  ChallengeLimiter challenge;
  std::uint8_t challenge_acks = 0, shift = 0;
  bool ts_on = false;
};

class TimeWaitTable {
 public:
  explicit TimeWaitTable(const SipKey& key) : flows_(FlowKeyHash{key}) {}

  // `t` is in TIME-WAIT; its host may forget it.
  void add(const FlowKey&, const Tcb& t);
  bool contains(const FlowKey& k) const { return flows_.contains(k); }
  std::size_t size() const { return flows_.size(); }

  enum class Verdict : std::uint8_t {
    Nothing,  // dropped, or the connection has ended by it
    Reply,    // send *reply
    Reopen,   // a SYN that may begin a new incarnation (RFC 6191); the old one is gone
  };
  // nullopt: no such connection. `listening`: somebody would take a SYN.
  std::optional<Verdict> take(const FlowKey&, const Segment&, bool listening, Segment* reply,
                              HostCounters&, Instant now);

  // When the next one ends, or a little before.
  Instant next_deadline() const { return ends_.empty() ? Instant::never() : ends_.front().at; }
  void run(Instant now);

 private:
  struct End {
    Instant at;
    FlowKey key;
  };
  static bool later(const End& a, const End& b) { return a.at > b.at; }
  void push(Instant at, const FlowKey&);

  HashMap<FlowKey, TimeWait, FlowKeyHash> flows_;
  std::vector<End> ends_;  // heap, earliest first; one for each, which may be earlier than its end
};

}  // namespace urnic::tcp
