// Where connections are waited for.
#pragma once

#include <cstdint>

#include "sockets/socket.h"
#include "tcp/host_logic.h"

namespace urnic::iwarp {

struct Listener {
  std::uint16_t port = 0;
  // Connections between SYN and the consumer's answer. Half-open ones have what those that wait for
  // the consumer leave of it.
  tcp::Backlog backlog;
  bool closed = false;
  void* owner = nullptr;
  // Over the kernel's TCP:
  sockets::Socket socket;
  bool acceptable = false;  // connections wait in the kernel, as far as we know
  bool paused = false;      // for want of descriptors
  std::uint32_t pending() const { return backlog.waiting + backlog.half_open; }
};

}  // namespace urnic::iwarp
