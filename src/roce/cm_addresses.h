// Between which addresses connection management of RoCE is to talk, and for how long.
#pragma once

#include "ib_cm/core.h"
#include "net/interface.h"
#include "urnic/status.h"
#include "verbs/connection.h"

namespace urnic::roce {

// From where the consumer named, or from the address that leads to `to`. Errors: unreachable.
Result<ib_cm::AddressPair> choose_addresses(const net::Interface&, const SocketAddress& to,
                                            const verbs::LocalEnd& from);

// How often a message is repeated, and how long either end waits for an answer: so that all of it
// covers the time the consumer gives, but no less than a quarter of a second each. A code.
inline constexpr std::uint8_t kCmRetries = 15;
constexpr std::uint8_t response_timeout(Duration all) {
  constexpr std::uint8_t kLeast = 16, kMost = 31;
  std::uint8_t code = kLeast;
  while (code < kMost && ib_cm::time_of(code) * (kCmRetries + 1) < all) ++code;
  return code;
}

}  // namespace urnic::roce
