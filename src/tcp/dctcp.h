// Estimates which part of the bytes sent met congestion (RFC 8257 3.3). DCTCP's window cuts use it.
// Called by congestion.cpp only.
#pragma once

#include <cstdint>

#include "base/stream_offset.h"

namespace urnic::tcp {

// Plain data; see dctcp_open().
struct Dctcp {
  static constexpr std::uint32_t kOne = 1u << 20;  // alpha is a fraction of this
  std::uint32_t alpha;
  std::uint32_t acked, marked;  // bytes in the current window of observation
  std::uint64_t window_end;     // stream offset where that window ends
};

// Sets alpha to one until something was observed, so the first mark halves the window (4.2).
void dctcp_open(Dctcp&);
// A segment with or without ECE acknowledged `bytes`; [una, nxt) is in flight.
void dctcp_acked(Dctcp&, std::uint32_t bytes, bool ece, StreamOffset una, StreamOffset nxt);
// Returns cwnd * (1 - alpha / 2).
std::uint32_t dctcp_cut(const Dctcp&, std::uint32_t cwnd);

}  // namespace urnic::tcp
