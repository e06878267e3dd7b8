// The moves of a queue pair of RoCE that a connection makes, and their values (IB-135): what the
// messages of connection management say, as Modify QP takes it.
#pragma once

#include <cstdint>
#include <optional>

#include "ib_cm/events.h"
#include "roce/side.h"

namespace urnic::roce {

// Requests of the peer that find no receive come again after 0.64 ms.
inline constexpr std::uint32_t kMinRnrTimer = 12;

// What the consumer of one end chooses for that end alone.
struct OwnEnd {
  std::optional<std::uint8_t> ack_timeout;    // of its requests; nothing: the path's
  std::optional<std::uint8_t> traffic_class;  // of its packets; nothing: the path's
  // A code: how long requests of the peer that find no receive here wait before they come again.
  std::uint8_t min_rnr_timer = kMinRnrTimer;
};

// Peers may write; read and use atomics if any of those are served.
QpChange to_init(std::uint32_t ird);
// Either end says where the other one shall begin. `peer`: what it says of its queue pair, its
// depth cut to what we serve. `number`, `psn`: ours, as we have said.
QpChange to_rtr(const ib_cm::AddressPair& way, const ib_cm::QpValues& peer,
                const ib_cm::PathValues& path, std::uint32_t number, std::uint32_t psn,
                const OwnEnd& own = {});
// `depth`: of our requests.
QpChange to_rts(const ib_cm::QpValues& peer, const ib_cm::PathValues& path, std::uint32_t depth,
                const OwnEnd& own = {});

// By what the queue pair of one end is moved to Rtr and Rts, for a program that does so itself.
struct ConnectionTerms {
  std::uint32_t psn = 0;  // of the first request that this end takes
  QpChange rtr, rts;
};

// S-7: what the other end has agreed to, before either of the two.
QpChange agreed(QpChange change, std::uint8_t extensions);

// An end of XRC takes of a move what is its own. False: it cannot be moved so, or there is no
// memory for it.
bool move(Side& side, verbs::QueuePair& qp, const QpChange& change, Instant now);

}  // namespace urnic::roce
