// The operation of a request's packet, for RC and UC.
#pragma once

#include <cstdint>

#include "ib/opcode_table.h"
#include "verbs/work.h"

namespace urnic::ib {

// For packet `packet` of `packets`. Local operations have none.
Operation operation_of(verbs::WrOp op, std::uint32_t packet, std::uint32_t packets);

}  // namespace urnic::ib
