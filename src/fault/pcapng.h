// Blocks of the pcapng format, as far as a capture of Ethernet frames needs them: section header,
// interface description, enhanced packet. Written in the byte order of the host, which the format
// allows.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "fault/fault_log.h"

namespace urnic::fault {

// Each appends one whole block to `out`.
void append_section(std::vector<std::uint8_t>& out, std::string_view application);
// Nanosecond resolution. `snap_length` 0: no limit.
void append_interface(std::vector<std::uint8_t>& out, std::string_view name,
                      std::uint32_t snap_length);
// The frame is head and tail; `kept` bytes of it are stored (<= its length). `unix_ns` counts from
// 1970.
void append_packet(std::vector<std::uint8_t>& out, std::uint32_t interface_id, Direction direction,
                   std::uint64_t unix_ns, ByteView head, ByteView tail, std::uint32_t kept);

}  // namespace urnic::fault
