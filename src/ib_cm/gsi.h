// Management datagrams as packets of the transport: UD SEND Only from and to queue pair 1, which
// every channel adapter has (IB-142). All other packets to it are dropped and counted.
//
// Pure; any thread.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "ib/packet.h"
#include "ib_cm/mad.h"

namespace urnic::ib_cm {

inline constexpr std::uint32_t kGsiQpn = 1;
inline constexpr std::uint32_t kGsiQkey = 0x80010000;

enum class GsiFault : std::uint8_t {
  Opcode,    // not a UD SEND Only
  Pkey,      // not the default partition
  Qkey,      // not that of queue pair 1
  SourceQp,  // not from queue pair 1 of the peer
  Length,    // not a MAD
};

// The MAD in a packet to queue pair 1; borrows its bytes.
Outcome<ByteView, GsiFault> open_gsi(const ib::ParsedPacket&);
// The header of an outgoing MAD. AckReq is set as by other implementations; it has no meaning.
ib::PacketHeader gsi_header(ib::Psn);
// Bytes of such a packet, ICRC included.
inline constexpr std::size_t kGsiPacketBytes = ib::kBthBytes + 8 + kMadBytes + ib::kIcrcBytes;

}  // namespace urnic::ib_cm
