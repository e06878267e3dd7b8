// What the poller's events are tagged with, and how sockets end.
#pragma once

#include <cstdint>
#include <string>

#include "urnic/status.h"

namespace urnic::iwarp {

// The tag of a listening socket; connections have their id, which is far below.
constexpr std::uint64_t kListening = std::uint64_t{1} << 63;

struct SocketEnd {
  Errc code;
  const char* why;
};

// What errno value `e` of a socket means for its connection.
SocketEnd socket_end_of(int e, bool opening);

// Why there is no socket for `what`, an address or a deed.
Error socket_error(int e, const std::string& what);

}  // namespace urnic::iwarp
