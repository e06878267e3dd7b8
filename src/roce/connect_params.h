// Parameters of one RoCE connection: a value.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/time.h"
#include "roce/connection_moves.h"
#include "verbs/connection.h"

namespace urnic::roce {

// The consumer's choices for one connection.
struct ConnectParams : OwnEnd {
  verbs::LocalEnd source;          // to connect from
  std::uint32_t ird = 0, ord = 0;  // READs and atomics at a time: served, and outstanding
  // PSN of the first request that this end receives; the program may know it already. Not set: any.
  std::optional<std::uint32_t> psn;
  // For both ends' requests without a response, and for the peer's that find no receive here.
  std::uint8_t retry_count = 7, rnr_retry = 7;
  std::optional<bool> flow_control;  // advertised to the peer; not set: as the engine has it
  ByteView private_data;             // borrowed for the call
  Duration timeout = Duration::s(10);
  Duration refusal_retry;  // how long a peer that does not listen is retried
};

}  // namespace urnic::roce
