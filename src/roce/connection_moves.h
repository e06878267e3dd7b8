// The Modify QP changes that a RoCE connection makes, and their values (IB-135): converts the
// contents of connection management messages.
#pragma once

#include <cstdint>
#include <optional>

#include "ib_cm/events.h"
#include "roce/side.h"

namespace urnic::roce {

// Requests of the peer that find no receive are repeated after 0.64 ms.
inline constexpr std::uint32_t kMinRnrTimer = 12;

// Values that the consumer of one end chooses for that end alone.
struct OwnEnd {
  std::optional<std::uint8_t> ack_timeout;    // for its requests; not set: that of the path
  std::optional<std::uint8_t> traffic_class;  // for its packets; not set: that of the path
  // A code: after which time the peer repeats requests that find no receive here.
  std::uint8_t min_rnr_timer = kMinRnrTimer;
};

// Peers may write. They may also read and use atomics if `ird` is not zero.
QpChange to_init(std::uint32_t ird);
// Each end chooses the PSN at which the other one begins. `peer`: the values of its queue pair from
// its message, with its depth limited to what we serve. `number`, `psn`: ours, as sent to the peer.
QpChange to_rtr(const ib_cm::AddressPair& addresses, const ib_cm::QpValues& peer,
                const ib_cm::PathValues& path, std::uint32_t number, std::uint32_t psn,
                const OwnEnd& own = {});
// `depth`: of our requests.
QpChange to_rts(const ib_cm::QpValues& peer, const ib_cm::PathValues& path, std::uint32_t depth,
                const OwnEnd& own = {});

// The changes to Rtr and Rts of one end, for a program that moves the queue pair itself.
struct ConnectionTerms {
  std::uint32_t psn = 0;  // of the first request that this end receives
  QpChange rtr, rts;
};

// S-7: adds the extensions agreed with the peer to a change to Rtr or Rts.
QpChange agreed(QpChange change, std::uint8_t extensions);

// Modify QP with the attributes that the queue pair's service has (an end of XRC has fewer). False:
// the move is not possible, or there is no memory for it.
bool move(Side& side, verbs::QueuePair& qp, const QpChange& change, Instant now);

}  // namespace urnic::roce
