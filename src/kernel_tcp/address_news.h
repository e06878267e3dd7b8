// News of addresses that come to this machine or go, from its kernel (rtnetlink).
#pragma once

#include "kernel_tcp/socket.h"

namespace urnic::kernel_tcp {

class AddressNews {
 public:
  // Listens from now on, in this network namespace. error() says why it cannot.
  AddressNews();
  // Readable when there are news; -1 where there never are.
  int fd() const { return socket_.is_open() ? socket_.fd() : -1; }
  // 0, or an errno value.
  int error() const { return error_; }
  // Takes all that has been said. True when an address or an interface may have come or gone, also
  // where the kernel had no room to say so.
  bool take();

 private:
  Socket socket_;
  int error_ = 0;
};

}  // namespace urnic::kernel_tcp
