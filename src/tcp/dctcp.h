// How much of what was sent met congestion (RFC 8257 3.3): the estimate behind DCTCP's cuts. Called
// by congestion.cpp only.
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

// alpha is one until something was observed: the first mark halves the window (4.2).
void dctcp_open(Dctcp&);
// `bytes` acknowledged, by a segment with ECE or without; [una, nxt) is in flight.
void dctcp_acked(Dctcp&, std::uint32_t bytes, bool ece, StreamOffset una, StreamOffset nxt);
// cwnd * (1 - alpha / 2).
std::uint32_t dctcp_cut(const Dctcp&, std::uint32_t cwnd);

}  // namespace urnic::tcp
