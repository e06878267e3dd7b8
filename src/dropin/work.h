// Work requests of C programs as those of the library.
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

// Immediate data of verbs is four bytes, that of RFC 7306 eight. Behind the four go how many
// bytes were written, which verbs tell the receiver and iWARP does not; or, that it came with a
// Send. A peer that is none of ours leaves them 0.
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
// RoCE has the four bytes that verbs have.
inline std::uint64_t to_roce_immediate(__be32 data) {
  return be32toh(data);
}
inline __be32 roce_immediate_data(std::uint64_t immediate) {
  return htobe32(static_cast<std::uint32_t>(immediate));
}

// Of a send request.
inline constexpr unsigned kSendFlags =
    IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE | IBV_SEND_FENCE;
std::uint32_t to_flags(unsigned flags);

// Of the queue pair, what matters to a request.
struct PostedTo {
  ibv_qp_type type;
  bool has_wide_immediate;
};

// 0, or why the request cannot be one of ours on that queue pair. `bind` is what a request for a
// bind points to.
int to_request(const ibv_send_wr& wr, const PostedTo& to, SendRequest* out, WindowBind* bind);

}  // namespace urnic::dropin
