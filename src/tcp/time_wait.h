// Connections in TIME-WAIT (RFC 9293 3.6.1, 3.10.7.4) that the program has closed. Stores only what
// their replies need, about 150 bytes for each instead of several thousand. A host moves them here
// for the last minute.
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
  Instant listed;                         // key of its place in the heap: at or before `until`
  Duration wait;                          // added again when the peer's FIN arrives again
  Seq snd_nxt, rcv_nxt;                   // after both FINs
  std::uint32_t window = 0, max_wnd = 0;  // the last window we offered; the largest the peer
                                          // offered
  std::uint32_t ts_recent = 0, ts_offset = 0;
  Instant ts_recent_at;
  std::uint64_t challenge_key = 0;
  ChallengeLimiter challenge;
  std::uint8_t challenge_acks = 0, shift = 0;
  bool ts_on = false;
};

class TimeWaitTable {
 public:
  // bound: connections in TIME-WAIT; setting: max_connections; limit: as many as connections; in a
  // TCP stack of a program 262144; beyond: the one that would end first ends now; test:
  // TimeWaitTest.AFullTableDropsTheConnectionThatEndsFirst,
  // TimeWaitTest.RepeatedConnectionsLeaveABoundedListOfEnds
  static constexpr std::size_t kUsual = 262144;

  // At most `most` connections, and at least one.
  explicit TimeWaitTable(const SipKey& key, std::size_t most = kUsual)
      : flows_(FlowKeyHash{key}), most_(most == 0 ? 1 : most) {}

  // Adds `t`, which is in TIME-WAIT; its host may free it. If the table is full, the connection
  // that would end first ends now.
  void add(const FlowKey&, const Tcb& t);
  bool contains(const FlowKey& k) const { return flows_.contains(k); }
  std::size_t size() const { return flows_.size(); }

  enum class Disposition : std::uint8_t {
    Nothing,  // the segment was dropped, or it ended the connection
    Reply,    // send *reply
    Reopen,   // a SYN that may begin a new incarnation (RFC 6191); the old one was removed
  };
  // nullopt: no such connection. `listening`: a listener would accept a SYN.
  std::optional<Disposition> take(const FlowKey&, const Segment&, bool listening, Segment* reply,
                                  HostCounters&, Instant now);

  // The time at which the next one ends, or slightly earlier.
  Instant next_deadline() const { return ends_.empty() ? Instant::never() : ends_.front().at; }
  void run(Instant now);
  // Entries of the heap; some may belong to connections that are gone.
  std::size_t ends() const { return ends_.size(); }

 private:
  struct End {
    Instant at;
    FlowKey key;
  };
  static bool later(const End& a, const End& b) { return a.at > b.at; }
  void push(Instant at, const FlowKey&);
  void pop(Instant now);
  bool is_of_one(const End&) const;
  void make_room();

  HashMap<FlowKey, TimeWait, FlowKeyHash> flows_;
  std::size_t most_;
  std::vector<End> ends_;  // heap, earliest first; one per connection, possibly earlier than its
                           // end
};

}  // namespace urnic::tcp
