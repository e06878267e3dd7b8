// The blocks of the pcapng format that a capture of Ethernet frames needs: section header,
// interface description, enhanced packet. Written in the byte order of the host, which the format
// permits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "fault/fault_log.h"

namespace urnic::fault {

// Each function appends one whole block to `out`.
// `comment` may be empty.
void append_section(std::vector<std::uint8_t>& out, std::string_view application,
                    std::string_view comment = {});
// The time resolution is a nanosecond. `snap_length` 0: no limit.
void append_interface(std::vector<std::uint8_t>& out, std::string_view name,
                      std::uint32_t snap_length);
// The frame is head followed by tail; `kept` bytes of it are stored (at most its length). `unix_ns`
// counts from 1970.
void append_packet(std::vector<std::uint8_t>& out, std::uint32_t interface_id, Direction direction,
                   std::uint64_t unix_ns, ByteView head, ByteView tail, std::uint32_t kept);

}  // namespace urnic::fault
