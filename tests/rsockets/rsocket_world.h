// Rsockets of one process over the network of hand_verbs.h, with their model: the invariants when
// nothing is in flight.
#pragma once

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <string>

#include "rsockets/calls.h"
#include "rsockets/hand_network.h"
#include "rsockets/rsocket_model.h"
#include "support/walk.h"

namespace urnic::rsockets::model {

using test::agree;
using test::agree_on;
using test::Dice;

inline int open_descriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  int n = 0;
  while (readdir(folder) != nullptr) ++n;
  closedir(folder);
  return n;
}
inline sockaddr_in address(int ip, int port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = ip < 0 ? INADDR_ANY : htonl(static_cast<std::uint32_t>(INADDR_LOOPBACK + ip));
  a.sin_port = htons(static_cast<std::uint16_t>(port));
  return a;
}
inline sockaddr* any(sockaddr_in& a) {
  return reinterpret_cast<sockaddr*>(&a);
}
// The result, or a negative errno.
template <class T>
long result(T of) {
  return static_cast<long>(of) == -1 ? -errno : static_cast<long>(of);
}

using Held = std::shared_ptr<End>;

class World {
 public:
  World() : time_(7) {
    net_ = std::make_unique<hand::HandVerbs>();
    descriptors_ = open_descriptors();
    test::VirtualTime::meanwhile([this] {
      for (std::uint32_t i = 0; i < 40; ++i) net_->move(turn_++);
      net_->serve();
    });
  }
  virtual ~World() {
    for (const Held& e : ends_) {
      for (const int n : e->numbers) urnic_rclose(n);
    }
    net_->settle();
    ends_.clear();
    net_.reset();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

 protected:
  // Everything in flight arrives, and its effects are applied to the model.
  void settle() {
    net_->settle();
    hear();
    ++settlings_;
    is_settled_ = true;
    is_written_ = false;
    check_all();
    learn_places();
  }
  void hear() {
    for (const Held& e : ends_) {
      if (e->stage == Stage::connecting && e->is_active) learn_connect(*e, e);
    }
    for (const Held& e : everybody()) {
      if (e->torn) e->may_be_both = e->may_be_both || !e->heard.empty() || !e->out_open;
      for (const Said s : std::exchange(e->heard, {})) e->hear(s);
      if (e->torn) e->end(ECONNRESET);
    }
  }
  // All ends, including those that are not accepted yet.
  std::vector<Held> everybody() const {
    std::vector<Held> all = ends_;
    for (const Held& e : ends_) {
      for (const auto& [w, since] : e->waiting) all.push_back(w);
    }
    return all;
  }
  virtual void learn_connect(End&, const Held&) = 0;

  // ---- checks

  void check_all() {
    agree(net_->wrong.empty(), net_->wrong);
    check_left();
    for (const Held& e : ends_) {
      if (!e->is_open()) continue;
      if (e->torn || e->is_short) learn_torn(*e);
      if (e->may_be_both && e->over) learn_error(*e);
      check_error(*e);
      check_addresses(*e);
      check_ready(*e);
      check_options(*e);
      int n = -1;
      agree_on(urnic_rs_ioctl(e->fd(), FIONREAD, &n), 0, name(*e) + "FIONREAD");
      agree_on(static_cast<std::size_t>(n), e->unread.size(), name(*e) + "unread bytes");
      for (const auto& m : e->mapped) {
        agree(m->memory == m->expected, name(*e) + "a mapped buffer holds something else");
      }
    }
    agree(net_->wrong.empty(), net_->wrong);
  }
  // The sockets that exist: those of the program, and those that wait to be accepted.
  void check_left() const {
    std::size_t ghosts = 0;
    for (const Held& e : ends_) ghosts += e->ghosts.size();
    const std::size_t is = net_->left().sockets, least = everybody().size();
    agree(is >= least && is <= least + ghosts,
          std::to_string(is) + " rsockets, the model says " + std::to_string(least));
  }
  // Learns how much data arrived before it broke, and checks its order.
  void learn_torn(End& e) {
    int n = 0;
    urnic_rs_ioctl(e.fd(), FIONREAD, &n);
    agree(n >= 0 && static_cast<std::size_t>(n) <= e.unread.size(), name(e) + "more than was sent");
    e.unread.resize(static_cast<std::size_t>(n));
    if (!std::exchange(e.torn, false) && e.is_short) {
      e.is_short = false;
      return;
    }
    for (const auto& m : e.mapped) m->expected = m->memory;
  }
  // It ended in order, or with the error of what broke it.
  void learn_error(End& e) {
    int why = 0;
    socklen_t length = sizeof why;
    urnic_rgetsockopt(e.fd(), SOL_SOCKET, SO_ERROR, &why, &length);
    if (why == 0 || why == ECONNRESET) e.error = why;
    e.may_be_both = false;
  }
  void check_error(End& e) {
    int is = -1;
    socklen_t length = sizeof is;
    agree_on(urnic_rgetsockopt(e.fd(), SOL_SOCKET, SO_ERROR, &is, &length), 0, "SO_ERROR");
    agree_on(is, e.failed_quietly ? 0 : e.error, name(e) + "SO_ERROR");
    e.failed_quietly = e.stage == Stage::failed;
  }
  void check_addresses(const End& e) {
    sockaddr_in a{};
    socklen_t length = sizeof a;
    agree_on(result(urnic_rgetsockname(e.fd(), any(a), &length)), 0, name(e) + "getsockname");
    if (e.stage != Stage::fresh && e.stage != Stage::failed) {
      agree_on(int{ntohs(a.sin_port)}, e.port, name(e) + "its port");
    }
    const Held peer = e.peer.lock();
    const long got = result(urnic_rgetpeername(e.fd(), any(a), &length));
    agree_on(got, e.stage == Stage::connected ? 0 : -ENOTCONN, name(e) + "getpeername");
    if (got != 0 || peer == nullptr) return;
    agree_on(int{ntohs(a.sin_port)}, peer->port, name(e) + "its peer's port");
    agree_on(ntohl(a.sin_addr.s_addr) - INADDR_LOOPBACK, static_cast<unsigned>(peer->ip),
             name(e) + "its peer's address");
  }

  // Rpoll and the kernel must agree; there must be room to send when the peer has no unread data.
  void check_ready(const End& e) {
    pollfd of_kernel{e.fd(), POLLIN | POLLOUT, 0};
    ::poll(&of_kernel, 1, 0);
    pollfd p{e.fd(), POLLIN | POLLOUT, 0};
    agree(urnic_rpoll(&p, 1, 0) >= 0, "rpoll");
    agree_on(of_kernel.revents & (POLLIN | POLLHUP), p.revents & (POLLIN | POLLHUP),
             name(e) + "what the kernel shows");
    const int unknown = e.ghosts.empty() ? 0 : POLLIN;
    agree_on((p.revents & (POLLIN | POLLHUP | POLLERR)) | unknown, ready(e) | unknown,
             name(e) + "ready");
    const bool out = (p.revents & POLLOUT) != 0;
    if (e.stage == Stage::connecting || e.stage == Stage::listening) {
      agree_on(out, e.stage == Stage::listening, name(e) + "room to send");
    } else if (!e.out_open) {
      agree(out, name(e) + "who waits for room is not woken");
    } else if (const Held peer = e.peer.lock(); peer != nullptr && peer->unread.empty()) {
      agree(out, name(e) + "no room though all was read");
    }
  }
  int ready(const End& e) const {
    if (e.stage == Stage::failed) {
      return POLLIN | POLLHUP | (e.error != 0 && !e.failed_quietly ? POLLERR : 0);
    }
    if (e.stage == Stage::listening) return e.waiting.empty() ? 0 : POLLIN;
    if (e.stage != Stage::connected) return 0;
    if (e.over) return POLLIN | POLLHUP | (e.error != 0 ? POLLERR : 0);
    return !e.unread.empty() || !e.in_open ? POLLIN : 0;
  }

  void check_options(const End& e) {
    const Options& o = e.options;
    const struct {
      int level, name, value;
    } all[] = {{SOL_SOCKET, SO_SNDBUF, o.send_buffer},
               {SOL_SOCKET, SO_RCVBUF, o.receive_buffer},
               {SOL_SOCKET, SO_REUSEADDR, o.reuse},
               {SOL_SOCKET, SO_KEEPALIVE, o.keep_alive},
               {SOL_SOCKET, SO_OOBINLINE, o.oob_inline},
               {SOL_SOCKET, SO_TYPE, SOCK_STREAM},
               {SOL_SOCKET, SO_DOMAIN, AF_INET},
               {SOL_SOCKET, SO_ACCEPTCONN, e.stage == Stage::listening},
               {IPPROTO_TCP, TCP_NODELAY, o.no_delay},
               {IPPROTO_TCP, TCP_KEEPIDLE, o.idle_s},
               {IPPROTO_TCP, TCP_KEEPINTVL, o.interval_s},
               {IPPROTO_TCP, TCP_KEEPCNT, o.count},
               {SOL_RDMA, RDMA_SQSIZE, o.send_queue},
               {SOL_RDMA, RDMA_RQSIZE, o.receive_queue},
               {SOL_RDMA, RDMA_INLINE, o.inlined},
               {SOL_RDMA, RDMA_IOMAPSIZE, o.mappings}};
    for (const auto& [level, option, value] : all) {
      int is = -1;
      socklen_t length = sizeof is;
      agree_on(urnic_rgetsockopt(e.fd(), level, option, &is, &length), 0, "an option is told");
      agree_on(is, value,
               name(e) + "option " + std::to_string(level) + "." + std::to_string(option));
    }
    linger l{};
    socklen_t length = sizeof l;
    urnic_rgetsockopt(e.fd(), SOL_SOCKET, SO_LINGER, &l, &length);
    agree(l.l_onoff == o.linger_on && l.l_linger == o.linger_s, name(e) + "SO_LINGER");
    for (const auto& [option, ms] :
         {std::pair{SO_RCVTIMEO, o.receive_ms}, {SO_SNDTIMEO, o.send_ms}}) {
      timeval t{};
      length = sizeof t;
      urnic_rgetsockopt(e.fd(), SOL_SOCKET, option, &t, &length);
      agree_on(t.tv_sec * 1000 + t.tv_usec / 1000, std::max(ms, 0L), name(e) + "a time-out");
    }
    tcp_info info{};
    length = sizeof info;
    urnic_rgetsockopt(e.fd(), IPPROTO_TCP, TCP_INFO, &info, &length);
    const int state = e.stage == Stage::connected   ? TCP_ESTABLISHED
                      : e.stage == Stage::listening ? TCP_LISTEN
                                                    : TCP_CLOSE;
    agree_on(int{info.tcpi_state}, state, name(e) + "its state");
  }

  // Announcements have arrived.
  void learn_places() {
    for (const Held& e : everybody()) {
      for (Place& p : e->places) {
        if (p.is_there) p.is_known = true;
      }
    }
  }
  std::string name(const End& e) const {
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (ends_[i].get() == &e) return "#" + std::to_string(i) + ": ";
    }
    return "?: ";
  }

  test::VirtualTime time_;
  std::unique_ptr<hand::HandVerbs> net_;
  std::uint32_t turn_ = 0;
  int descriptors_ = 0;
  unsigned settlings_ = 0;
  bool is_settled_ = true;
  bool is_written_ = false;  // to a mapping, since it was settled
  std::vector<Held> ends_;
};

}  // namespace urnic::rsockets::model
