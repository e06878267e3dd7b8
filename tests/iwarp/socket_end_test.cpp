// The meaning of errno values of the kernel's sockets for connecting, listening and open
// connections.
#include "iwarp/socket_end.h"

#include <errno.h>
#include <gtest/gtest.h>

namespace urnic::iwarp {
namespace {

TEST(SocketEnd, EachErrnoHasItsCodeAndMessage) {
  EXPECT_EQ(socket_end_of(ECONNREFUSED, true).code, Errc::refused);
  for (const int e : {ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN})
    EXPECT_EQ(socket_end_of(e, false).code, Errc::unreachable) << e;
  EXPECT_EQ(socket_end_of(ECONNRESET, false).code, Errc::reset);
  EXPECT_EQ(socket_end_of(EPIPE, false).code, Errc::reset) << "and whatever else ends a stream";
  EXPECT_STREQ(socket_end_of(EIO, false).why, "a local error ended the connection");
  // A timeout is reported differently depending on when it happened.
  EXPECT_EQ(socket_end_of(ETIMEDOUT, true).code, Errc::timed_out);
  EXPECT_STREQ(socket_end_of(ETIMEDOUT, true).why,
               "no response from the peer: connecting timed out");
  EXPECT_STREQ(socket_end_of(ETIMEDOUT, false).why,
               "the peer stopped responding: all TCP retransmissions failed");
}

TEST(SocketError, TellsWhatIsWrongAndWhatToDo) {
  const struct {
    int e;
    Errc code;
    const char* words;
  } kCases[] = {
      {EADDRINUSE, Errc::in_use, "here: the port is in use by another program"},
      {EADDRNOTAVAIL, Errc::invalid_argument, "here: not an address of this machine"},
      {EACCES, Errc::permission, "(ports below 1024 need root or CAP_NET_BIND_SERVICE)"},
      {EPERM, Errc::permission, "(ports below 1024 need root or CAP_NET_BIND_SERVICE)"},
      {EMFILE, Errc::no_descriptors,
       "here: no file descriptor left for this process (see ulimit -n)"},
      {ENFILE, Errc::no_descriptors,
       "here: no file descriptor left on this machine (see fs.file-max)"},
      {ENOMEM, Errc::no_memory, "here: "},
      {ENOBUFS, Errc::no_memory, "here: "},
      {ENOSPC, Errc::no_memory, "here: "},
      {ENETUNREACH, Errc::unreachable, "no route to here"},
      {EHOSTUNREACH, Errc::unreachable, "no route to here"},
      {ENETDOWN, Errc::unreachable, "no route to here"},
      {EAFNOSUPPORT, Errc::unsupported, "this machine does not support this IP version"},
      {EINVAL, Errc::io, "here: Invalid argument"},
  };
  for (const auto& c : kCases) {
    const Error error = socket_error(c.e, "here");
    EXPECT_EQ(error.code, c.code) << c.e;
    EXPECT_NE(error.message.find(c.words), std::string::npos) << error.message;
  }
}

}  // namespace
}  // namespace urnic::iwarp
