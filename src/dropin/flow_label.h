// The flow label of a global route, which RoCEv2 has no other place for than the source port of
// UDP.
#pragma once

#include <cstdint>

namespace urnic::dropin {

inline constexpr std::uint32_t kFlowLabels = 0xfffff;  // it has 20 bits

// Ways that may be told apart by it: 0xc000 to 0xffff. A label is longer than that, and its rest is
// folded in. Without one `pair` chooses, which is of the two ends.
constexpr std::uint32_t source_port(std::uint32_t label, std::uint32_t pair) {
  constexpr std::uint32_t kFirstPort = 0xc000, kPorts = 0x3fff;
  constexpr unsigned kPortBits = 14;
  label &= kFlowLabels;
  if (label == 0) label = pair & kFlowLabels;
  return kFirstPort | ((label ^ label >> kPortBits) & kPorts);
}

}  // namespace urnic::dropin
