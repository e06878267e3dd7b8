#include "iwarp/socket_end.h"

#include <errno.h>

namespace urnic::iwarp {

SocketEnd socket_end_of(int e, bool opening) {
  switch (e) {
    case ECONNREFUSED:
      return {Errc::refused, "connection refused by the peer (nobody listens on that port)"};
    case ETIMEDOUT:
      return {Errc::timed_out, opening ? "no answer from the peer: connecting timed out"
                                       : "the peer stopped answering: TCP gave up retransmitting"};
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
      return {Errc::unreachable, "the peer is unreachable"};
    case EIO:
      return {Errc::reset, "a local error ended the stream"};
    default:
      return {Errc::reset, "connection reset by the peer"};
  }
}

}  // namespace urnic::iwarp
