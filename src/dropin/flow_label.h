// The flow label of a global route. RoCEv2 carries it only in the UDP source port.
#pragma once

#include <cstdint>

namespace urnic::dropin {

inline constexpr std::uint32_t kFlowLabels = 0xfffff;  // 20 bits

// The UDP source port, 0xc000 to 0xffff, by which paths can be distinguished. A label has more bits
// than that, so its upper bits are folded in. Without a label the port is derived from `pair`, a
// number that identifies the two ends.
constexpr std::uint32_t source_port(std::uint32_t label, std::uint32_t pair) {
  constexpr std::uint32_t kFirstPort = 0xc000, kPorts = 0x3fff;
  constexpr unsigned kPortBits = 14;
  label &= kFlowLabels;
  if (label == 0) label = pair & kFlowLabels;
  return kFirstPort | ((label ^ label >> kPortBits) & kPorts);
}

}  // namespace urnic::dropin
