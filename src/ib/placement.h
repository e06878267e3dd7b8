// Payload to where it goes. Checks come first (judge_request.h); what is asked here is in memory
// that the peer, or the receive, was found to have.
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

// Where byte `address` of what `key` names lies; found good by a check before.
std::uint8_t* address_in(const verbs::MemoryTable&, std::uint32_t key, std::uint64_t address);

// False when the memory has gone: it was unmapped, protected or cut off behind the registration.
[[nodiscard]] bool place(std::uint8_t* to, ByteView payload);

// May the bytes [offset, offset + n) of a receive be written? Its SGEs hold as many.
bool receive_holds(const verbs::MemoryTable&, std::span<const verbs::Sge>, verbs::PdId,
                   std::uint64_t offset, std::uint64_t n);
// Writes them; receive_holds() has said so. False when the memory has gone.
[[nodiscard]] bool place_in_receive(const verbs::MemoryTable&, std::span<const verbs::Sge>,
                                    verbs::PdId, std::uint64_t offset, ByteView payload);

// The eight bytes at `at`, aligned, as a number of this machine. Atomic against its processors,
// and so against every other device of ours. `*original`: what was there. False when the memory has
// gone.
[[nodiscard]] bool fetch_add(std::uint8_t* at, std::uint64_t add, std::uint64_t* original);
[[nodiscard]] bool compare_swap(std::uint8_t* at, std::uint64_t compare, std::uint64_t swap,
                                std::uint64_t* original);
// The one that the request asks for.
[[nodiscard]] bool carry_out_atomic(std::uint8_t* at, const PacketHeader& request,
                                    std::uint64_t* original);

}  // namespace urnic::ib
