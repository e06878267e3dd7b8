// The control socket of memif: addresses, listening without stealing or tripping over a dead
// server's file, and messages with a descriptor beside them.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "port/fd.h"
#include "port/memif_wire.h"

namespace urnic::port::memif {

// Where the server listens. A name that starts with '@' is in the abstract namespace: no file, no
// permissions, gone with its owner.
class Address {
 public:
  static Outcome<Address, std::string> parse(const std::string& name);

  bool abstract() const { return name_[0] == '@'; }
  const std::string& name() const { return name_; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&un_); }
  socklen_t size() const { return size_; }

 private:
  std::string name_;
  sockaddr_un un_{};
  socklen_t size_ = 0;
};

// A listening socket whose file is removed by `remove_file`, if it is still ours.
class Listener {
 public:
  // Refuses with one line when somebody lives at the address; replaces the file a dead server left.
  static Outcome<Listener, std::string> open(const Address& address);

  int fd() const { return fd_.get(); }
  Fd accept() const;
  // Not the destructor's job: after fork the child's copy must leave the file alone.
  void remove_file();

 private:
  Fd fd_;
  std::string path_;  // empty: abstract
  std::uint64_t inode_ = 0;
};

enum class ConnectResult : std::uint8_t {
  kConnected,
  kNobody,   // no server there at the moment
  kBusy,     // a server, but its queue is full
  kRefused,  // no right, or the file is no socket of this kind
};
struct ConnectAttempt {
  ConnectResult result = ConnectResult::kNobody;
  Fd fd;
  int error = 0;
};
ConnectAttempt connect_to(const Address& address);

// Never blocks. False when the message could not go out whole; the peer is then to be dropped.
bool send_message(int socket, const Message& m);

enum class Received : std::uint8_t { kMessage, kNothing, kEnd, kMalformed };
// The descriptor of the message, if any, lands in `fd`.
Received receive_message(int socket, Message* m, Fd* fd);

// True when the process at the other end of `socket` runs as this user or as root.
bool same_user(int socket);

}  // namespace urnic::port::memif
