#include "ddp_rdma/atomics.h"

#include "base/guarded.h"
#include "ddp_rdma/access.h"

namespace urnic::ddp {
namespace {

// Adds each field separately (RFC 7306, 5.1.1). A bit set in `boundaries` is the highest bit of a
// field.
std::uint64_t add_fields(std::uint64_t a, std::uint64_t b, std::uint64_t boundaries) {
  // Without the highest bits, no carry leaves a field. The highest bits are then added without
  // carry.
  return ((a & ~boundaries) + (b & ~boundaries)) ^ ((a ^ b) & boundaries);
}

}  // namespace

std::uint64_t result_of(const AtomicRequest& a, std::uint64_t original) {
  switch (a.code) {
    case AtomicCode::FetchAdd:
      return add_fields(original, a.data, a.mask);
    case AtomicCode::CmpSwap:
      if (((original ^ a.compare) & a.compare_mask) != 0) return original;
      break;
  }
  return (original & ~a.mask) | (a.data & a.mask);
}

Violation carry_out(const SharedState& shared, const AtomicRequest& a, verbs::PdId pd,
                    StreamId stream, std::uint64_t* original) {
  const Violation v = check_atomic_target(shared, a.stag, a.to, pd, stream);
  if (v != Violation::None) return v;
  const verbs::Region* region = shared.memory->find(a.stag);
  auto* const at = reinterpret_cast<std::uint64_t*>(region->base + (a.to - region->address));
  const bool done = guarded(at, sizeof *at, [&] {
    *original = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, original, result_of(a, *original), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
  });
  return done ? Violation::None : Violation::ReadInvalidStag;
}

}  // namespace urnic::ddp
