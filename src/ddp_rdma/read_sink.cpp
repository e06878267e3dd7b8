#include "ddp_rdma/read_sink.h"

namespace urnic::ddp {

std::uint32_t ReadSinks::open(StreamId stream, std::span<const std::span<std::uint8_t>> pieces) {
  // All allocations come before the key, which would leak if one failed.
  if (free_ == kNone) {
    sinks_.emplace_back().stream = kNone;
    free_ = static_cast<std::uint32_t>(sinks_.size() - 1);
  }
  const std::uint32_t at = free_;
  ReadSink& s = sinks_[at];
  if (pieces.size() > 1) {
    if (!s.pieces) s.pieces = std::make_unique<std::vector<std::span<std::uint8_t>>>();
    s.pieces->assign(pieces.begin(), pieces.end());
  }
  const std::uint32_t stag = keys_->reserve(at);
  if (stag == 0) return 0;
  free_ = s.stream;
  s.base = pieces.size() == 1 ? pieces[0].data() : nullptr;
  s.length = 0;
  for (const auto& piece : pieces) s.length += piece.size();
  s.stream = stream;
  s.progress = 0;
  s.out_of_order = false;
  s.ended = false;
  return stag;
}

void ReadSinks::release(std::uint32_t stag) {
  const verbs::Region* r = keys_->at_index(stag);
  if (r == nullptr) return;
  const std::uint32_t at = r->link;
  if (!keys_->release(stag)) return;
  sinks_[at].stream = free_;
  free_ = at;
}

}  // namespace urnic::ddp
