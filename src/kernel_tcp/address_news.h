// Reports changes of this machine's addresses, from its kernel (rtnetlink).
#pragma once

#include "kernel_tcp/socket.h"

namespace urnic::kernel_tcp {

class AddressNews {
 public:
  // Starts listening, in this network namespace. If that fails, error() returns the reason.
  AddressNews();
  // Readable when there are changes; -1 if changes cannot be reported.
  int fd() const { return socket_.is_open() ? socket_.fd() : -1; }
  // 0, or an errno value.
  int error() const { return error_; }
  // Reads all messages. True if an address or an interface may have been added or removed, also if
  // the kernel had no room for some messages.
  bool take();

 private:
  Socket socket_;
  int error_ = 0;
};

}  // namespace urnic::kernel_tcp
