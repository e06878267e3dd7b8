// What every packet must pass before the rules of its transport are asked: is it one, is it whole,
// is it for this queue pair. What fails is dropped silently, and counted (IB-2).
//
//   open_packet   lengths, ICRC, version           knows no queue pair
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

// Why a packet was dropped without a word, in the order of the checks.
enum class Drop : std::uint8_t {
  Malformed,    // lengths that cannot be
  BadIcrc,      // damaged
  BadVersion,   // TVer is not 0
  NoQueuePair,  // nobody has that number
  WrongState,   // the queue pair takes no requests, or no responses
  WrongService,
  BadPkey,
  WrongAddress,  // of a connected queue pair: not from its peer
  BadQkey,
};
inline constexpr std::size_t kDrops = 9;
std::string_view name(Drop);

struct DropCounters {
  std::array<std::uint64_t, kDrops> by_reason{};

  void count(Drop d) { ++by_reason[static_cast<std::size_t>(d)]; }
  std::uint64_t of(Drop d) const { return by_reason[static_cast<std::size_t>(d)]; }
};

// What is known of the header in front.
enum class Headers : std::uint8_t {
  AsCame,
  FromSocket,  // made of what a socket tells: IPv4 with an identification of 0 that means nothing
};
// Of the bytes UDP carried, BTH to ICRC; `ip_udp` as icrc() takes it. The result borrows them.
Outcome<ParsedPacket, Drop> open_packet(ByteView ip_udp, ByteView datagram,
                                        Headers headers = Headers::AsCame);

// Whose packet it is: responses are the requester's.
enum class Half : std::uint8_t { Requester, Responder };

// `qp`: the one bth.dest_qp names, or null, and the state it is in; `source`: whose IP address the
// datagram carries.
Outcome<Half, Drop> check(const PacketHeader&, const IpAddress& source, const QpAttributes* qp,
                          verbs::QpState state);

// Equal in the lower 15 bits, which are not 0, and at least one of them is of a full member (bit
// 15) (IB-132).
bool pkeys_match(std::uint16_t a, std::uint16_t b);

}  // namespace urnic::ib
