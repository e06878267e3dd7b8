// Converts work requests of C programs into those of the library.
#pragma once

#include <endian.h>

#include <cstdint>
#include <span>

#include "dropin/exported.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

static_assert(sizeof(Sge) == sizeof(ibv_sge) &&
              offsetof(Sge, length) == offsetof(ibv_sge, length) &&
              offsetof(Sge, lkey) == offsetof(ibv_sge, lkey));

inline std::span<const Sge> to_sges(const ibv_sge* list, int number) {
  if (list == nullptr || number <= 0) return {};
  return {reinterpret_cast<const Sge*>(list), static_cast<std::size_t>(number)};
}

// Immediate data of verbs has four bytes, that of RFC 7306 eight. After the four bytes follows the
// number of bytes written, which verbs report to the receiver and iWARP does not carry; or a value
// that says it came with a Send. Peers other than urnic leave them 0.
inline constexpr std::uint32_t kWithSend = 0xffffffff;
inline std::uint64_t to_immediate(__be32 data, std::uint32_t written) {
  return std::uint64_t{be32toh(data)} << 32 | written;
}
inline __be32 immediate_data(std::uint64_t immediate) {
  return htobe32(static_cast<std::uint32_t>(immediate >> 32));
}
inline std::uint32_t immediate_length(std::uint64_t immediate) {
  return static_cast<std::uint32_t>(immediate);
}
// RoCE carries the four bytes of verbs.
inline std::uint64_t to_roce_immediate(__be32 data) {
  return be32toh(data);
}
inline __be32 roce_immediate_data(std::uint64_t immediate) {
  return htobe32(static_cast<std::uint32_t>(immediate));
}

// Flags allowed in a send request.
inline constexpr unsigned kSendFlags =
    IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE | IBV_SEND_FENCE;
std::uint32_t to_flags(unsigned flags);

// The properties of a queue pair that a request depends on.
struct PostedTo {
  ibv_qp_type type;
  bool has_wide_immediate;
};

// Returns 0, or an errno value if the request cannot be converted for that queue pair. `bind` is
// the storage to which a bind request points.
int to_request(const ibv_send_wr& wr, const PostedTo& to, SendRequest* out, WindowBind* bind);

}  // namespace urnic::dropin
