// The payload of an Atomic Request (RFC 7306, 5.2.1): what is to be done, and where.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "ddp_rdma/violation.h"

namespace urnic::ddp {

inline constexpr std::uint32_t kAtomicRequest = 52;  // bytes behind the untagged header

// 1 is reserved: a Swap is a CmpSwap that compares no bit.
enum class AtomicCode : std::uint8_t { FetchAdd = 0, CmpSwap = 2 };

// Masks: of FetchAdd the bits no carry leaves, of CmpSwap the bits that are stored or compared.
struct AtomicRequest {
  AtomicCode code = AtomicCode::FetchAdd;
  std::uint32_t id = 0;  // comes back in the response
  std::uint32_t stag = 0;
  std::uint64_t to = 0;
  std::uint64_t data = 0, mask = 0;
  std::uint64_t compare = 0, compare_mask = ~std::uint64_t{0};
};

// Whether those kAtomicRequest bytes name an operation there is.
Violation check_atomic_request(ByteView payload);
// The bytes may have changed since (memory shared with a peer): whatever they say now is done, and
// a code there is none for is CmpSwap.
AtomicRequest parse_atomic_request(ByteView payload);
void emit_atomic_request(const AtomicRequest&, std::uint8_t* dst);

}  // namespace urnic::ddp
