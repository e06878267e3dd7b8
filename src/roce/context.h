// What the RoCE side keeps of one queue pair. Owned by the queue pair, touched only under the
// ownership of its engine.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ip_address.h"
#include "base/time.h"
#include "ib/context.h"
#include "ib/requester.h"
#include "ib/responder.h"
#include "roce/frame.h"
#include "verbs/queue_pair.h"

namespace urnic::roce {

// What is known of the way to the peer.
enum class Route : std::uint8_t {
  Unknown,  // to be asked for
  Awaited,  // asked for; an event follows
  Known,
  Own,   // an address of this device: frames come straight back
  None,  // what leaves is lost, and costs retries like anything that is
};

struct Context final : verbs::TransportHalf {
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  explicit Context(verbs::QueuePair* of) : qp(of) {}

  verbs::QueuePair* qp;
  ib::QpAttributes attributes;
  // From Rtr and Rts on.
  std::optional<ib::Responder> responder;
  std::optional<ib::Requester> requester;

  Route route = Route::Unknown;
  IpAddress next_hop;
  FrameHeaders headers;

  bool tell_drained = false;      // once nothing is outstanding in Sqd (IB-112)
  bool told_established = false;  // that a request came in Rtr (IB-120)

  // In the list of those that want to send, and in the heap of deadlines.
  Context *before = nullptr, *behind = nullptr;
  bool queued = false;
  std::uint32_t place = kNowhere;
  Instant due = Instant::never();
};

inline Context& context_of(const verbs::QueuePair& qp) {
  return static_cast<Context&>(*qp.transport);
}

}  // namespace urnic::roce
