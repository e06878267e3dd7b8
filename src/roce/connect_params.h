// Parameters of one connection of RoCE: a value.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/time.h"
#include "roce/connection_moves.h"
#include "verbs/connection.h"

namespace urnic::roce {

// What the consumer chooses for one connection.
struct ConnectParams : OwnEnd {
  verbs::LocalEnd source;          // to connect from
  std::uint32_t ird = 0, ord = 0;  // READs and atomics served, and outstanding, at a time
  // PSN of the first request this end takes, which the program may know already; nothing: any.
  std::optional<std::uint32_t> psn;
  // Of both ends' requests that nobody answers, and of the peer's that find no receive here.
  std::uint8_t retry_count = 7, rnr_retry = 7;
  std::optional<bool> flow_control;  // what the peer is told of it; nothing: as the engine has it
  ByteView private_data;             // borrowed for the call
  Duration timeout = Duration::s(10);
  Duration refusal_retry;  // for so long, a peer that does not listen is asked again
};

}  // namespace urnic::roce
