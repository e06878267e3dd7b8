// Proportional rate reduction (RFC 6937, with the safe bound of RFC 9937). In fast recovery cwnd
// follows the delivered bytes, so that it reaches ssthresh gradually by the end of the recovery.
// Called by loss.cpp and output.cpp only.
#pragma once

#include <algorithm>
#include <cstdint>

namespace urnic::tcp {

struct Prr {
  std::uint32_t delivered = 0;  // bytes delivered since the recovery began
  std::uint32_t out = 0;        // bytes sent since then
  std::uint32_t flight = 1;     // RecoverFS: in flight when it began
};

// Returns cwnd after an ACK that delivered `bytes`, with `pipe` in flight. `safe`: SND.UNA advanced
// and no new loss was found, so one more segment per ACK is harmless.
inline std::uint32_t prr_cwnd(Prr& p, std::uint32_t bytes, std::uint32_t pipe,
                              std::uint32_t ssthresh, std::uint32_t smss, bool safe) {
  p.delivered += bytes;
  std::int64_t send;
  if (pipe > ssthresh) {
    const std::uint64_t due =
        (std::uint64_t{p.delivered} * ssthresh + p.flight - 1) / std::max(p.flight, 1u);
    send = static_cast<std::int64_t>(due) - p.out;
  } else {
    send = std::max(std::int64_t{p.delivered} - p.out, std::int64_t{bytes}) + (safe ? smss : 0);
    send = std::min(send, std::int64_t{ssthresh} - pipe);
  }
  return pipe + static_cast<std::uint32_t>(std::max<std::int64_t>(send, 0));
}

}  // namespace urnic::tcp
