// GIDs of addresses, as RoCE has them.
#pragma once

#include <cstdint>
#include <vector>

#include "dropin/cm_address.h"
#include "dropin/exported.h"

namespace urnic::dropin {

class Adapter;

// Those of the addresses that the device has now; Adapter::gids() says which index each has. Never
// empty. As an iWARP device, first the MAC address and zeros, by iWARP's convention; behind it
// (ib-like and RoCE: alone) own addresses: IPv4, IPv6, loopback, link-local. One that two links
// have is one GID.
std::vector<ibv_gid> present_gids(Adapter& adapter);
// As RoCE has it: those of IPv4 mapped.
ibv_gid to_gid(const Address&);
// The interface that has it (if_nametoindex); of the MAC address the first that is not loopback. 0:
// none, where the address is of an engine's own stack.
unsigned interface_of(const ibv_gid& gid);
// False for one that is no address of IP. A GID does not say of which link an address is.
bool to_address(const ibv_gid& gid, Address* address);

}  // namespace urnic::dropin
