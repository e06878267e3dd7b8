#include "ddp_rdma/atomic_request.h"

#include "base/bytes.h"
#include "ddp_rdma/once.h"

namespace urnic::ddp {
namespace {

constexpr std::uint32_t kCodeMask = 0x0f;  // the other bits are reserved
constexpr auto kFetchAdd = static_cast<std::uint32_t>(AtomicCode::FetchAdd);
constexpr auto kCmpSwap = static_cast<std::uint32_t>(AtomicCode::CmpSwap);

}  // namespace

Violation check_atomic_request(ByteView payload) {
  const std::uint32_t code = once(load_be32(payload.data())) & kCodeMask;
  const bool known = code == kFetchAdd || code == kCmpSwap;
  return known ? Violation::None : Violation::UnexpectedOpcode;
}

AtomicRequest parse_atomic_request(ByteView payload) {
  const CopiedHead<kAtomicRequest> copied(payload);
  const std::uint8_t* p = copied.view().data();
  AtomicRequest a;
  a.code = (load_be32(p) & kCodeMask) == kFetchAdd ? AtomicCode::FetchAdd : AtomicCode::CmpSwap;
  a.id = load_be32(p + 4);
  a.stag = load_be32(p + 8);
  a.to = load_be64(p + 12);
  a.data = load_be64(p + 20);
  a.mask = load_be64(p + 28);
  a.compare = load_be64(p + 36);
  a.compare_mask = load_be64(p + 44);
  return a;
}

void emit_atomic_request(const AtomicRequest& a, std::uint8_t* dst) {
  store_be32(dst, static_cast<std::uint32_t>(a.code));
  store_be32(dst + 4, a.id);
  store_be32(dst + 8, a.stag);
  store_be64(dst + 12, a.to);
  store_be64(dst + 20, a.data);
  store_be64(dst + 28, a.mask);
  store_be64(dst + 36, a.compare);
  store_be64(dst + 44, a.compare_mask);
}

}  // namespace urnic::ddp
