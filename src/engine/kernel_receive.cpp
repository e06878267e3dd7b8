// Readiness of sockets, octets in, FPDUs out of the octets. A connection over the kernel's TCP
// shows no segments: it is SLOW for ever (E-31).
#include <errno.h>

#include <algorithm>

#include "engine/engine.h"
#include "iwarp/socket_end.h"
#include "reassembly/extract.h"

namespace urnic::engine {

using namespace iwarp;
namespace {

// Octets one connection may receive before the next one has its turn.
constexpr std::size_t kReceiveTurn = 1 << 20;
// Before the consumer has answered a request this much of what follows it is taken, no more.
constexpr std::size_t kEarly = 64 * 1024;
constexpr unsigned kReadyAtOnce = 64;

}  // namespace

bool Engine::poll_sockets(Instant now) {
  sockets::Poller::Ready ready[kReadyAtOnce];
  const unsigned n = kernel_->poller->take(ready, kReadyAtOnce);
  for (unsigned i = 0; i < n; ++i) take_readiness(ready[i], now);
  if (kernel_->accept_again <= now) {
    kernel_->accept_again = Instant::never();
    for (const auto& l : listeners_) {
      l->acceptable = l->acceptable || l->paused;
      l->paused = false;
    }
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i) accept_waiting(*listeners_[i], now);
  bool any = n != 0;
  for (std::size_t left = kernel_->readable.size(); left > 0; --left) {
    const ConnectionId id = kernel_->readable.front();
    kernel_->readable.pop_front();
    Connection* c = find(id);
    if (c == nullptr) continue;
    any = true;
    c->link->queued = false;
    receive_kernel(*c, now);
    if (!c->is_over() && c->link->readable && !is_held_back(*c)) enqueue_read(*c);
  }
  return any;
}

void Engine::take_readiness(const sockets::Poller::Ready& ready, Instant now) {
  if ((ready.tag & kListening) != 0) {
    for (const auto& l : listeners_) {
      if (l->port == (ready.tag & 0xffff)) l->acceptable = true;
    }
    return;
  }
  Connection* c = find(ready.tag);
  if (c == nullptr) return;
  KernelLink& l = *c->link;
  if (ready.writable) {
    l.writable = true;
    l.room.end();
    if (c->stage == Stage::Opening) {
      if (const int e = l.socket.take_error(); e != 0) {
        const SocketEnd end = socket_end_of(e, true);
        fail_connection(*c, end.code, end.why, now);
        return;
      }
      on_tcp_established(*c, now);
    }
    enqueue_tx(*c);
  }
  if (ready.readable) {
    l.readable = true;
    l.ending = l.ending || ready.ended;
    enqueue_read(*c);
  }
}

void Engine::enqueue_read(Connection& c) {
  if (c.link->queued) return;
  c.link->queued = true;
  kernel_->readable.push_back(c.id);
}

// The consumer has not answered the request: what its eager peer sends meanwhile stays in the
// kernel, and TCP's window closes.
bool Engine::is_held_back(const Connection& c) {
  return c.stage == Stage::Startup && c.link->inbox.octets().size() >= kEarly;
}

void Engine::receive_kernel(Connection& c, Instant now) {
  KernelLink& l = *c.link;
  if (c.stage == Stage::Opening || l.ended) {
    l.readable = false;
    return;
  }
  std::size_t budget = kReceiveTurn;
  while (l.readable && budget != 0 && !is_held_back(c)) {
    const std::span<std::uint8_t> space = l.inbox.space();
    const sockets::Moved got = l.socket.receive(space);
    ++kernel_->reads;
    if (got.what != sockets::Moved::What::Some) {
      l.readable = false;
      l.inbox.settle();
      if (got.what == sockets::Moved::What::NotNow && l.send_error == 0) return;
      end_of_kernel(c, got, now);
      return;
    }
    l.inbox.received(got.octets);
    kernel_->octets_in += got.octets;
    budget -= std::min(budget, got.octets);
    ++c.counters.segments_in;
    take_octets(c, now);
    if (c.is_over() || !l.socket.is_open()) return;
    // Less than there was room for: there was no more, and whatever comes next is reported anew.
    if (got.octets < space.size() && !l.ending) l.readable = false;
  }
  l.inbox.settle();
}

// What has come in order, by the stage the connection is in.
void Engine::take_octets(Connection& c, Instant now) {
  if (c.stage == Stage::Startup) run_startup(c, now);
  if (c.is_over()) return;
  if (c.stage == Stage::Full || c.stage == Stage::Closing) drain_kernel(c, now);
  if (c.is_over()) return;
  if (c.stage == Stage::Terminated || c.stage == Stage::Lingering) c.link->inbox.clear();
}

// Whole FPDUs where they lie, placed and delivered one by one.
void Engine::drain_kernel(Connection& c, Instant now) {
  sockets::Inbox& inbox = c.link->inbox;
  while (!c.is_over() && (c.stage == Stage::Full || c.stage == Stage::Closing)) {
    ByteView ulpdu;
    std::uint32_t length = 0;
    const auto got = reassembly::next_fpdu(inbox.octets(), c.context.config.crc, &ulpdu, &length);
    if (got == reassembly::Extracted::NeedMore) return;
    c.counters.bytes_slow += length;
    c.counters.bytes_copied += length;
    if (got == reassembly::Extracted::BadCrc) {
      raise_terminate(c, ddp::Violation::MpaCrc, {}, now);
      return;
    }
    if (!take_fpdu(c, ulpdu, now) || c.is_over() || inbox.empty()) return;
    inbox.consume(length);
  }
}

// FIN, or the end by an error.
void Engine::end_of_kernel(Connection& c, const sockets::Moved& got, Instant now) {
  KernelLink& l = *c.link;
  if (got.what == sockets::Moved::What::End) {
    l.ended = true;
    on_fin(c, now);
    if (!c.is_over()) finish_link(c, now);
    return;
  }
  if (refuses_revision2(c)) {  // E-35: some peers reset instead of closing
    retry_as_revision1(c, now);
    return;
  }
  const SocketEnd end =
      socket_end_of(got.what == sockets::Moved::What::Failed ? got.error : l.send_error, false);
  fail_connection(c, end.code, end.why, now);
}

}  // namespace urnic::engine
