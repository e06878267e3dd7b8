// The payload of an Atomic Request (RFC 7306, 5.2.1): the operation and its target.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "ddp_rdma/violation.h"

namespace urnic::ddp {

inline constexpr std::uint32_t kAtomicRequest = 52;  // bytes after the untagged header

// 1 is reserved: a Swap is a CmpSwap that compares no bit.
enum class AtomicCode : std::uint8_t { FetchAdd = 0, CmpSwap = 2 };

// Masks: for FetchAdd, the bits across which no carry goes; for CmpSwap, the bits stored or
// compared.
struct AtomicRequest {
  AtomicCode code = AtomicCode::FetchAdd;
  std::uint32_t id = 0;  // returned in the response
  std::uint32_t stag = 0;
  std::uint64_t to = 0;
  std::uint64_t data = 0, mask = 0;
  std::uint64_t compare = 0, compare_mask = ~std::uint64_t{0};
};

// Checks that the kAtomicRequest bytes contain a known operation.
Violation check_atomic_request(ByteView payload);
// Parses the request. The bytes may have changed since the check (memory shared with a peer): their
// current values are used, and an unknown code becomes CmpSwap.
AtomicRequest parse_atomic_request(ByteView payload);
void emit_atomic_request(const AtomicRequest&, std::uint8_t* dst);

}  // namespace urnic::ddp
