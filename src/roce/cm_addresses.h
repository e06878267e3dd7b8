// The addresses and timeouts that RoCE's connection management uses for a connection.
#pragma once

#include "ib_cm/core.h"
#include "net/interface.h"
#include "urnic/status.h"
#include "verbs/connection.h"

namespace urnic::roce {

// Chooses the local address: that of the consumer, or the one that leads to `to`. Errors:
// unreachable.
Result<ib_cm::AddressPair> choose_addresses(const net::Interface&, const SocketAddress& to,
                                            const verbs::LocalEnd& from);

// How often a message is repeated, and how long either end waits for a response, as a code: all
// repeats together cover the time that the consumer gives, but each waits at least a quarter of a
// second.
inline constexpr std::uint8_t kCmRetries = 15;
constexpr std::uint8_t response_timeout(Duration all) {
  constexpr std::uint8_t kLeast = 16, kMost = 31;
  std::uint8_t code = kLeast;
  while (code < kMost && ib_cm::time_of(code) * (kCmRetries + 1) < all) ++code;
  return code;
}

}  // namespace urnic::roce
