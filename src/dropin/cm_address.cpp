#include "dropin/cm_address.h"

#include <arpa/inet.h>
#include <errno.h>

#include <charconv>
#include <cstring>

#include "dropin/adapter.h"

namespace urnic::dropin {

std::string host_of(const Address& a) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* bytes = a.any.sa_family == AF_INET ? static_cast<const void*>(&a.v4.sin_addr)
                                                 : static_cast<const void*>(&a.v6.sin6_addr);
  inet_ntop(a.any.sa_family, bytes, text, sizeof text);
  if (!is_link_local(a) || a.v6.sin6_scope_id == 0) return text;
  return std::string(text) + "%" + std::to_string(a.v6.sin6_scope_id);
}

bool is_link_local(const Address& a) {
  return a.any.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a.v6.sin6_addr);
}

void give_link(Address* a, std::uint32_t link) {
  if (is_link_local(*a) && a->v6.sin6_scope_id == 0) a->v6.sin6_scope_id = link;
}

std::uint32_t link_of(Adapter& adapter, const Address& own) {
  if (!is_link_local(own)) return 0;
  auto all = adapter.device().addresses();
  if (!all) return 0;
  for (const std::string& text : *all) {
    Address a;
    if (!from_host(text, &a) || !is_link_local(a)) continue;
    if (std::memcmp(&a.v6.sin6_addr, &own.v6.sin6_addr, sizeof a.v6.sin6_addr) != 0) continue;
    return a.v6.sin6_scope_id;
  }
  return 0;
}

socklen_t length_of(int family) {
  return family == AF_INET ? sizeof(sockaddr_in) : family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

bool copy_address(const sockaddr* from, Address* to) {
  *to = {};
  if (from->sa_family == AF_INET) {
    std::memcpy(&to->v4, from, sizeof to->v4);
    return true;
  }
  if (from->sa_family != AF_INET6) return false;
  std::memcpy(&to->v6, from, sizeof to->v6);
  if (IN6_IS_ADDR_V4MAPPED(&to->v6.sin6_addr)) {
    const sockaddr_in6 mapped = to->v6;
    *to = {};
    to->v4.sin_family = AF_INET;
    to->v4.sin_port = mapped.sin6_port;
    std::memcpy(&to->v4.sin_addr, mapped.sin6_addr.s6_addr + 12, 4);
  }
  return true;
}

std::uint16_t port_of(const Address& a) {
  if (a.any.sa_family == AF_INET) return ntohs(a.v4.sin_port);
  return a.any.sa_family == AF_INET6 ? ntohs(a.v6.sin6_port) : 0;
}

void set_port(Address* a, std::uint16_t port) {
  (a->any.sa_family == AF_INET ? a->v4.sin_port : a->v6.sin6_port) = htons(port);
}

bool is_wildcard(const Address& a) {
  if (a.any.sa_family == AF_INET) return a.v4.sin_addr.s_addr == INADDR_ANY;
  return a.any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a.v6.sin6_addr);
}

bool is_loopback(const Address& a) {
  if (a.any.sa_family == AF_INET) return ntohl(a.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  return a.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
}

std::string text_of(const Address& a) {
  const std::string ip = host_of(a), port = ":" + std::to_string(port_of(a));
  return a.any.sa_family == AF_INET ? ip + port : "[" + ip + "]" + port;
}

bool from_text(const std::string& text, Address* to) {
  *to = {};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  std::uint16_t port = 0;
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
  if (text[0] == '[') {
    const std::string host = text.substr(1, text.find(']') - 1);
    const std::string ip = host.substr(0, host.find('%'));
    if (ip != host) {
      const char* const link = host.data() + ip.size() + 1;
      std::from_chars(link, host.data() + host.size(), to->v6.sin6_scope_id);
    }
    if (inet_pton(AF_INET6, ip.c_str(), &to->v6.sin6_addr) != 1) return false;
    to->v6.sin6_family = AF_INET6;
  } else {
    const std::string ip = text.substr(0, colon);
    if (inet_pton(AF_INET, ip.c_str(), &to->v4.sin_addr) != 1) return false;
    to->v4.sin_family = AF_INET;
  }
  set_port(to, port);
  return true;
}

bool from_host(const std::string& host, Address* to) {
  const bool v4 = host.find(':') == std::string::npos;
  return from_text(v4 ? host + ":0" : "[" + host + "]:0", to);
}

int choose_source(Adapter& adapter, const Address& to, Address* from) {
  *from = {};
  auto source = adapter.device().source_for(host_of(to));
  if (!source) return source.error().code == Errc::no_descriptors ? EMFILE : ENETUNREACH;
  return from_host(*source, from) ? 0 : ENETUNREACH;
}

Adapter* owner_of(const Address& a, const std::vector<Adapter*>& among) {
  for (Adapter* adapter : among) {
    if (adapter->device().has_address(host_of(a))) return adapter;
  }
  return nullptr;
}

bool is_settling(Adapter& adapter) {
  return adapter.device().info().link_up && !adapter.device().wait_link(0);
}

int choose_device(const Address& to, const std::vector<Adapter*>& among, Adapter** chosen,
                  Address* from) {
  *chosen = nullptr;
  unsigned longest = 0;
  for (Adapter* adapter : among) {
    auto length = adapter->device().prefix_length_for(host_of(to));
    if (!length && length.error().code == Errc::no_descriptors) return EMFILE;
    if (!length || (*chosen != nullptr && *length <= longest)) continue;
    *chosen = adapter;
    longest = *length;
  }
  // A kernel's error codes: no route, or a route that uses no RDMA device.
  if (*chosen == nullptr) return among.size() > 1 ? ENODEV : ENETUNREACH;
  return choose_source(**chosen, to, from);
}

}  // namespace urnic::dropin
