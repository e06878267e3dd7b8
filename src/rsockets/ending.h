// How a connection ends: which directions are open, and what each end has said of it.
#pragma once

#include <cstdint>
#include <optional>

#include "rsockets/wire.h"

namespace urnic::rsockets {

class Ending {
 public:
  void connected() { connected_ = readable_ = writable_ = true; }

  bool is_connected() const { return connected_; }
  // More may come; what has come is read in any case.
  bool is_readable() const { return readable_; }
  bool is_writable() const { return writable_; }
  // 0 when it ended as one of the two wanted, or has not ended.
  int error() const { return error_; }

  // This end closes directions. What the other is to be told, if it is to be.
  std::optional<Control> close(bool reading, bool writing);
  // The other end says so. False: that is no message.
  bool on_control(std::uint32_t value);
  // The message that this end is through has gone.
  void on_disconnect_sent() { over(0); }
  // The connection is not there any more.
  void lost(int error) {
    if (connected_) over(error);
  }

 private:
  void over(int error) {
    connected_ = readable_ = writable_ = false;
    error_ = error;
  }

  bool connected_ = false, readable_ = false, writable_ = false;
  int error_ = 0;
};

}  // namespace urnic::rsockets
