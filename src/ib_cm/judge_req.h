// Is a request for a connection one that can be had here? Without a change of anything (IB-137).
#pragma once

#include <optional>

#include "ib/context.h"
#include "ib_cm/events.h"
#include "ib_cm/ip_service.h"

namespace urnic::ib_cm {

// Queue pairs with a meaning of their own, which nobody connects.
constexpr bool is_reserved(std::uint32_t qpn) {
  return qpn <= 1 || qpn == 0xffffff;
}
// Of codes 1..5; nullopt for others.
std::optional<ib::PathMtu> path_mtu_of(std::uint8_t code);
std::uint8_t code_of(ib::PathMtu mtu);

// Do the 36 bytes say what the datagram's addresses say? True for services that have none.
bool addresses_agree(std::uint64_t service, ByteView private_data, const AddressPair& way);

// Reason::None: yes. What a listener serves is not asked here.
Reason judge_req(const Req& r, const AddressPair& way, ib::PathMtu most_mtu);

}  // namespace urnic::ib_cm
