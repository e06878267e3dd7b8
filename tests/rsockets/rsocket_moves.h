// The steps of a program with its rsockets, and the model's expectations.
#pragma once

#include <sys/mman.h>

#include "rsockets/rsocket_world.h"

namespace urnic::rsockets::model {

class Moves : public test::Walk, protected World {
 protected:
  static constexpr std::size_t kMostEnds = 9;

  Held pick(Dice& d) { return ends_.empty() ? nullptr : ends_[d.below(ends_.size())]; }
  Held pick(Dice& d, Stage stage) {
    std::vector<Held> of;
    for (const Held& e : ends_) {
      if (e->stage == stage) of.push_back(e);
    }
    return of.empty() ? nullptr : of[d.below(of.size())];
  }
  void calm() {
    if (!is_settled_) settle();
  }

  // ---- creating

  void make(Dice& d) {
    if (ends_.size() >= kMostEnds) return;
    const auto e = std::make_shared<End>();
    const int fd = urnic_rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    agree(fd >= 0, "no rsocket");
    e->numbers = {fd};
    ends_.push_back(e);
    tell(name(*e) + "rsocket " + std::to_string(fd));
    for (unsigned n = d.below(4); n > 0; --n) set_size(*e, d);
    for (unsigned n = d.below(6); n > 0; --n) set_queues(*e, d);
    if (d.one_in(3)) set_time(*e, SO_RCVTIMEO, d, &e->options.receive_ms);
    if (d.one_in(3)) set_time(*e, SO_SNDTIMEO, d, &e->options.send_ms);
  }
  void set(End& e, int level, int option, int value, int* kept, int kept_as) {
    const bool early = e.stage < Stage::connecting;
    const long want = level == SOL_RDMA && !early ? -EINVAL : 0;
    tell(name(e) + "option " + std::to_string(level) + "." + std::to_string(option) + " = " +
         std::to_string(value));
    agree_on(result(urnic_rsetsockopt(e.fd(), level, option, &value, sizeof value)), want,
             name(e) + "rsetsockopt");
    if (want == 0) *kept = kept_as;
  }
  void set_size(End& e, Dice& d) {
    static constexpr int kSizes[] = {-5, 4096, 4097, 5001, 8192, 20'001, 70'000, 200'000, 1 << 27};
    const int size = kSizes[d.below(8 + d.one_in(20))];
    const bool sends = d.one_in(2);
    set(e, SOL_SOCKET, sends ? SO_SNDBUF : SO_RCVBUF, size,
        sends ? &e.options.send_buffer : &e.options.receive_buffer,
        std::clamp(size, 4096, 1 << 26) & ~1);
  }
  void set_queues(End& e, Dice& d) {
    const auto n = static_cast<int>(d.below(60));
    Options& o = e.options;
    switch (d.below(4)) {
      case 0:
        return set(e, SOL_RDMA, RDMA_SQSIZE, n, &o.send_queue, std::max(n, 16));
      case 1:
        return set(e, SOL_RDMA, RDMA_RQSIZE, n, &o.receive_queue, std::max(n, 16));
      case 2:
        return set(e, SOL_RDMA, RDMA_INLINE, n * n * 2, &o.inlined, std::min(n * n * 2, 4096));
      default:
        return set(e, SOL_RDMA, RDMA_IOMAPSIZE, n % 6, &o.mappings, n % 6);
    }
  }
  void set_option(Dice& d) {
    const Held e = pick(d);
    if (e == nullptr) return;
    if (e->stage == Stage::listening) calm();
    Options& o = e->options;
    const auto n = static_cast<int>(d.between(1, 300));
    const int on = n % 2;
    switch (d.below(12)) {
      case 0:
        return set(*e, SOL_SOCKET, SO_REUSEADDR, on, &o.reuse, on);
      case 1:
        return set(*e, SOL_SOCKET, SO_KEEPALIVE, on, &o.keep_alive, on);
      case 2:
        return set(*e, IPPROTO_TCP, TCP_NODELAY, on, &o.no_delay, on);
      case 3:
        return set(*e, SOL_SOCKET, SO_OOBINLINE, on, &o.oob_inline, on);
      case 4:
        return set(*e, IPPROTO_TCP, TCP_KEEPIDLE, n, &o.idle_s, n);
      case 5:
        return set(*e, IPPROTO_TCP, TCP_KEEPINTVL, n, &o.interval_s, n);
      case 6:
        return set(*e, IPPROTO_TCP, TCP_KEEPCNT, n, &o.count, n);
      case 7:
        return set_linger(*e, on, d.one_in(2) ? 0 : n);
      case 8:
        return set_time(*e, SO_RCVTIMEO, d, &o.receive_ms);
      case 9:
        return set_time(*e, SO_SNDTIMEO, d, &o.send_ms);
      case 10:
        return set_size(*e, d);
      default:
        return set_queues(*e, d);
    }
  }
  void set_linger(End& e, int on, int s) {
    const linger l{on, s};
    tell(name(e) + "linger " + std::to_string(on) + " " + std::to_string(s));
    agree_on(result(urnic_rsetsockopt(e.fd(), SOL_SOCKET, SO_LINGER, &l, sizeof l)), 0,
             "SO_LINGER");
    e.options.linger_on = on;
    e.options.linger_s = s;
  }
  void set_time(End& e, int option, Dice& d, long* kept) {
    const timeval t{static_cast<long>(d.below(3)), static_cast<long>(d.below(4)) * 120'001};
    tell(name(e) + "time-out " + std::to_string(t.tv_sec) + "." + std::to_string(t.tv_usec));
    agree_on(result(urnic_rsetsockopt(e.fd(), SOL_SOCKET, option, &t, sizeof t)), 0, "a time-out");
    *kept = t.tv_sec == 0 && t.tv_usec == 0 ? -1 : t.tv_sec * 1000 + (t.tv_usec + 999) / 1000;
  }

  void bind(Dice& d) {
    const Held e = pick(d);
    if (e == nullptr) return;
    calm();
    const int ip = static_cast<int>(d.below(4)) - 1,
              port = d.one_in(3) ? 0 : 7000 + static_cast<int>(d.below(3));
    auto a = address(ip, port);
    long want = e->stage != Stage::fresh ? -EINVAL : ip == 2 ? -EADDRNOTAVAIL : 0;
    for (const Held& o : ends_) {
      const bool there = o->stage == Stage::bound || o->stage == Stage::listening;
      if (want == 0 && there && port != 0 && o->port == port &&
          !(e->reuse_in_force.value_or(e->options.reuse != 0) && *o->reuse_in_force)) {
        want = -EADDRINUSE;
      }
    }
    tell(name(*e) + "bind " + std::to_string(ip) + " " + std::to_string(port));
    if (want != -EINVAL) e->make_identifier();
    agree_on(result(urnic_rbind(e->fd(), any(a), sizeof a)), want, name(*e) + "rbind");
    if (want != 0) return;
    e->stage = Stage::bound;
    e->ip = ip;
    e->port = port != 0 ? port : port_of(*e);
  }
  int port_of(const End& e) {
    sockaddr_in a{};
    socklen_t length = sizeof a;
    agree_on(urnic_rgetsockname(e.fd(), any(a), &length), 0, "getsockname");
    agree_on(length, socklen_t{sizeof a}, "length of an address");
    return ntohs(a.sin_port);
  }
  void listen(Dice& d) {
    if (const Held e = pick(d); e != nullptr) listen_on(e, d);
  }
  void listen_on(const Held& e, Dice& d) {
    calm();
    long want = e->stage <= Stage::listening ? 0 : -EINVAL;
    for (const Held& o : ends_) {
      if (want == 0 && e->stage == Stage::bound && o->stage == Stage::listening &&
          o->port == e->port) {
        want = -EADDRINUSE;
      }
    }
    tell(name(*e) + "listen");
    agree_on(result(urnic_rlisten(e->fd(), static_cast<int>(d.below(9)))), want,
             name(*e) + "rlisten");
    if (want != 0) return;
    if (e->stage == Stage::fresh) e->ip = -1;
    e->make_identifier();
    e->stage = Stage::listening;
    e->port = port_of(*e);
  }

  // ---- connecting

  void connect(Dice& d) {
    const Held e = pick(d);
    if (e == nullptr) return;
    const Held to = pick(d, Stage::listening);
    const bool waits = d.one_in(6);
    const int ip = to == nullptr || to->ip < 0 ? static_cast<int>(d.below(2)) : to->ip;
    const int port = to == nullptr || d.one_in(10) ? 6999 : to->port;
    begin_connect(e, port == 6999 ? nullptr : to, ip, port, waits);
  }
  void begin_connect(const Held& e, const Held& to, int ip, int port, bool waits) {
    tell(name(*e) + (waits ? "connects to " : "begins to connect to ") + std::to_string(ip) + " " +
         std::to_string(port));
    const bool can = e->stage == Stage::fresh || e->stage == Stage::bound;
    const long want = can                             ? -EINPROGRESS
                      : e->stage == Stage::connected  ? -EISCONN
                      : e->stage == Stage::connecting ? -EALREADY
                                                      : -EINVAL;
    auto a = address(ip, port);
    if (waits && can) calm();
    if (waits && can) urnic_rfcntl(e->fd(), F_SETFL, long{O_RDWR});
    const long got = result(urnic_rconnect(e->fd(), any(a), sizeof a));
    if (waits && can) urnic_rfcntl(e->fd(), F_SETFL, long{O_RDWR | O_NONBLOCK});
    // the outcome is not known yet
    if (!can && !is_settled_ && e->stage == Stage::connecting) return;
    is_settled_ = false;
    if (can) {
      e->stage = Stage::connecting;
      e->is_active = true;
      e->in_force = e->options;
      e->listener = to;
      e->ip = ip;
    }
    if (!(waits && can)) {
      agree_on(got, want, name(*e) + "rconnect");
    } else {
      agree_on(got, to == nullptr ? -ECONNREFUSED : 0L, name(*e) + "rconnect that waits");
      e->failed_quietly = to == nullptr;
    }
    if (can) e->port = port_of(*e);
  }
  void learn_connect(End& e, const Held& held) override {
    const Held to = e.listener.lock();
    bool made = to != nullptr && to->stage == Stage::listening && to->is_open();
    e.stage = made ? Stage::connected : Stage::failed;
    if (!made) e.error = ECONNREFUSED;
    if (std::exchange(e.is_uncertain, false)) made = learn_outcome(e) && made;
    if (e.stage != Stage::connected) return;
    e.connect_to(nullptr);
    e.of_peer = to != nullptr ? to->options.mappings : 0;
    if (!made) return e.heard.push_back(Said::lost);
    const auto other = std::make_shared<End>();
    other->options = other->in_force = to->options;
    other->ip = e.ip;
    other->port = to->port;
    other->peer_port = e.port;
    other->connect_to(held);
    other->unread = std::move(e.early);
    e.connect_to(other);
    to->waiting.emplace_back(other, settlings_);
  }
  // True: it is connected, and the other end exists.
  bool learn_outcome(End& e) {
    auto a = address(0, 1);
    const long got = result(urnic_rconnect(e.fd(), any(a), sizeof a));
    agree(got == -EISCONN || got == -EINVAL, name(e) + "neither connected nor failed");
    e.stage = got == -EISCONN ? Stage::connected : Stage::failed;
    if (e.stage == Stage::connected) return !e.torn;
    e.torn = false;
    socklen_t length = sizeof e.error;
    urnic_rgetsockopt(e.fd(), SOL_SOCKET, SO_ERROR, &e.error, &length);
    e.failed_quietly = true;
    if (const Held to = e.listener.lock(); to != nullptr) std::erase(to->ghosts, e.port);
    return false;
  }
  // Memory is refused once during the connect, at either end.
  void connect_without_memory(Dice& d) {
    const Held e = pick(d, Stage::fresh), to = pick(d, Stage::listening);
    if (e == nullptr || to == nullptr) return;
    calm();
    const int ip = to->ip < 0 ? static_cast<int>(d.below(2)) : to->ip;
    auto a = address(ip, to->port);
    net_->refuse = static_cast<int>(d.between(1, 20));
    tell(name(*e) + "connects without memory, call " + std::to_string(net_->refuse));
    const long got = result(urnic_rconnect(e->fd(), any(a), sizeof a));
    agree(got == -EINPROGRESS || got == -ENOMEM, name(*e) + "rconnect without memory");
    e->is_active = true;
    e->in_force = e->options;
    e->ip = ip;
    e->port = port_of(*e);
    e->stage = got == -ENOMEM ? Stage::failed : Stage::connecting;
    e->listener = to;
    e->is_uncertain = got != -ENOMEM;
    net_->settle();
    net_->refuse = 0;
    settle();
  }
  void accept(Dice& d) {
    const Held e = pick(d, Stage::listening);
    if (e == nullptr || ends_.size() >= kMostEnds) return;
    calm();
    const long fd = result(urnic_raccept(e->fd(), nullptr, nullptr));
    tell(name(*e) + "accepts " + std::to_string(fd));
    if (fd == -EAGAIN) {
      agree(e->waiting.empty(), name(*e) + "nobody to accept");
      return e->ghosts.clear();
    }
    agree(fd >= 0, name(*e) + "raccept");
    const auto number = static_cast<int>(fd);
    agree_on(urnic_rfcntl(number, F_GETFL) & O_NONBLOCK, 0, "an accepted one does not wait");
    urnic_rfcntl(number, F_SETFL, long{O_RDWR | O_NONBLOCK});
    sockaddr_in a{};
    socklen_t length = sizeof a;
    agree_on(urnic_rgetpeername(number, any(a), &length), 0, "getpeername");
    const int port = ntohs(a.sin_port);
    for (auto w = e->waiting.begin(); w != e->waiting.end(); ++w) {
      if (w->first->peer_port != port) continue;
      agree(w->second == e->waiting.front().second, name(*e) + "who came later is accepted first");
      const Held other = w->first;
      e->waiting.erase(w);
      other->numbers = {number};
      ends_.push_back(other);
      return check_all();
    }
    const auto ghost = std::find(e->ghosts.begin(), e->ghosts.end(), port);
    agree(ghost != e->ghosts.end(), name(*e) + "somebody nobody knows is accepted");
    e->ghosts.erase(ghost);
    agree_on(urnic_rclose(number), 0, "rclose of what is gone");
  }

  // ---- ending

  void shutdown(Dice& d) {
    const Held e = pick(d);
    if (e == nullptr) return;
    if (e->stage == Stage::connecting) calm();
    const int how = static_cast<int>(d.below(3));
    tell(name(*e) + "shutdown " + std::to_string(how));
    agree_on(result(urnic_rshutdown(e->fd(), how)), e->stage == Stage::connected ? 0 : -ENOTCONN,
             name(*e) + "rshutdown");
    if (e->stage != Stage::connected) return;
    say(*e, e->close(how != SHUT_WR, how != SHUT_RD));
    is_settled_ = false;
  }
  void say(End& e, std::optional<Said> what) {
    if (!what) return;
    if (const Held peer = e.peer.lock(); peer != nullptr) peer->heard.push_back(*what);
    if (*what != Said::disconnect) return;
    e.heard.push_back(*what);
    e.is_short = !is_settled_;
  }
  void another_number(Dice& d) {
    const Held e = pick(d);
    if (e == nullptr || e->numbers.size() > 2) return;
    const int n = ::dup(e->fd());
    tell(name(*e) + "is also " + std::to_string(n));
    agree_on(urnic_rs_dup(e->fd(), n), 0, "another number");
    e->numbers.push_back(n);
  }
  void close(Dice& d) {
    const Held e = pick(d);
    if (e == nullptr) return;
    const std::size_t at = d.below(e->numbers.size());
    const int n = e->numbers[at];
    if (e->stage == Stage::listening) calm();
    if (d.one_in(4)) set_linger(*e, 1, 0);
    tell(name(*e) + "close " + std::to_string(n) + (is_settled_ ? "" : ", things are under way"));
    if (e->numbers.size() == 1) say_the_end(*e);
    agree_on(result(urnic_rclose(n)), 0, name(*e) + "rclose");
    agree_on(urnic_rs_kind(n), 0, "a number that is closed");
    agree_on(result(urnic_rclose(n)), -EBADF, "closed twice");
    e->numbers.erase(e->numbers.begin() + static_cast<std::ptrdiff_t>(at));
    is_settled_ = false;
    if (e->is_open()) return;
    std::erase(ends_, e);
    settle();
  }
  void say_the_end(End& e) {
    const Held peer = e.peer.lock();
    const bool resets = e.options.linger_on != 0 && e.options.linger_s == 0;
    if (e.stage == Stage::connected && peer != nullptr) {
      if (const auto said = e.close(true, true); said && !resets) peer->heard.push_back(*said);
      peer->heard.push_back(Said::lost);
      peer->may_be_both = !is_settled_;
      // Data that the peer has in flight finds no connection, and destroys data in flight to the
      // peer.
      peer->torn = resets && !is_settled_ && (!e.unread.empty() || is_written_);
    }
    if (e.stage == Stage::connecting) {
      if (const Held to = e.listener.lock(); to != nullptr) to->ghosts.push_back(e.port);
    }
    if (e.stage != Stage::listening) return;
    for (const auto& [w, since] : e.waiting) {
      if (const Held active = w->peer.lock(); active != nullptr)
        active->heard.push_back(Said::lost);
    }
  }
  void cut(Dice& d) {
    const Held e = pick(d);
    const Held peer = e == nullptr ? nullptr : e->peer.lock();
    if (peer == nullptr || e->stage != Stage::connected) return;
    const End &from = e->is_active ? *e : *peer, &to = e->is_active ? *peer : *e;
    if (!net_->cut(from.port, to.port)) return;
    tell(name(*e) + "breaks");
    for (const Held& h : {e, peer}) {
      h->torn = !is_settled_ && !h->over;
      h->heard.push_back(Said::lost);
    }
    settle();
  }
  void cut_connecting(Dice& d) {
    const Held e = pick(d, Stage::connecting);
    const Held to = e == nullptr ? nullptr : e->listener.lock();
    if (to == nullptr || !net_->cut(e->port, to->port)) return;
    tell(name(*e) + "breaks as it connects");
    e->is_uncertain = e->torn = true;
    to->ghosts.push_back(e->port);
    settle();
  }
};

}  // namespace urnic::rsockets::model
