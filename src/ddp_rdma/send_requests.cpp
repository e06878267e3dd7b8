#include "ddp_rdma/send_requests.h"

namespace urnic::ddp {

bool SendRequests::find_sink(std::uint32_t seq, std::span<std::uint8_t>* pieces,
                             std::size_t* count) const {
  *count = 0;
  for (const Sge& sge : sq_.sges(seq)) {
    const auto piece = resolve_sge(*memory_, sge, pd_, true);
    if (piece.data() == nullptr) return false;
    if (!piece.empty()) pieces[(*count)++] = piece;
  }
  return true;
}

void SendRequests::count_uses(std::uint32_t seq) {
  if (sq_.wqe(seq).length == 0) return;
  part(seq).counted = true;
  for (const Sge& sge : sq_.sges(seq)) {
    if (sge.length != 0) ++memory_->find_registered(sge.lkey)->uses;
  }
}

void SendRequests::uncount_uses(std::uint32_t seq) {
  part(seq).counted = false;
  for (const Sge& sge : sq_.sges(seq)) {
    if (sge.length == 0) continue;
    Region* r = memory_->find_registered(sge.lkey);
    if (r != nullptr && r->uses != 0) --r->uses;
  }
}

void SendRequests::release(std::uint32_t seq, ReadSinks* sinks) {
  const SendWqe& w = sq_.wqe(seq);
  if (w.done) return;
  if (part(seq).counted) uncount_uses(seq);
  if (awaits_response(w.op)) sinks->release(part(seq).msn);
}

void SendRequests::release_all(ReadSinks* sinks) {
  for (std::uint32_t seq = sq_.head(); seq != sq_.started(); ++seq) release(seq, sinks);
}

bool SendRequests::uses_region(std::uint32_t seq, std::uint32_t stag) const {
  if ((sq_.wqe(seq).flags & kInline) != 0) return false;
  for (const Sge& sge : sq_.sges(seq)) {
    if (sge.lkey == stag && sge.length != 0) return true;
  }
  return false;
}

void SendRequests::detach(std::uint32_t stag, ReadSinks* sinks) {
  for (std::uint32_t seq = sq_.head(); seq != sq_.started(); ++seq) {
    const SendWqe& w = sq_.wqe(seq);
    SendPart& p = part(seq);
    if (w.done || verbs::is_local(w.op) || !uses_region(seq, stag)) continue;
    if (awaits_response(w.op)) {
      // The response has no destination any more: it will be rejected like one for an unknown STag.
      sinks->close(p.msn);
    } else if (!p.whole) {
      p.broken = true;
    }
    for (Sge& sge : sq_.sges(seq)) {
      if (sge.lkey != stag || sge.length == 0) continue;
      Region* r = memory_->find_registered(stag);
      if (p.counted && r != nullptr && r->uses != 0) --r->uses;
      sge.lkey = 0;
    }
  }
}

bool SendRequests::next_completion(Completion* c) {
  while (sq_.head() != sq_.started()) {
    const SendWqe& w = wqe(sq_.head());
    if (!w.done) return false;
    const bool wanted = (w.flags & kSignaled) != 0;
    if (wanted) {
      *c = Completion{};
      c->wr_id = w.wr_id;
      c->op = w.op;
      c->byte_len = w.length;
    }
    sq_.pop(wanted);
    if (wanted) return true;
  }
  return false;
}

}  // namespace urnic::ddp
