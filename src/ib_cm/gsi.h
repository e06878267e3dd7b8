// Management datagrams as packets of the transport: UD SEND Only from and to queue pair 1, which
// every channel adapter has (IB-142). What else comes to it is dropped and counted.
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
  Opcode,    // no UD SEND Only
  Pkey,      // not of the default partition
  Qkey,      // another than that of queue pair 1
  SourceQp,  // from another queue pair than that of the peer's own manager
  Length,    // no MAD
};

// The MAD in a packet to queue pair 1; borrows its bytes.
Outcome<ByteView, GsiFault> open_gsi(const ib::ParsedPacket&);
// In front of a MAD that leaves. AckReq is set, as others do; it means nothing.
ib::PacketHeader gsi_header(ib::Psn);
// Bytes of such a packet, ICRC included.
inline constexpr std::size_t kGsiPacketBytes = ib::kBthBytes + 8 + kMadBytes + ib::kIcrcBytes;

}  // namespace urnic::ib_cm
