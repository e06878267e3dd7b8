// A connection request of RoCE to the peer, which may have to be sent again, and the meaning of a
// refusal.
#pragma once

#include "ib_cm/core.h"
#include "net/interface.h"
#include "roce/connect_params.h"
#include "roce/listeners.h"
#include "urnic/connection_events.h"
#include "urnic/status.h"

namespace urnic::roce {

struct CmRequest {
  ib_cm::Connect what;
  ib_cm::PrivateData data;
  Instant give_up, refused_until;

  // After a rejection for `reason`: true and the time to send the request again. A peer that does
  // not listen yet may do so in a moment; a peer that rejects the MTU may accept a smaller one.
  bool again(ib_cm::Reason reason, Instant now, Instant* at);
};

// Fills in all but `what.qp`, the transport and the extensions, which depend on the queue pair.
// Errors: unreachable.
Result<CmRequest> to_ask(const net::Interface&, Listeners&, const ib_cm::Options&,
                         const SocketAddress& to, const ConnectParams&, Instant now);

Errc code_of(ib_cm::Reason);
const char* text_of(ib_cm::Reason);
// The values of its queue pair that the peer's message contains.
RocePeer roce_peer_of(const ib_cm::QpValues& peer);

}  // namespace urnic::roce
