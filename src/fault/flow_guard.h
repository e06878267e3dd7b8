// Protects the beginning of a TCP stream from a fault plan, so that a connection is established
// before the faults begin.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "fault/plan.h"
#include "fault/tcp_frame.h"

namespace urnic::fault {

using FlowKey = std::pair<SocketAddress, SocketAddress>;

class FlowGuard {
 public:
  // True if the plan must not change this segment. `payload` is the visible part of its payload. A
  // stream is protected only if its SYN was seen.
  bool spares(const TcpView& v, ByteView payload, const FaultPlan& plan);
  std::size_t size() const { return flows_.size(); }

 private:
  // bound: streams whose beginning a plan spares; beyond: one is forgotten and no longer spared;
  // test: FlowGuard.AFullTableForgetsOneStreamForEachNewOne
  static constexpr std::size_t kLimit = 65536;
  static constexpr std::uint64_t kUnknown = ~0ull;
  struct Flow {
    std::uint32_t start = 0;             // sequence number of the first byte
    std::uint64_t handshake = kUnknown;  // length of the MPA Request or Reply
  };
  std::map<FlowKey, Flow> flows_;
};

}  // namespace urnic::fault
