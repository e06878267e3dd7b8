// The control socket of memif: messages with a descriptor beside them.
#pragma once

#include <cstdint>

#include "port/fd.h"
#include "port/memif_wire.h"

namespace urnic::port::memif {

// Never blocks. False when the message could not go out whole; the peer is then to be dropped.
bool send_message(int socket, const Message& m);

enum class Received : std::uint8_t { kMessage, kNothing, kEnd, kMalformed };
// The descriptor of the message, if any, lands in `fd`.
Received receive_message(int socket, Message* m, Fd* fd);

}  // namespace urnic::port::memif
