// GIDs of IP addresses, in RoCE's form.
#pragma once

#include <cstdint>
#include <vector>

#include "dropin/cm_address.h"
#include "dropin/exported.h"

namespace urnic::dropin {

class Adapter;

// The GIDs of the device's present addresses; Adapter::gids() gives their indices. Never empty. For
// an iWARP device the first GID is the MAC address followed by zeros, by iWARP's convention. Then
// (for ib-like and RoCE: only) follow the own addresses: IPv4, IPv6, loopback, link-local. An
// address that two links have is one GID.
std::vector<ibv_gid> present_gids(Adapter& adapter);
// In RoCE's form: IPv4 addresses are mapped.
ibv_gid to_gid(const Address&);
// The interface that has the address (if_nametoindex); for the MAC address the first interface that
// is not loopback. 0: none, because the address belongs to an engine's own stack.
unsigned interface_of(const ibv_gid& gid);
// False if the GID is not an IP address. A GID does not include the link of its address.
bool to_address(const ibv_gid& gid, Address* address);

}  // namespace urnic::dropin
