// The transport below a connection, where it is the kernel's TCP, and how one comes to be:
// connecting, listening, accepting. What the connection means - start-up, placement, delivery,
// Terminate, the end - is shared with frames.
#include <errno.h>

#include <algorithm>
#include <cstring>

#include "engine/engine.h"
#include "iwarp/socket_end.h"

namespace urnic::engine {

using namespace iwarp;
namespace {

constexpr Duration kAcceptPause = Duration::ms(100);

bool same_host(const FlowKey& key) {
  return key.remote.is_loopback() || key.local == key.remote;
}

Error socket_error(int e, const std::string& what) {
  const std::string text = what + ": " + std::strerror(e);
  switch (e) {
    case EADDRINUSE:
      return {Errc::in_use, what + ": the port is taken by another program"};
    case EADDRNOTAVAIL:
      return {Errc::invalid_argument, what + ": not an address of this machine"};
    case EACCES:
    case EPERM:
      return {Errc::permission, text + " (ports below 1024 need a right)"};
    case EMFILE:
      return {Errc::no_memory, what + ": this process has no file descriptor left (see ulimit -n)"};
    case ENFILE:
      return {Errc::no_memory, what + ": the machine has no file descriptor left"};
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC:
      return {Errc::no_memory, text};
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
      return {Errc::unreachable, "no route to " + what};
    case EAFNOSUPPORT:
      return {Errc::unsupported, what + ": this machine does not speak that version of IP"};
    default:
      return {Errc::io, text};
  }
}

}  // namespace

// ---- the transport below a connection, whichever it is

bool Engine::has_undelivered(const Connection& c) {
  return c.link != nullptr ? !c.link->inbox.empty() : !c.buffer.empty();
}

void Engine::drop_undelivered(Connection& c) {
  if (c.link != nullptr) {
    c.link->inbox.clear();
  } else {
    c.buffer.reset(c.tcb.rcv.holes.rcv_nxt());
  }
}

StreamOffset Engine::sent_end(const Connection& c) {
  return c.link != nullptr ? c.link->sent + (c.link->rest.size() - c.link->rest_at) : c.tcb.snd.nxt;
}

// FIN behind the last octet.
void Engine::finish_sending(Connection& c, Instant now) {
  if (c.link != nullptr) {
    c.link->finish = true;
  } else {
    tcp::shutdown_send(c.tcb, now);
  }
}

void Engine::abort_transport(Connection& c, Instant now) {
  if (c.link == nullptr) {
    tcp::abort(c.tcb, now);
    return;
  }
  if (!c.link->socket.is_open()) return;
  kernel_->poller->remove(c.link->socket.fd());
  c.link->socket.reset();
}

bool Engine::transport_closed(const Connection& c) {
  return c.link != nullptr ? !c.link->socket.is_open() : c.tcb.state == tcp::State::Closed;
}

// ---- opening

Result<std::unique_ptr<KernelLink>> Engine::open_link(const SocketAddress& to, FlowKey* key) {
  const IpAddress& bind = kernel_->options.bind;
  const bool same_version = bind.is_v6() == to.ip.is_v6();
  if (!bind.is_any() && !same_version) {
    return Error{Errc::unreachable, "no route to " + to.ip.to_string() + ": bind=" +
                                        bind.to_string() + " is of the other version of IP"};
  }
  auto socket = sockets::Socket::connect(to, bind);
  if (!socket) {
    if (socket.error() == ECONNREFUSED) {
      return Error{Errc::refused, socket_end_of(ECONNREFUSED, true).why};
    }
    return socket_error(socket.error(), to.to_string());
  }
  const SocketAddress local = socket->local();
  *key = {local.ip, to.ip, local.port, to.port};
  return std::make_unique<KernelLink>(std::move(*socket), kernel_.get());
}

// The connection watches its socket from now on. 0 or an errno value.
int Engine::adopt_link(Connection& c, std::unique_ptr<KernelLink> link) {
  c.link = std::move(link);
  c.link->aligned = kernel_->options.align && !same_host(c.key);
  return kernel_->poller->add(c.link->socket.fd(), c.id);
}

Listener* Engine::listen_kernel(std::uint16_t port, int backlog, Error* error) {
  const IpAddress& bind = kernel_->options.bind;
  backlog = std::max(backlog, 1);
  auto socket =
      sockets::Socket::listen({bind.is_any() ? IpAddress::any_v6() : bind, port}, backlog);
  if (!socket && bind.is_any() && socket.error() == EAFNOSUPPORT) {  // a kernel without IPv6
    socket = sockets::Socket::listen({IpAddress::any_v4(), port}, backlog);
  }
  int e = socket ? 0 : socket.error();
  auto l = std::make_unique<Listener>();
  if (e == 0) {
    l->socket = std::move(*socket);
    l->port = l->socket.local().port;
    l->backlog.most_waiting = static_cast<std::uint32_t>(std::max(backlog, 1));
    e = kernel_->poller->add(l->socket.fd(), kListening | l->port);
  }
  if (e != 0) {
    *error = socket_error(e, "cannot listen on TCP port " + std::to_string(port));
    return nullptr;
  }
  listeners_.push_back(std::move(l));
  return listeners_.back().get();
}

void Engine::accept_waiting(Listener& l, Instant now) {
  while (l.acceptable && l.pending() < l.backlog.most_waiting) {
    auto socket = l.socket.accept();
    if (!socket) {
      l.acceptable = false;
      if (socket.error() != EAGAIN) turn_away(l, socket.error(), now);
      return;
    }
    const SocketAddress local = socket->local(), remote = socket->remote();
    Connection* c = new_connection({local.ip, remote.ip, local.port, remote.port});
    if (c == nullptr) {  // max_connections: the peer is told at once
      ++counters_.connections_failed;
      ++kernel_->turned_away;
      hooks_->on_note(Note::TurnedAway, {local.ip, remote.ip, local.port, remote.port},
                      "max_connections");
      socket->reset();
      continue;
    }
    begin_passive(*c, l, now);
    if (const int e =
            adopt_link(*c, std::make_unique<KernelLink>(std::move(*socket), kernel_.get()));
        e != 0) {
      fail_connection(*c, Errc::no_memory, "", now);
      continue;
    }
    c->stage = Stage::Startup;
    arm_timer(*c);
  }
}

// No descriptor for the next connection: with one given up for a moment it is closed at once, so
// that its peer learns of it and the queue does not stand still.
void Engine::turn_away(Listener& l, int error, Instant now) {
  ++counters_.connections_failed;
  ++kernel_->turned_away;
  hooks_->on_note(Note::TurnedAway, FlowKey{.local_port = l.port}, std::strerror(error));
  bool done = false;
  if ((error == EMFILE || error == ENFILE) && kernel_->spare.is_open()) {
    kernel_->spare.close();
    if (auto socket = l.socket.accept(); socket.ok()) {
      socket->reset();
      done = true;
    }
    kernel_->spare = sockets::Socket::spare();
  }
  l.acceptable = true;
  if (!done) {
    l.acceptable = false;
    l.paused = true;
    kernel_->accept_again = now + kAcceptPause;
  }
}

void Engine::close_listening(Listener& l) {
  if (l.socket.is_open()) kernel_->poller->remove(l.socket.fd());
}

// A connection request can be taken without anything new happening.
bool Engine::can_accept() const {
  return std::any_of(listeners_.begin(), listeners_.end(), [](const auto& l) {
    return l->acceptable && l->pending() < l->backlog.most_waiting;
  });
}

}  // namespace urnic::engine
