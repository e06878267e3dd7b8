// The tags of the poller's events, and the meaning of socket errors.
#pragma once

#include <cstdint>
#include <string>

#include "urnic/status.h"

namespace urnic::iwarp {

// The tag of a listening socket. Connections use their id, which is far lower.
constexpr std::uint64_t kListening = std::uint64_t{1} << 63;

struct SocketEnd {
  Errc code;
  const char* why;
};

// The meaning of errno value `e` of a socket for its connection.
SocketEnd socket_end_of(int e, bool opening);

// The reason why there is no socket for `what`, an address or an action.
Error socket_error(int e, const std::string& what);

}  // namespace urnic::iwarp
