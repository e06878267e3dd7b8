// Socket addresses of C programs, of text, and which of them are ours.
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

// Length of what a sockaddr of this family has; 0 for a family we have not.
socklen_t length_of(int family);
// An IPv6 address that stands for one of IPv4 becomes that. False for another family.
bool copy_address(const sockaddr* from, Address* to);
std::uint16_t port_of(const Address&);
void set_port(Address*, std::uint16_t port);
bool is_wildcard(const Address&);
bool is_loopback(const Address&);
// fe80::/10. Such an address is of one link, whose number is sin6_scope_id.
bool is_link_local(const Address&);
// If it is link-local and names no link, it is of `link` from now on.
void give_link(Address*, std::uint32_t link);
// The link on which the device has that link-local address; 0: it is not of a link of the kernel's.
std::uint32_t link_of(Adapter&, const Address& own);
// "10.77.0.1", "::1", "fe80::1%2", and back.
std::string host_of(const Address&);
bool from_host(const std::string& host, Address* to);  // its port is 0
// "10.77.0.1:18515", "[::1]:18515", and back.
std::string text_of(const Address&);
bool from_text(const std::string& text, Address* to);

// 0, or why packets to `to` cannot leave; then `from` is the address they leave with.
int choose_source(Adapter& adapter, const Address& to, Address* from);
// Of open devices the first that has this address; null without one.
Adapter* owner_of(const Address&, const std::vector<Adapter*>& among);
// Whether an address of it is still looked for at others, as a tap's is for a moment when it was
// opened: nothing leaves from there yet.
bool is_settling(Adapter& adapter);
// Which of open devices leads to `to`: the one whose network around an own address is the longest,
// the first of several. 0, or why there is none.
int choose_device(const Address& to, const std::vector<Adapter*>& among, Adapter** chosen,
                  Address* from);

}  // namespace urnic::dropin
