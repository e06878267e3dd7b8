// Copies payload to its destination. The checks come first (judge_request.h): the memory passed
// here has been found to be allowed.
//
// The last bytes of each piece are stored after the rest, since programs poll them (E-13).
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "ib/packet.h"
#include "verbs/memory.h"
#include "verbs/work.h"

namespace urnic::ib {

// The address of byte `address` in the region of `key`, which has been checked before.
std::uint8_t* address_in(const verbs::MemoryTable&, std::uint32_t key, std::uint64_t address);

// False if the memory is gone: unmapped, protected or truncated after registration.
[[nodiscard]] bool place(std::uint8_t* to, ByteView payload);

// True if the bytes [offset, offset + n) of a receive may be written. Its SGEs must hold as many.
bool receive_holds(const verbs::MemoryTable&, std::span<const verbs::Sge>, verbs::PdId,
                   std::uint64_t offset, std::uint64_t n);
// Writes them; only after receive_holds(). False if the memory is gone.
[[nodiscard]] bool place_in_receive(const verbs::MemoryTable&, std::span<const verbs::Sge>,
                                    verbs::PdId, std::uint64_t offset, ByteView payload);

// Atomic operations on the eight aligned bytes at `at`, as a number in host byte order. They are
// atomic for all processors of this machine, and so for every other device of ours. `*original`:
// the value before. False if the memory is gone.
[[nodiscard]] bool fetch_add(std::uint8_t* at, std::uint64_t add, std::uint64_t* original);
[[nodiscard]] bool compare_swap(std::uint8_t* at, std::uint64_t compare, std::uint64_t swap,
                                std::uint64_t* original);
// Executes the atomic operation of the request.
[[nodiscard]] bool carry_out_atomic(std::uint8_t* at, const PacketHeader& request,
                                    std::uint64_t* original);

}  // namespace urnic::ib
