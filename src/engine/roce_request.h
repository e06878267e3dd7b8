// A request for a connection of RoCE, or a question for a queue pair of UD, as its listener hears
// of it: a value.
#pragma once

#include <cstdint>

#include "base/ip_address.h"
#include "engine/roce_moves.h"
#include "ib_cm/events.h"
#include "urnic/connection_events.h"

namespace urnic::engine {

struct RoceRequest {
  ib_cm::Handle handle = 0;  // to accept or reject
  SocketAddress local, peer;
  bool datagrams = false;  // a question: to be answered with a queue pair of UD
  bool xrc = false;        // for a receiving end of XRC
  // READs and atomics at a time: what the peer wants to have outstanding, and what it serves.
  std::uint8_t ird = 0, ord = 0;
  RoceTerms terms;   // of a connection: by what the queue pair that takes it is moved
  RocePeer of_peer;  // its retries are for both ends' requests, and for ours
  ib_cm::PrivateData data;
};

}  // namespace urnic::engine
