// Unix socket addresses: parsing them, and binding one without taking it from a living owner and
// despite a file left by a dead one.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "port/fd.h"

namespace urnic::port {

// A name that starts with '@' is in the abstract namespace: no file, no permissions, and it
// disappears with its owner.
class UnixAddress {
 public:
  // `key` is the name of the setting, for the error.
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
  kNobody,   // no process is there at the moment
  kBusy,     // a process is there, but its queue is full
  kRefused,  // no permission, or the file is not a socket of this kind
};
struct ConnectAttempt {
  ConnectResult result = ConnectResult::kNobody;
  Fd fd;
  int error = 0;
};
// `type` is SOCK_SEQPACKET or SOCK_DGRAM. Never blocks.
ConnectAttempt connect_to(const UnixAddress& address, int type);

// A socket bound to an address, and its file.
class BoundSocket {
 public:
  // A SOCK_SEQPACKET socket is already listening. `taken` is the error if a living process has the
  // address. `mode`: the permissions of the file, independent of the umask.
  static Outcome<BoundSocket, std::string> open(const UnixAddress& address, int type,
                                                const std::string& taken, mode_t mode = 0600);

  int fd() const { return fd_.get(); }
  // Removes the file if it is still ours. The destructor does not do this, because after fork the
  // child's copy must not remove it.
  void remove_file();

 private:
  Fd fd_;
  std::string path_;  // empty for an abstract address
  std::uint64_t inode_ = 0;
};

}  // namespace urnic::port
