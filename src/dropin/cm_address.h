// Socket addresses of C programs and their text form; which addresses are local to which device.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

namespace urnic::dropin {

class Adapter;

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
  sockaddr_storage room;
};

// Length of a sockaddr of this family; 0 for an unsupported family.
socklen_t length_of(int family);
// A v4-mapped IPv6 address is converted to IPv4. False for an unsupported family.
bool copy_address(const sockaddr* from, Address* to);
std::uint16_t port_of(const Address&);
void set_port(Address*, std::uint16_t port);
bool is_wildcard(const Address&);
bool is_loopback(const Address&);
// fe80::/10. Such an address is valid on one link, whose number is sin6_scope_id.
bool is_link_local(const Address&);
// Sets the link of a link-local address that has none.
void give_link(Address*, std::uint32_t link);
// The link on which the device has this link-local address; 0 if it is not on a link of the kernel.
std::uint32_t link_of(Adapter&, const Address& own);
// "10.77.0.1", "::1", "fe80::1%2", and the opposite conversion.
std::string host_of(const Address&);
bool from_host(const std::string& host, Address* to);  // the port is 0
// "10.77.0.1:18515", "[::1]:18515", and the opposite conversion.
std::string text_of(const Address&);
bool from_text(const std::string& text, Address* to);

// Sets `from` to the source address of packets to `to`. Returns 0, or errno if there is no route.
int choose_source(Adapter& adapter, const Address& to, Address* from);
// The first of these open devices that has this address; null if none has it.
Adapter* owner_of(const Address&, const std::vector<Adapter*>& among);
// True while an address of the device is still in duplicate detection, as on a tap shortly after it
// is opened: nothing can be sent yet.
bool is_settling(Adapter& adapter);
// Chooses the open device with the route to `to`: the one with the longest prefix; if equal, the
// first. Returns 0 or errno.
int choose_device(const Address& to, const std::vector<Adapter*>& among, Adapter** chosen,
                  Address* from);

}  // namespace urnic::dropin
