#include "iwarp/socket_end.h"

#include <errno.h>

#include <cstring>

namespace urnic::iwarp {

SocketEnd socket_end_of(int e, bool opening) {
  switch (e) {
    case ECONNREFUSED:
      return {Errc::refused, "connection refused by the peer (no listener on that port)"};
    case ETIMEDOUT:
      return {Errc::timed_out, opening
                                   ? "no response from the peer: connecting timed out"
                                   : "the peer stopped responding: all TCP retransmissions failed"};
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
      return {Errc::unreachable, "the peer is unreachable"};
    case EIO:
      return {Errc::reset, "a local error ended the connection"};
    default:
      return {Errc::reset, "connection reset by the peer"};
  }
}

Error socket_error(int e, const std::string& what) {
  const std::string text = what + ": " + std::strerror(e);
  switch (e) {
    case EADDRINUSE:
      return {Errc::in_use, what + ": the port is in use by another program"};
    case EADDRNOTAVAIL:
      return {Errc::invalid_argument, what + ": not an address of this machine"};
    case EACCES:
    case EPERM:
      return {Errc::permission, text + " (ports below 1024 need root or CAP_NET_BIND_SERVICE)"};
    case EMFILE:
      return {Errc::no_descriptors,
              what + ": no file descriptor left for this process (see ulimit -n)"};
    case ENFILE:
      return {Errc::no_descriptors,
              what + ": no file descriptor left on this machine (see fs.file-max)"};
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC:
      return {Errc::no_memory, text};
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
      return {Errc::unreachable, "no route to " + what};
    case EAFNOSUPPORT:
      return {Errc::unsupported, what + ": this machine does not support this IP version"};
    default:
      return {Errc::io, text};
  }
}

}  // namespace urnic::iwarp
