// The control socket of memif: messages with an optional file descriptor.
#pragma once

#include <cstdint>

#include "port/fd.h"
#include "port/memif_wire.h"

namespace urnic::port::memif {

// Never blocks. False if the message could not be sent completely; the peer must then be dropped.
bool send_message(int socket, const Message& m);

enum class Received : std::uint8_t { kMessage, kNothing, kEnd, kMalformed };
// Stores the descriptor of the message, if any, in `fd`.
Received receive_message(int socket, Message* m, Fd* fd);

}  // namespace urnic::port::memif
