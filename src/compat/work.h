// Work requests of C programs as those of the library.
#pragma once

#include <span>

#include "compat/exported.h"
#include "urnic/verbs.h"

namespace urnic::compat {

static_assert(sizeof(Sge) == sizeof(ibv_sge) &&
              offsetof(Sge, length) == offsetof(ibv_sge, length) &&
              offsetof(Sge, lkey) == offsetof(ibv_sge, lkey));

inline std::span<const Sge> to_sges(const ibv_sge* list, int number) {
  if (list == nullptr || number <= 0) return {};
  return {reinterpret_cast<const Sge*>(list), static_cast<std::size_t>(number)};
}

// 0, or why the request cannot be one of ours.
int to_request(const ibv_send_wr& wr, SendRequest* out);

}  // namespace urnic::compat
