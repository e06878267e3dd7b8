// The end of a connection: which directions are open, and which messages about it were exchanged.
#pragma once

#include <cstdint>
#include <optional>

#include "rsockets/wire.h"

namespace urnic::rsockets {

class Ending {
 public:
  void connected() { connected_ = readable_ = writable_ = true; }

  bool is_connected() const { return connected_; }
  // More data may arrive; data that has arrived can be read in any case.
  bool is_readable() const { return readable_; }
  bool is_writable() const { return writable_; }
  // 0 if the connection has not ended, or one of the two programs ended it.
  int error() const { return error_; }

  // This end closes directions. Returns the message for the peer, if one must be sent.
  std::optional<Control> close(bool reading, bool writing);
  // A control message of the peer. False: the message is invalid.
  bool on_control(std::uint32_t value);
  // The last message of this end has been sent.
  void on_disconnect_sent() { over(0); }
  // The connection is lost.
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
