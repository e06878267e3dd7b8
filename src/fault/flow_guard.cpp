#include "fault/flow_guard.h"

#include <algorithm>

#include "mpa/startup.h"

namespace urnic::fault {
namespace {

constexpr std::uint64_t kLongestHandshake = mpa::kFrameHeader + mpa::kMaxPrivateData;

// The length of the MPA start-up frame at the beginning of `payload`; 0 if it is something else. If
// the frame is cut before its length field, the maximum length is assumed.
std::uint64_t handshake_length(ByteView payload) {
  for (const bool reply : {false, true}) {
    const auto len = mpa::frame_length(payload, reply);
    if (!len.ok()) continue;
    return len.value().value_or(static_cast<std::uint32_t>(kLongestHandshake));
  }
  return 0;
}

}  // namespace

bool FlowGuard::spares(const TcpView& v, ByteView payload, const FaultPlan& plan) {
  if (plan.after == 0 && !plan.skip_handshake) {
    if (!flows_.empty()) flows_.clear();
    return false;
  }
  const FlowKey key{v.src(), v.dst()};
  if (v.has(tcp::kSyn)) {
    if (flows_.size() >= kLimit) flows_.erase(flows_.begin());
    flows_[key] = {v.seq + 1, plan.skip_handshake ? kUnknown : 0};
    return true;
  }
  const auto it = flows_.find(key);
  if (it == flows_.end()) return false;
  Flow& flow = it->second;
  const std::uint32_t offset = v.seq - flow.start;
  if (flow.handshake == kUnknown && offset == 0 && v.payload_len != 0) {
    flow.handshake =
        handshake_length(payload.first(std::min<std::size_t>(payload.size(), v.payload_len)));
  }
  const std::uint64_t known = flow.handshake == kUnknown ? kLongestHandshake : flow.handshake;
  if (offset < std::max(known, plan.after)) return true;
  // A keepalive or a retransmission from before the start appears to be 4 GiB ahead.
  if (offset > 0x7fffffff) return true;
  // The guarded part has passed. Forgetting the stream also frees its entry.
  flows_.erase(it);
  return false;
}

}  // namespace urnic::fault
