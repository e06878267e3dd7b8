// Connects, listens and accepts with sockets of the kernel's TCP.
#include <errno.h>

#include <algorithm>
#include <utility>

#include "iwarp/guard_allocation.h"
#include "iwarp/opening.h"
#include "iwarp/silent_peers.h"
#include "iwarp/socket_end.h"

namespace urnic::iwarp {
namespace {

bool same_host(const FlowKey& key) {
  return key.remote.is_loopback() || key.local == key.remote;
}

}  // namespace

// The local address for `local` on a device that was opened with bind=; unspecified: any.
Result<IpAddress> Opening::within_bind(const LocalEnd& local) const {
  const IpAddress& bind = s_.kernel->options.bind;
  if (bind.is_any() || local.at.ip == bind) return local.at.ip;
  if (local.at.ip.is_any() && local.covers(bind)) return bind;
  return Error{Errc::invalid_argument,
               local.at.ip.to_string() +
                   " is not an address of this device (bind=" + bind.to_string() + ")"};
}

Result<std::unique_ptr<KernelLink>> Opening::open_link(const SocketAddress& to,
                                                       const LocalEnd& from, FlowKey* key) {
  auto bind = within_bind(from);
  if (!bind) return bind.error();
  if (bind->is_any() ? !from.covers(to.ip) : bind->is_v6() != to.ip.is_v6()) {
    return Error{Errc::unreachable, "no route to " + to.ip.to_string() + ": " + bind->to_string() +
                                        " has another IP version"};
  }
  auto socket = kernel_tcp::Socket::connect(to, {*bind, from.at.port});
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

// The connection watches its socket from now on. Returns false if it has failed, because the kernel
// cannot watch more sockets.
bool Opening::adopt_link(Connection& c, std::unique_ptr<KernelLink> link, Instant now) {
  c.link = std::move(link);
  if (c.dscp != 0) c.link->socket.set_dscp(c.dscp);
  c.link->aligned = s_.kernel->options.align && !same_host(c.key);
  const int e = s_.kernel->poller->add(c.link->socket.fd(), c.id);
  if (e == 0) return true;
  const Error error = socket_error(e, "cannot poll the connection to " + c.key.remote.to_string());
  ending_.fail_connection(c, error.code, error.message, now);
  return false;
}

Result<Listener*> Opening::bind_kernel(const LocalEnd& local) {
  auto ip = within_bind(local);
  if (!ip) return ip.error();
  SocketAddress at{*ip, local.at.port};
  // The kernel knows bound and listening sockets, but not those that are shared and wait.
  if (s_.listeners.is_taken({at, local.v6_only, local.shared})) {
    return socket_error(EADDRINUSE, "cannot bind TCP port " + std::to_string(at.port));
  }
  auto socket = kernel_tcp::Socket::reserve(at, local.v6_only, local.shared);
  if (!socket && at.ip == IpAddress::any_v6() && !local.v6_only &&
      socket.error() == EAFNOSUPPORT) {  // a kernel without IPv6
    at.ip = IpAddress::any_v4();
    socket = kernel_tcp::Socket::reserve(at, false, local.shared);
  }
  if (!socket) {
    return socket_error(socket.error(), "cannot bind TCP port " + std::to_string(at.port));
  }
  at.port = socket->local().port;
  Listener* l = s_.listeners.add({at, local.v6_only, local.shared}, make_gate(s_.options.gate));
  l->socket = std::move(*socket);
  return l;
}

Result<void> Opening::listen_kernel(Listener& l, int backlog) {
  int e = l.socket.listen(backlog);
  if (e == 0) e = s_.kernel->poller->add(l.socket.fd(), kListening | l.number);
  if (e != 0) return socket_error(e, "cannot listen on TCP port " + std::to_string(l.port()));
  l.listening = true;
  return {};
}

Connection* Opening::adopt(Listener& l, kernel_tcp::Socket socket, Admission admission,
                           Instant now) {
  const SocketAddress local = socket.local(), remote = socket.remote();
  Connection* c = new_connection({local.ip, remote.ip, local.port, remote.port});
  if (c == nullptr) {  // max_connections: the peer gets a RST at once
    s_.hooks->on_note(Note::TurnedAway, local, remote, "max_connections");
    socket.reset();
    return nullptr;
  }
  guard_allocation(ending_, *c, now, [&] {
    begin_passive(*c, l, false, now);
    c->admission = std::move(admission);
    if (!adopt_link(*c, std::make_unique<KernelLink>(std::move(socket), s_.kernel.get()), now)) {
      return;
    }
    c->stage = Stage::Startup;
    note_silent(s_, *c, now);
    s_.timers.arm(*c);
  });
  return c;
}

}  // namespace urnic::iwarp
