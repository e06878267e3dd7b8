// The path to a destination: the headers in front of packets sent there, once the next hop is
// resolved. A connected queue pair has one; UD packets take the path of an address handle.
#pragma once

#include <cstdint>

#include "base/ip_address.h"
#include "ib/context.h"
#include "roce/frame.h"

namespace urnic::roce {

// State of the path's resolution.
enum class Route : std::uint8_t {
  Unknown,  // not resolved yet
  Awaited,  // resolution has begun; an event follows
  Known,
  Own,   // an address of this device: frames are looped back
  None,  // unreachable: packets are lost here and cost retries like any lost packet
};

struct Path {
  Route route = Route::Unknown;
  IpAddress next_hop;
  // packets leave with ECT(0), so that routers mark them instead of dropping them (RFC 3168, S-10)
  bool marked = false;
  FrameHeaders headers;

  bool found() const { return route != Route::Unknown && route != Route::Awaited; }
  // The state of that next hop, or of every next hop if null, has changed. `failed`: it is
  // unreachable. Returns false if the path does not use it or is not resolved.
  bool forget(const IpAddress* hop, bool failed) {
    if (route == Route::Unknown || (hop != nullptr && next_hop != *hop)) return false;
    route = failed ? Route::None : Route::Unknown;
    return true;
  }
};

}  // namespace urnic::roce
