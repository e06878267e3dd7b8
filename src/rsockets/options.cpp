// rsetsockopt and rgetsockopt. Options without a meaning for such a connection fail with
// ENOPROTOOPT.
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/time.h>

#include <rdma/rsocket.h>
#include <algorithm>
#include <cstring>

#include "dropin/errors.h"
#include "rsockets/calls.h"
#include "rsockets/socket.h"

namespace urnic::rsockets {
namespace {

using dropin::failed;

constexpr int kPathMtu = 1024;
constexpr int kMostLinger = 3600;  // s

struct Given {
  const void* value;
  socklen_t length;

  int number() const {
    int n = 0;
    std::memcpy(&n, value, sizeof n);
    return n;
  }
};

// An even number, because the buffer has two halves, and large enough to transfer data.
std::uint32_t buffer_size(int wanted) {
  const auto n = static_cast<std::uint32_t>(std::clamp<int>(wanted, kMinBuffer, kMaxBuffer));
  return n & ~1u;
}

std::uint16_t queue_size(int wanted) {
  return static_cast<std::uint16_t>(std::clamp<int>(wanted, kMinQueue, kMaxQueue));
}

int set_time(const Given& g, int* out) {
  timeval t;
  if (g.length < sizeof t) return EINVAL;
  std::memcpy(&t, g.value, sizeof t);
  if (t.tv_usec < 0 || t.tv_usec >= 1'000'000) return EDOM;
  constexpr long kMostSeconds = 1'000'000;
  const long s = std::min<long>(t.tv_sec, kMostSeconds);
  const bool none = s <= 0 && t.tv_usec == 0;
  *out = none ? -1 : static_cast<int>(std::max(s, 0L) * 1000 + (t.tv_usec + 999) / 1000);
  return 0;
}

int set_linger(const Given& g, Settings* s) {
  linger l;
  if (g.length < sizeof l) return EINVAL;
  std::memcpy(&l, g.value, sizeof l);
  if (l.l_linger < 0 || l.l_linger > kMostLinger) return EINVAL;
  s->linger_on = l.l_onoff;
  s->linger_s = l.l_linger;
  return 0;
}

int set_of_socket(int name, const Given& g, Settings* s) {
  if (name == SO_RCVTIMEO) return set_time(g, &s->receive_timeout_ms);
  if (name == SO_SNDTIMEO) return set_time(g, &s->send_timeout_ms);
  if (name == SO_LINGER) return set_linger(g, s);
  if (g.length < sizeof(int)) return EINVAL;
  const int n = g.number();
  switch (name) {
    case SO_REUSEADDR:
      s->reuse_address = n != 0;
      return 0;
    case SO_RCVBUF:
      s->receive_buffer = buffer_size(n);
      return 0;
    case SO_SNDBUF:
      s->send_buffer = buffer_size(n);
      return 0;
    case SO_KEEPALIVE:
      s->keep_alive = n != 0;
      return 0;
    case SO_OOBINLINE:
      s->out_of_band_inline = n != 0;
      return 0;
    default:
      return ENOPROTOOPT;
  }
}

int set_of_tcp(int name, const Given& g, Settings* s) {
  if (g.length < sizeof(int)) return EINVAL;
  const int n = g.number();
  switch (name) {
    case TCP_NODELAY:
      s->no_delay = n != 0;
      return 0;
    case TCP_KEEPIDLE:
    case TCP_KEEPINTVL:
    case TCP_KEEPCNT:
      if (n <= 0) return EINVAL;
      (name == TCP_KEEPIDLE    ? s->keep_idle_s
       : name == TCP_KEEPINTVL ? s->keep_interval_s
                               : s->keep_count) = n;
      return 0;
    default:
      return ENOPROTOOPT;
  }
}

int set_of_rdma(int name, const Given& g, Settings* s, bool before_connection) {
  if (name == RDMA_ROUTE) return ENOPROTOOPT;  // the device finds the route by itself
  if (g.length < sizeof(int)) return EINVAL;
  if (!before_connection) return EINVAL;
  const int n = g.number();
  if (n < 0) return EINVAL;
  switch (name) {
    case RDMA_SQSIZE:
      s->send_queue = queue_size(n);
      return 0;
    case RDMA_RQSIZE:
      s->receive_queue = queue_size(n);
      return 0;
    case RDMA_INLINE:
      s->inlined = static_cast<std::uint16_t>(std::min<int>(n, kMaxInline));
      return 0;
    case RDMA_IOMAPSIZE:  // rounded as it will be sent to the peer
      s->mappings = from_scale(to_scale(static_cast<std::uint32_t>(n)));
      return 0;
    default:
      return ENOPROTOOPT;
  }
}

int set(Settings* s, Socket::State stage, int level, int name, const Given& g) {
  const bool before = stage == Socket::State::fresh || stage == Socket::State::bound ||
                      stage == Socket::State::listening;
  switch (level) {
    case SOL_SOCKET:
      return set_of_socket(name, g, s);
    case IPPROTO_TCP:
      return set_of_tcp(name, g, s);
    case IPPROTO_IPV6:
      if (name != IPV6_V6ONLY) return ENOPROTOOPT;
      if (g.length < sizeof(int) || stage != Socket::State::fresh) return EINVAL;
      s->ipv6_only = g.number() != 0;
      return 0;
    case SOL_RDMA:
      return set_of_rdma(name, g, s, before);
    default:
      return ENOPROTOOPT;
  }
}

// ---- getting options

int tell(const void* what, socklen_t size, void* to, socklen_t* length) {
  *length = std::min(*length, size);
  std::memcpy(to, what, *length);
  return 0;
}

int tell_time(int ms, void* to, socklen_t* length) {
  const timeval t{ms < 0 ? 0 : ms / 1000, ms < 0 ? 0 : ms % 1000 * 1000};
  return tell(&t, sizeof t, to, length);
}

// The TCP connection below is not visible here, so only a state and a size are filled in.
int tell_tcp(Socket::State stage, void* to, socklen_t* length) {
  tcp_info info{};
  info.tcpi_state = stage == Socket::State::connected   ? TCP_ESTABLISHED
                    : stage == Socket::State::listening ? TCP_LISTEN
                                                        : TCP_CLOSE;
  info.tcpi_snd_mss = info.tcpi_rcv_mss = kPathMtu;
  return tell(&info, sizeof info, to, length);
}

// True if the option is a number.
bool number_of_socket(Socket& socket, const Settings& s, Socket::State stage, int name, int* n) {
  switch (name) {
    case SO_REUSEADDR:
      *n = s.reuse_address;
      return true;
    case SO_RCVBUF:
      *n = static_cast<int>(s.receive_buffer);
      return true;
    case SO_SNDBUF:
      *n = static_cast<int>(s.send_buffer);
      return true;
    case SO_KEEPALIVE:
      *n = s.keep_alive;
      return true;
    case SO_OOBINLINE:
      *n = s.out_of_band_inline;
      return true;
    case SO_TYPE:
      *n = SOCK_STREAM;
      return true;
    case SO_DOMAIN:
      *n = socket.family();
      return true;
    case SO_PROTOCOL:
      *n = IPPROTO_TCP;
      return true;
    case SO_ACCEPTCONN:
      *n = stage == Socket::State::listening;
      return true;
    case SO_ERROR:
      *n = socket.error(true);
      return true;
    default:
      return false;
  }
}

bool number_of_tcp(const Settings& s, int name, int* n) {
  switch (name) {
    case TCP_NODELAY:
      *n = s.no_delay;
      return true;
    case TCP_KEEPIDLE:
      *n = s.keep_idle_s;
      return true;
    case TCP_KEEPINTVL:
      *n = s.keep_interval_s;
      return true;
    case TCP_KEEPCNT:
      *n = s.keep_count;
      return true;
    case TCP_MAXSEG:  // as in rdma-core: the path MTU that a queue pair shows
      *n = kPathMtu;
      return true;
    default:
      return false;
  }
}

bool number_of_rdma(const Settings& s, int name, int* n) {
  switch (name) {
    case RDMA_SQSIZE:
      *n = s.send_queue;
      return true;
    case RDMA_RQSIZE:
      *n = s.receive_queue;
      return true;
    case RDMA_INLINE:
      *n = s.inlined;
      return true;
    case RDMA_IOMAPSIZE:
      *n = static_cast<int>(s.mappings);
      return true;
    default:
      return false;
  }
}

int get(Socket& socket, int level, int name, void* to, socklen_t* length) {
  Settings s;
  Socket::State stage{};
  socket.with_settings([&](const Settings& kept, Socket::State at) {
    s = kept;
    stage = at;
    return 0;
  });
  int n = 0;
  bool known = false;
  switch (level) {
    case SOL_SOCKET:
      if (name == SO_RCVTIMEO) return tell_time(s.receive_timeout_ms, to, length);
      if (name == SO_SNDTIMEO) return tell_time(s.send_timeout_ms, to, length);
      if (name == SO_LINGER) {
        const linger l{s.linger_on, s.linger_s};
        return tell(&l, sizeof l, to, length);
      }
      known = number_of_socket(socket, s, stage, name, &n);
      break;
    case IPPROTO_TCP:
      if (name == TCP_INFO) return tell_tcp(stage, to, length);
      known = number_of_tcp(s, name, &n);
      break;
    case IPPROTO_IPV6:
      known = name == IPV6_V6ONLY;
      n = s.ipv6_only;
      break;
    case SOL_RDMA:
      known = number_of_rdma(s, name, &n);
      break;
    default:
      break;
  }
  return known ? tell(&n, sizeof n, to, length) : ENOPROTOOPT;
}

}  // namespace
}  // namespace urnic::rsockets

using namespace urnic::rsockets;  // the exported functions are in the global namespace

int urnic_rsetsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  const auto s = lookup(fd);
  if (s == nullptr) return -1;
  if (value == nullptr) return urnic::dropin::failed(EFAULT);
  const int e = s->with_settings([&](Settings& kept, Socket::State stage) {
    return set(&kept, stage, level, name, {value, length});
  });
  return e == 0 ? 0 : urnic::dropin::failed(e);
}

int urnic_rgetsockopt(int fd, int level, int name, void* value, socklen_t* length) {
  const auto s = lookup(fd);
  if (s == nullptr) return -1;
  if (value == nullptr || length == nullptr) return urnic::dropin::failed(EFAULT);
  const int e = get(*s, level, name, value, length);
  return e == 0 ? 0 : urnic::dropin::failed(e);
}
