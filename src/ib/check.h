// The checks that every packet must pass before the rules of its transport apply: is it
// well-formed, undamaged, and for this queue pair? A packet that fails is dropped silently, and
// counted (IB-2).
//
//   open_packet   lengths, ICRC, version           without a queue pair
//   (the caller finds the queue pair by bth.dest_qp)
//   check         queue pair, state, service, P_Key, the peer's address or the Q_Key; which half
//
// Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/ip_address.h"
#include "base/result.h"
#include "ib/context.h"
#include "ib/packet.h"
#include "verbs/qp_state.h"

namespace urnic::ib {

// Why a packet was dropped silently, in the order of the checks.
enum class Drop : std::uint8_t {
  Malformed,    // inconsistent lengths
  BadIcrc,      // damaged
  BadVersion,   // TVer is not 0
  NoQueuePair,  // no queue pair has that number
  WrongState,   // the queue pair accepts no requests, or no responses
  WrongService,
  BadPkey,
  WrongAddress,  // connected queue pair: not from its peer
  BadQkey,
};
inline constexpr std::size_t kDrops = 9;
std::string_view name(Drop);

struct DropCounters {
  std::array<std::uint64_t, kDrops> by_reason{};

  void count(Drop d) { ++by_reason[static_cast<std::size_t>(d)]; }
  std::uint64_t of(Drop d) const { return by_reason[static_cast<std::size_t>(d)]; }
};

// The origin of the IP and UDP headers.
enum class Headers : std::uint8_t {
  AsCame,
  FromSocket,  // from socket data: IPv4 with a meaningless identification of 0
};
// For the payload of UDP, BTH to ICRC; `ip_udp` as in icrc(). The result borrows both.
Outcome<ParsedPacket, Drop> open_packet(ByteView ip_udp, ByteView datagram,
                                        Headers headers = Headers::AsCame);

// The half a packet is for: responses are for the requester.
enum class Half : std::uint8_t { Requester, Responder };

// `qp`: the queue pair named by bth.dest_qp, or null, and its state; `source`: the source IP
// address of the datagram.
Outcome<Half, Drop> check(const PacketHeader&, const IpAddress& source, const QpAttributes* qp,
                          verbs::QpState state);

// True if the lower 15 bits are equal and not 0, and at least one key is that of a full member (bit
// 15) (IB-132).
bool pkeys_match(std::uint16_t a, std::uint16_t b);

}  // namespace urnic::ib
