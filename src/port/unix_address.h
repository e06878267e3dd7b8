// Unix socket addresses: naming them, taking one without stealing it from a live owner or tripping
// over the file a dead one left.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "port/fd.h"

namespace urnic::port {

// A name that starts with '@' is in the abstract namespace: no file, no permissions, gone with its
// owner.
class UnixAddress {
 public:
  // `key` is what the user calls it, for the error.
  static Outcome<UnixAddress, std::string> parse(const std::string& name, const char* key);

  bool abstract() const { return name_[0] == '@'; }
  const std::string& name() const { return name_; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&un_); }
  socklen_t size() const { return size_; }

 private:
  std::string name_;
  sockaddr_un un_{};
  socklen_t size_ = 0;
};

enum class ConnectResult : std::uint8_t {
  kConnected,
  kNobody,   // nobody there at the moment
  kBusy,     // somebody, but the queue is full
  kRefused,  // no right, or the file is no socket of this kind
};
struct ConnectAttempt {
  ConnectResult result = ConnectResult::kNobody;
  Fd fd;
  int error = 0;
};
// `type` is SOCK_SEQPACKET or SOCK_DGRAM. Never blocks.
ConnectAttempt connect_to(const UnixAddress& address, int type);

// A socket bound to an address, with the file it made there.
class BoundSocket {
 public:
  // For SOCK_SEQPACKET it listens already. `taken` is the error when somebody lives at the address.
  // `mode` are the rights of the file, whatever the umask allows beyond them.
  static Outcome<BoundSocket, std::string> open(const UnixAddress& address, int type,
                                                const std::string& taken, mode_t mode = 0600);

  int fd() const { return fd_.get(); }
  // Only if it is still ours. Not the destructor's job: after fork the child's copy must leave the
  // file alone.
  void remove_file();

 private:
  Fd fd_;
  std::string path_;  // empty: abstract
  std::uint64_t inode_ = 0;
};

}  // namespace urnic::port
