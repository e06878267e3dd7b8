// Checks whether a connection request is acceptable here; changes nothing (IB-137).
#pragma once

#include <optional>

#include "ib/context.h"
#include "ib_cm/events.h"
#include "ib_cm/ip_service.h"

namespace urnic::ib_cm {

// Queue pairs with a special meaning, which cannot be connected.
constexpr bool is_reserved(std::uint32_t qpn) {
  return qpn <= 1 || qpn == 0xffffff;
}
// For codes 1..5; nullopt for others.
std::optional<ib::PathMtu> path_mtu_of(std::uint8_t code);
std::uint8_t code_of(ib::PathMtu mtu);

// True if the 36 bytes match the datagram's addresses, or the service has none.
bool addresses_agree(std::uint64_t service, ByteView private_data, const AddressPair& addresses);

// Reason::None: acceptable. The transport that a listener serves is not checked here.
Reason judge_req(const Req& r, const AddressPair& addresses, ib::PathMtu most_mtu);

}  // namespace urnic::ib_cm
