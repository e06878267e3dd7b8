// Connecting to, listening at and accepting from sockets of the kernel's TCP.
#include <errno.h>

#include <algorithm>
#include <cstring>

#include "iwarp/opening.h"
#include "iwarp/socket_end.h"

namespace urnic::iwarp {
namespace {

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

Result<std::unique_ptr<KernelLink>> Opening::open_link(const SocketAddress& to, FlowKey* key) {
  const IpAddress& bind = s_.kernel->options.bind;
  const bool same_version = bind.is_v6() == to.ip.is_v6();
  if (!bind.is_any() && !same_version) {
    return Error{Errc::unreachable, "no route to " + to.ip.to_string() + ": bind=" +
                                        bind.to_string() + " is of the other version of IP"};
  }
  auto socket = sockets::Socket::connect(to, bind);
  if (!socket) {
    if (socket.error() == ECONNREFUSED || socket.error() == ECONNRESET) {
      const SocketEnd end = socket_end_of(socket.error(), true);
      return Error{end.code, end.why};
    }
    return socket_error(socket.error(), to.to_string());
  }
  const SocketAddress local = socket->local();
  *key = {local.ip, to.ip, local.port, to.port};
  return std::make_unique<KernelLink>(std::move(*socket), s_.kernel.get());
}

// The connection watches its socket from now on. 0 or an errno value.
int Opening::adopt_link(Connection& c, std::unique_ptr<KernelLink> link) {
  c.link = std::move(link);
  c.link->aligned = s_.kernel->options.align && !same_host(c.key);
  return s_.kernel->poller->add(c.link->socket.fd(), c.id);
}

Listener* Opening::listen_kernel(std::uint16_t port, int backlog, Error* error) {
  const IpAddress& bind = s_.kernel->options.bind;
  backlog = std::max(backlog, 1);
  auto socket =
      sockets::Socket::listen({bind.is_any() ? IpAddress::any_v6() : bind, port}, backlog);
  if (!socket && bind.is_any() && socket.error() == EAFNOSUPPORT) {  // a kernel without IPv6
    socket = sockets::Socket::listen({IpAddress::any_v4(), port}, backlog);
  }
  int e = socket ? 0 : socket.error();
  Listener* l = nullptr;
  if (e == 0) {
    l = s_.listeners.add(socket->local().port, static_cast<std::uint32_t>(backlog));
    l->socket = std::move(*socket);
    e = s_.kernel->poller->add(l->socket.fd(), kListening | l->port);
    if (e != 0) s_.listeners.remove(l);
  }
  if (e != 0) {
    *error = socket_error(e, "cannot listen on TCP port " + std::to_string(port));
    return nullptr;
  }
  return l;
}

Connection* Opening::adopt(Listener& l, sockets::Socket socket, Instant now) {
  const SocketAddress local = socket.local(), remote = socket.remote();
  Connection* c = new_connection({local.ip, remote.ip, local.port, remote.port});
  if (c == nullptr) {  // max_connections: the peer is told at once
    s_.hooks->on_note(Note::TurnedAway, {local.ip, remote.ip, local.port, remote.port},
                      "max_connections");
    socket.reset();
    return nullptr;
  }
  begin_passive(*c, l, false, now);
  if (adopt_link(*c, std::make_unique<KernelLink>(std::move(socket), s_.kernel.get())) != 0) {
    ending_.fail_connection(*c, Errc::no_memory, "", now);
    return c;
  }
  c->stage = Stage::Startup;
  s_.timers.arm(*c);
  return c;
}

}  // namespace urnic::iwarp
