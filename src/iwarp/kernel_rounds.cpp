#include "iwarp/kernel_rounds.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "iwarp/admission.h"
#include "iwarp/silent_peers.h"
#include "iwarp/socket_end.h"

namespace urnic::iwarp {
namespace {

// Bytes one connection may receive before the next one has its turn.
constexpr std::size_t kReceiveTurn = 1 << 20;
// Before the consumer has answered a request this much of what follows it is taken, no more.
constexpr std::size_t kEarly = 64 * 1024;
constexpr unsigned kReadyAtOnce = 64;
// So many are refused before connections that there are have their turn.
constexpr unsigned kRefusedAtOnce = 64;
constexpr Duration kAcceptPause = Duration::ms(100);
// Who polls all the time asks the kernel again after this share of the time for which nothing has
// been ready, no longer than that: what comes is hardly later for it, and the polls in between cost
// next to nothing.
constexpr int kAskShare = 16;
constexpr Duration kAskLatest = Duration::us(2);

// The consumer has not answered the request, or has posted no receive: what its eager peer sends
// meanwhile stays in the kernel, and TCP's window closes.
bool is_held_back(const Connection& c) {
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
    // Somebody else in this process may have been quicker to take the one given up.
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
    ending_.guard(*c, now, [&] {
      receive(*c, now);
      if (!c->is_over() && c->link->readable && !is_held_back(*c)) sender_.enqueue_read(*c);
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
  ending_.guard(*c, now, [&] { take_readiness(*c, ready, now); });
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

// The peer's FIN or RST behind bytes that wait for a receive, and are perhaps not read off.
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
  while (l.readable && budget != 0 && !is_held_back(c)) {
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
    budget -= std::min(budget, got.bytes);
    ++c.counters.segments_in;
    take_bytes(c, now);
    if (c.is_over() || !l.socket.is_open()) return;
    // Less than there was room for: there was no more, and whatever comes next is reported anew.
    if (got.bytes < space.size() && !l.ending) l.readable = false;
  }
  l.inbox.settle();
}

// What has come in order, by the stage the connection is in.
void KernelRounds::take_bytes(Connection& c, Instant now) {
  if (c.stage == Stage::Startup) {
    events_.settle(c, {}, now);
  } else if (c.takes_fpdus()) {
    events_.drain(c, now);
  }
  if (c.is_over()) return;
  if (c.stage > Stage::Closing) c.link->inbox.clear();
}

// FIN, or the end by an error.
void KernelRounds::end_of_bytes(Connection& c, const kernel_tcp::Moved& got, Instant now) {
  KernelLink& l = *c.link;
  // The kernel tells of a reset once: when sending has met it, what is received just ends. (A
  // stream that Terminate has ended is told of already.)
  const bool lost = l.send_error != 0 && c.stage <= Stage::Leaving;
  if (got.what == kernel_tcp::Moved::What::End && !lost) {
    l.ended = true;
    if (c.awaits_receive()) {  // the bytes before it are taken first
      c.peer_fin = PeerFin::AfterData;
      transport_.shorten_receive_wait(c, now);
      return;
    }
    Found found;
    found.fin = true;
    events_.settle(c, found, now);
    if (!c.is_over() && transport_.conclude(c)) ending_.take_closed(c, now);
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
    if (!place) {  // AC-2, AC-3: before a silent one would have to go for it
      socket->reset();
      ++refused;
      continue;
    }
    // One whose address has its share is let in also where nobody goes for it: the kernel has
    // answered it, and a program may well have more connections at once than it has backlog.
    if (full || l.is_full_for(remote.ip)) {
      make_room(s_, ending_, l, full ? IpAddress() : remote.ip, now);
    }
    if (opening_.adopt(l, std::move(*socket), std::move(*place), now) == nullptr) {
      ++s_.counters.failed;
      ++s_.kernel->connections_refused;
    }
  }
}

// Of a full backlog with somebody waiting in the kernel: is there a silent connection that would
// go? If not yet, it is looked at again.
bool KernelRounds::gives_way(Listener& l, Instant now) {
  Instant soon;
  if (oldest_silent(s_, l, IpAddress(), now, &soon) != nullptr) return true;
  s_.kernel->accept_again = earlier(s_.kernel->accept_again, soon);
  return false;
}

// No descriptor for the next connection: with one given up for a moment it is closed at once, so
// that its peer learns of it and the queue does not stand still.
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
