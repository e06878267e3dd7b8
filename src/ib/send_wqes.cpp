#include "ib/send_wqes.h"

#include <array>
#include <cstring>
#include <span>

#include "base/guarded.h"
#include "verbs/sge_walk.h"

namespace urnic::ib {

using verbs::Completion;
using verbs::SendWqe;
using verbs::Sge;

bool SendWqes::may_touch(std::uint32_t index) const {
  const SendWqe& w = wqe(index);
  if ((w.flags & verbs::kInline) != 0) return true;
  const bool write = verbs::awaits_response(w.op);
  for (const Sge& sge : sq_->sges(index)) {
    if (resolve_sge(*memory_, sge, who_.pd, write).data() == nullptr) return false;
  }
  return true;
}

const std::uint8_t* SendWqes::memory_of(const Sge& sge) const {
  const verbs::Region* region = memory_->find_registered(sge.lkey);
  if (region == nullptr || region->pd != who_.pd || sge.addr < region->address) return nullptr;
  const std::uint64_t offset = sge.addr - region->address;
  if (offset > region->length || sge.length > region->length - offset) return nullptr;
  return region->base + offset;
}

bool SendWqes::gather(std::uint32_t index, std::uint32_t offset, std::uint32_t len,
                      ByteView* pieces, std::uint32_t* count) const {
  *count = 0;
  if (len == 0) return true;
  if ((wqe(index).flags & verbs::kInline) != 0) {
    pieces[(*count)++] = sq_->inline_payload(index).subspan(offset, len);
    return true;
  }
  return verbs::for_each_piece(sq_->sges(index), offset, len,
                               [&](const Sge& sge, std::uint64_t at, std::uint64_t n) {
                                 const std::uint8_t* const memory = memory_of(sge);
                                 if (memory == nullptr) return false;
                                 pieces[(*count)++] = {memory + at, n};
                                 return true;
                               });
}

ByteView SendWqes::piece(std::uint32_t index, std::uint32_t offset) const {
  if ((wqe(index).flags & verbs::kInline) != 0) return sq_->inline_payload(index).subspan(offset);
  ByteView found;
  verbs::for_each_piece(sq_->sges(index), offset, 1,
                        [&](const Sge& sge, std::uint64_t at, std::uint64_t) {
                          const std::uint8_t* const memory = memory_of(sge);
                          if (memory != nullptr) found = {memory + at, sge.length - at};
                          return true;
                        });
  return found;
}

bool SendWqes::scatter(std::uint32_t index, std::uint32_t offset, ByteView payload) const {
  std::array<MutBytes, verbs::kMaxSges> to;
  std::size_t count = 0;
  const bool whole = verbs::for_each_piece(sq_->sges(index), offset, payload.size(),
                                           [&](const Sge& sge, std::uint64_t at, std::uint64_t n) {
                                             const auto memory =
                                                 resolve_sge(*memory_, sge, who_.pd, true);
                                             if (memory.data() == nullptr) return false;
                                             to[count++] = memory.subspan(at, n);
                                             return true;
                                           });
  if (!whole) return false;
  const std::uint8_t* from = payload.data();
  for (std::size_t i = 0; i < count; ++i) {
    const MutBytes piece = to[i];
    if (!guarded(piece.data(), piece.size(),
                 [=] { std::memcpy(piece.data(), from, piece.size()); })) {
      return false;
    }
    from += piece.size();
  }
  return true;
}

verbs::Status SendWqes::execute_local(std::uint32_t index) const {
  using verbs::Status;
  const verbs::SendWqe& w = wqe(index);
  if (w.op == verbs::WrOp::Bind) {
    return memory_->bind(sq_->window_bind(index), who_) ? Status::Success : Status::WindowBind;
  }
  using Invalidate = verbs::MemoryTable::Invalidate;
  return memory_->invalidate(w.key, who_) == Invalidate::Ok ? Status::Success
                                                            : Status::LocalProtection;
}

bool SendWqes::next_completion(Completion* c) const {
  while (sq_->head() != sq_->started()) {
    const SendWqe& w = wqe(sq_->head());
    if (!w.done) return false;
    const bool wanted = (w.flags & verbs::kSignaled) != 0;
    if (wanted) {
      *c = Completion{};
      c->wr_id = w.wr_id;
      c->op = w.op;
      c->byte_len = w.length;
    }
    sq_->pop(wanted);
    if (wanted) return true;
  }
  return false;
}

bool SendWqes::next_flushed(verbs::Status status, Completion* c) const {
  if (sq_->empty()) return false;
  const SendWqe& w = wqe(sq_->head());
  *c = Completion{};
  c->wr_id = w.wr_id;
  c->op = w.op;
  c->status = status;
  if (sq_->head() == sq_->started()) sq_->start();
  sq_->pop();
  return true;
}

}  // namespace urnic::ib
