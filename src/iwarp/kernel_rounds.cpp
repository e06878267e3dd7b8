#include "iwarp/kernel_rounds.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "iwarp/admission.h"
#include "iwarp/guard_allocation.h"
#include "iwarp/silent_peers.h"
#include "iwarp/socket_end.h"

namespace urnic::iwarp {
namespace {

// Bytes one connection may receive before the next one gets its turn.
constexpr std::size_t kReceiveTurn = 1 << 20;
// Before the consumer has answered a request, at most this much later data is read.
constexpr std::size_t kEarly = 64 * 1024;
constexpr unsigned kReadyAtOnce = 64;
// Refusals in one turn before existing connections get theirs.
constexpr unsigned kRefusedAtOnce = 64;
constexpr Duration kAcceptPause = Duration::ms(100);
// A caller that polls all the time asks the kernel again after this fraction of the time since a
// socket was last ready, and at the latest after kAskLatest. Data is hardly delayed by that, and
// the polls in between are nearly free.
constexpr int kAskShare = 16;
constexpr Duration kAskLatest = Duration::us(2);

// The consumer has not answered the request, or has posted no receive. Further data of the peer
// stays in the kernel, and TCP's window closes.
bool is_held_back(const Connection& c, Instant now) {
  if (has_closed_window(*c.link, now)) [[unlikely]]
    return true;
  return (c.stage == Stage::Startup || c.awaits_receive()) &&
         c.link->inbox.bytes().size() >= kEarly;
}

}  // namespace

unsigned KernelRounds::ask(Instant now) {
  kernel_tcp::Poller::Ready ready[kReadyAtOnce];
  const unsigned n = s_.kernel->poller->take(ready, kReadyAtOnce);
  for (unsigned i = 0; i < n; ++i) take_readiness(ready[i], now);
  if (n != 0) s_.kernel->ready = now;
  s_.kernel->ask_again = now + std::min((now - s_.kernel->ready) / kAskShare, kAskLatest);
  return n;
}

bool KernelRounds::poll(Instant now, bool comes_back) {
  const unsigned n = comes_back && now < s_.kernel->ask_again ? 0 : ask(now);
  if (s_.kernel->accept_again <= now) {
    s_.kernel->accept_again = Instant::never();
    // Another thread of this process may have taken the descriptor that was released.
    if (!s_.kernel->spare.is_open()) s_.kernel->spare = kernel_tcp::Socket::spare();
    s_.listeners.for_each([](Listener& l) {
      l.acceptable = l.acceptable || l.paused;
      l.paused = false;
    });
  }
  s_.listeners.for_each([&](Listener& l) { accept_waiting(l, now); });
  bool any = n != 0;
  for (std::size_t left = s_.kernel->readable.size(); left > 0; --left) {
    const ConnectionId id = s_.kernel->readable.front();
    s_.kernel->readable.pop_front();
    Connection* c = s_.connections.find(id);
    if (c == nullptr) continue;
    any = true;
    c->link->queued = false;
    guard_allocation(ending_, *c, now, [&] {
      receive(*c, now);
      if (c->is_over() || !c->link->readable) return;
      if (!is_held_back(*c, now)) {
        sender_.enqueue_read(*c);
      } else if (has_closed_window(*c->link, now)) {
        c->link->read_again = c->link->faults->window_opens();
        s_.timers.arm(*c);
      }
    });
  }
  return any;
}

void KernelRounds::take_readiness(const kernel_tcp::Poller::Ready& ready, Instant now) {
  if ((ready.tag & kListening) != 0) {
    s_.listeners.for_each([&](Listener& l) {
      if (l.number == (ready.tag & 0xffffffff)) l.acceptable = true;
    });
    return;
  }
  Connection* c = s_.connections.find(ready.tag);
  if (c == nullptr) return;
  guard_allocation(ending_, *c, now, [&] { take_readiness(*c, ready, now); });
}

void KernelRounds::take_readiness(Connection& c, const kernel_tcp::Poller::Ready& ready,
                                  Instant now) {
  KernelLink& l = *c.link;
  if (ready.writable) {
    l.writable = true;
    l.room.end();
    if (c.stage == Stage::Opening) {
      if (const int e = l.socket.take_error(); e != 0) {
        const SocketEnd end = socket_end_of(e, true);
        if (end.code == Errc::refused && opening_.await_listener(c, now)) return;
        ending_.fail_connection(c, end.code, end.why, now);
        return;
      }
      opening_.tcp_established(c, now);
    }
    s_.sending.push(c);
  }
  if (ready.readable) {
    l.readable = true;
    l.ending = l.ending || ready.ended;
    if (c.awaits_receive() && ready.ended) return end_awaiting(c, now);
    sender_.enqueue_read(c);
  }
}

// The peer's FIN or RST comes after bytes that wait for a receive and may not be read yet.
void KernelRounds::end_awaiting(Connection& c, Instant now) {
  if (const int e = c.link->socket.take_error(); e != 0) {
    const SocketEnd end = socket_end_of(e, false);
    ending_.fail_connection(c, end.code, end.why, now);
    return;
  }
  transport_.shorten_receive_wait(c, now);
  sender_.enqueue_read(c);
}

void KernelRounds::receive(Connection& c, Instant now) {
  KernelLink& l = *c.link;
  if (c.stage == Stage::Opening || l.ended) {
    l.readable = false;
    return;
  }
  std::size_t budget = kReceiveTurn;
  while (l.readable && budget != 0 && !is_held_back(c, now)) {
    const std::span<std::uint8_t> space = l.inbox.space();
    const kernel_tcp::Moved got = l.socket.receive(space);
    ++s_.kernel->reads;
    if (got.what != kernel_tcp::Moved::What::Some) {
      l.readable = false;
      l.inbox.settle();
      if (got.what == kernel_tcp::Moved::What::NotNow && l.send_error == 0) return;
      end_of_bytes(c, got, now);
      return;
    }
    l.inbox.received(got.bytes);
    s_.kernel->bytes_in += got.bytes;
    if (s_.kernel->tap) s_.kernel->tap->received(tapped(c.key, l), space.first(got.bytes));
    if (l.faults != nullptr) [[unlikely]]
      l.faults->received(space.first(got.bytes), now);
    l.received += got.bytes;
    budget -= std::min(budget, got.bytes);
    ++c.counters.segments_in;
    take_bytes(c, now);
    if (c.is_over() || !l.socket.is_open()) return;
    // Less than the free space was read, so the socket is empty, and new data is reported again.
    if (got.bytes < space.size() && !l.ending) l.readable = false;
  }
  l.inbox.settle();
}

// Processes the in-order bytes, depending on the stage of the connection.
void KernelRounds::take_bytes(Connection& c, Instant now) {
  if (c.stage == Stage::Startup) {
    events_.settle(c, {}, now);
  } else if (c.takes_fpdus()) {
    events_.drain(c, now);
  }
  if (c.is_over()) return;
  if (c.stage > Stage::Closing) c.link->inbox.clear();
}

// Handles a FIN, or an end by an error.
void KernelRounds::end_of_bytes(Connection& c, const kernel_tcp::Moved& got, Instant now) {
  KernelLink& l = *c.link;
  // The kernel reports a reset once: if sending has found it, the received bytes just end. (The end
  // of a stream by Terminate was already reported.)
  const bool lost = l.send_error != 0 && c.stage <= Stage::Leaving;
  if (s_.kernel->tap) {
    const bool fin = got.what == kernel_tcp::Moved::What::End && !lost;
    using End = kernel_tcp::Tap::End;
    s_.kernel->tap->ended(tapped(c.key, l), fin ? End::Fin : End::Reset, true);
  }
  if (got.what == kernel_tcp::Moved::What::End && !lost) {
    l.ended = true;
    if (c.awaits_receive()) {  // the bytes before it are processed first
      c.peer_fin = PeerFin::AfterData;
      transport_.shorten_receive_wait(c, now);
      return;
    }
    Found found;
    found.fin = true;
    events_.settle(c, found, now);
    if (!c.is_over() && transport_.conclude(c, now)) ending_.take_closed(c, now);
    return;
  }
  if (opening_.refuses_revision2(c)) {  // E-35: some peers reset instead of closing
    opening_.retry_as_revision1(c, now);
    return;
  }
  const SocketEnd end =
      socket_end_of(got.what == kernel_tcp::Moved::What::Failed ? got.error : l.send_error, false);
  ending_.fail_connection(c, end.code, end.why, now);
}

void KernelRounds::accept_waiting(Listener& l, Instant now) {
  unsigned refused = 0;
  while (l.acceptable && refused < kRefusedAtOnce) {
    const bool full = l.pending() >= l.backlog.most_waiting;
    if (full && !gives_way(l, now)) return;
    auto socket = l.socket.accept();
    if (!socket) {
      l.acceptable = false;
      if (socket.error() != EAGAIN) turn_away(l, socket.error(), now);
      return;
    }
    const SocketAddress local = socket->local(), remote = socket->remote();
    auto place = admit(s_, l, {local.ip, remote.ip, local.port, remote.port}, now);
    if (!place) {  // AC-2, AC-3: before a silent connection would have to make room for it
      socket->reset();
      ++refused;
      continue;
    }
    // A connection from an address that has its share is accepted even if no other makes room. The
    // kernel has answered it, and a program may well have more connections at once than its
    // backlog.
    if (full || l.is_full_for(remote.ip)) {
      make_room(s_, ending_, l, full ? IpAddress() : remote.ip, now);
    }
    if (opening_.adopt(l, std::move(*socket), std::move(*place), now) == nullptr) {
      ++s_.counters.failed;
      ++s_.kernel->connections_refused;
    }
  }
}

// For a full backlog with a connection waiting in the kernel: true if a silent connection would
// make room. If not yet, this is checked again later.
bool KernelRounds::gives_way(Listener& l, Instant now) {
  Instant soon;
  if (oldest_silent(s_, l, IpAddress(), now, &soon) != nullptr) return true;
  s_.kernel->accept_again = earlier(s_.kernel->accept_again, soon);
  return false;
}

// There is no descriptor for the next connection. With a spare one, released for a moment, it is
// accepted and closed at once, so that its peer gets the end and the queue moves on.
void KernelRounds::turn_away(Listener& l, int error, Instant now) {
  ++s_.counters.failed;
  ++s_.kernel->connections_refused;
  s_.hooks->on_note(Note::TurnedAway, {{}, l.port()}, {}, std::strerror(error));
  bool done = false;
  if ((error == EMFILE || error == ENFILE) && s_.kernel->spare.is_open()) {
    s_.kernel->spare.close();
    if (auto socket = l.socket.accept(); socket.ok()) {
      socket->reset();
      done = true;
    }
    s_.kernel->spare = kernel_tcp::Socket::spare();
  }
  l.acceptable = true;
  if (!done) {
    l.acceptable = false;
    l.paused = true;
    s_.kernel->accept_again = now + kAcceptPause;
  }
}

void KernelRounds::close_listening(Listener& l) {
  if (l.listening) s_.kernel->poller->remove(l.socket.fd());
}

bool KernelRounds::can_accept() const {
  return s_.listeners.any_of(
      [](const Listener& l) { return l.acceptable && l.pending() < l.backlog.most_waiting; });
}

}  // namespace urnic::iwarp
