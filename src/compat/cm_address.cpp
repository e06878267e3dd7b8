#include "compat/cm_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <sstream>

#include "compat/errors.h"
#include "compat/process.h"

namespace urnic::compat {
namespace {

bool same_ip(const Address& a, const Address& b) {
  if (a.any.sa_family != b.any.sa_family) return false;
  return a.any.sa_family == AF_INET ? a.v4.sin_addr.s_addr == b.v4.sin_addr.s_addr
                                    : std::memcmp(&a.v6.sin6_addr, &b.v6.sin6_addr, 16) == 0;
}

// Octets that two addresses of one family have in common from the front, in bits.
int common_bits(const Address& a, const Address& b) {
  const bool v4 = a.any.sa_family == AF_INET;
  const auto* x = v4 ? reinterpret_cast<const std::uint8_t*>(&a.v4.sin_addr)
                     : reinterpret_cast<const std::uint8_t*>(&a.v6.sin6_addr);
  const auto* y = v4 ? reinterpret_cast<const std::uint8_t*>(&b.v4.sin_addr)
                     : reinterpret_cast<const std::uint8_t*>(&b.v6.sin6_addr);
  int bits = 0;
  for (int i = 0; i < (v4 ? 4 : 16); ++i) {
    const unsigned different = x[i] ^ y[i];
    if (different == 0) {
      bits += 8;
      continue;
    }
    return bits + __builtin_clz(different) - 24;
  }
  return bits;
}

// Calls `f` with every address of the device.
template <class F>
void for_own(F&& f) {
  std::istringstream all(Process::get().device().info().addresses);
  std::string one;
  while (all >> one) {
    const std::string ip = one.substr(0, one.find('/'));
    Address a{};
    const std::string text = ip.find(':') == std::string::npos ? ip + ":0" : "[" + ip + "]:0";
    if (from_text(text, &a)) f(a);
  }
}

}  // namespace

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

std::string text_of(const Address& a) {
  char text[INET6_ADDRSTRLEN] = {};
  if (a.any.sa_family == AF_INET) {
    inet_ntop(AF_INET, &a.v4.sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(port_of(a));
  }
  inet_ntop(AF_INET6, &a.v6.sin6_addr, text, sizeof text);
  return "[" + std::string(text) + "]:" + std::to_string(port_of(a));
}

bool from_text(const std::string& text, Address* to) {
  *to = {};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  std::uint16_t port = 0;
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
  if (text[0] == '[') {
    const std::string ip = text.substr(1, text.find(']') - 1);
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

int choose_source(const Address& to, Address* from) {
  *from = {};
  if (!Process::get().over_kernel_tcp()) {
    int best = -1;
    for_own([&](const Address& own) {
      if (own.any.sa_family != to.any.sa_family) return;
      const int bits = common_bits(own, to);
      if (bits <= best) return;
      best = bits;
      *from = own;
    });
    return best < 0 ? ENETUNREACH : 0;
  }
  // What the kernel would choose, without a packet.
  const int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  int error = 0;
  socklen_t length = sizeof *from;
  if (connect(fd, &to.any, length_of(to.any.sa_family)) != 0 ||
      getsockname(fd, &from->any, &length) != 0) {
    error = errno;
  }
  close(fd);
  set_port(from, 0);
  return error;
}

// Over the kernel's TCP a bound socket, which does not listen. It lets the device's listener, which
// is set to the same, come to the same port. A device of its own has its ports for itself.
int ReservedPort::reserve(std::uint16_t* port) {
  Process& process = Process::get();
  if (!process.over_kernel_tcp()) {
    if (*port != 0) return 0;
    auto listener = process.device().listen(0);
    if (!listener) return to_errno(listener.error().code);
    *port = listener->port();
    return 0;
  }
  Address at{};
  at.v6.sin6_family = AF_INET6;
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 && errno == EAFNOSUPPORT) {
    at.v4.sin_family = AF_INET;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }
  if (fd < 0) return errno;
  const int on = 1, off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.any.sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  set_port(&at, *port);
  socklen_t length = sizeof at;
  if (bind(fd, &at.any, length_of(at.any.sa_family)) != 0 ||
      getsockname(fd, &at.any, &length) != 0) {
    const int error = errno;
    close(fd);
    return error;
  }
  fd_ = fd;
  *port = port_of(at);
  return 0;
}

void ReservedPort::give_up() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool is_ours(const Address& a) {
  if (!Process::get().over_kernel_tcp()) {
    bool found = false;
    for_own([&](const Address& own) { found = found || same_ip(own, a); });
    return found;
  }
  const int fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  Address any_port = a;
  set_port(&any_port, 0);
  const bool bound = bind(fd, &any_port.any, length_of(a.any.sa_family)) == 0;
  close(fd);
  return bound;
}

}  // namespace urnic::compat
