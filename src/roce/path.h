// The way to somebody: the headers in front of packets there, once the next hop is known. A
// connected queue pair has one; those of UD go by that of an address handle.
#pragma once

#include <cstdint>

#include "base/ip_address.h"
#include "ib/context.h"
#include "roce/frame.h"

namespace urnic::roce {

// What is known of it.
enum class Route : std::uint8_t {
  Unknown,  // to be asked for
  Awaited,  // asked for; an event follows
  Known,
  Own,   // an address of this device: frames come straight back
  None,  // what leaves is lost, and costs retries like anything that is
};

struct Path {
  Route route = Route::Unknown;
  IpAddress next_hop;
  bool marked = false;  // instead of dropped: packets leave with ECT(0) (RFC 3168, S-10)
  FrameHeaders headers;

  bool found() const { return route != Route::Unknown && route != Route::Awaited; }
  // What is known of that hop, or of all if null, holds no more. False: it does not go there.
  bool forget(const IpAddress* hop, bool failed) {
    if (route == Route::Unknown || (hop != nullptr && next_hop != *hop)) return false;
    route = failed ? Route::None : Route::Unknown;
    return true;
  }
};

}  // namespace urnic::roce
