// Counts how often this test program has allocated memory with operator new.
#pragma once

#include <cstdint>

namespace urnic::ddp::test {

std::uint64_t allocations();

}  // namespace urnic::ddp::test
