// Which operation a packet of a request has, of RC and of UC.
#pragma once

#include <cstdint>

#include "ib/opcode_table.h"
#include "verbs/work.h"

namespace urnic::ib {

// Of packet `packet` of `packets`. No local operation has one.
Operation operation_of(verbs::WrOp op, std::uint32_t packet, std::uint32_t packets);

}  // namespace urnic::ib
