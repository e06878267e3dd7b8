// The counters of a connection as the plain values of the public header (D10).
#pragma once

#include "iwarp/transport.h"
#include "urnic/stats.h"

namespace urnic::iwarp {

ConnectionStats stats_of(const Connection&);
// Adds the counters of a stream.
void add_stream(const ddp::Stream&, ConnectionStats*);

}  // namespace urnic::iwarp
