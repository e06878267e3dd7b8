// Reading and writing bytes on endpoints.
#include <algorithm>
#include <utility>

#include "tcp/stack.h"

namespace urnic::tcp {

IoResult Stack::read(Endpoint e, MutBytes dst, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr) return {};
  const IoResult seen = peek(e, dst);
  if (seen.status != Status::Ok) {
    if (s->error != Status::Ok) s->error = Status::Ok;  // reported once
    return seen;
  }
  if (seen.bytes == 0) return seen;
  s->rx.advance(s->rx.base() + seen.bytes);
  if (s->open()) grants_.on_read(*s, seen.bytes, now);
  if (s->open()) {
    if (set_receive_room(s->tcb, s->receive_room(), now)) emit(*s, plan_ack(s->tcb), now);
    end_or_arm(*s, now);
  }
  return seen;
}

IoResult Stack::peek(Endpoint e, MutBytes dst, std::size_t skip) const {
  const Socket* s = find(e);
  if (s == nullptr || s->kind == Socket::Kind::Listener) return {};
  if (s->kind == Socket::Kind::Fresh) return {Status::NotConnected, 0};
  const std::uint64_t unread = s->unread();
  if (unread > skip) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(dst.size(), unread - skip));
    s->rx.read(s->rx.base() + skip, dst.first(n));
    return {Status::Ok, n};
  }
  if (s->error != Status::Ok) return {s->error, 0};
  if (s->dead || s->read_closed || s->tcb.rcv.fin_taken) return {Status::EndOfStream, 0};
  if (dst.empty()) return {Status::Ok, 0};
  return {Status::WouldBlock, 0};
}

IoResult Stack::write(Endpoint e, ByteView src, Instant at, bool more) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr || s->kind == Socket::Kind::Listener) return {};
  if (s->kind == Socket::Kind::Fresh) return {Status::NotConnected, 0};
  if (s->error != Status::Ok) return {std::exchange(s->error, Status::Ok), 0};
  if (s->dead || s->write_closed) return {Status::BrokenPipe, 0};
  if (!synchronized(s->tcb.state)) return {Status::WouldBlock, 0};
  const std::size_t n = s->tx.append(src);
  // A short write neither holds back a small segment nor marks an end for PSH.
  s->more = more && n == src.size();
  if (n != 0 && n == src.size() && !more && s->options.psh_rule == PshRule::EndOfWrite) {
    s->write_ends.push_back(s->tx.end());
  }
  pump(*s, now);
  end_or_arm(*s, now);
  if (n == 0 && !src.empty()) return {Status::WouldBlock, 0};
  return {Status::Ok, n};
}

Status Stack::push(Endpoint e, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr || s->kind == Socket::Kind::Listener) return Status::Invalid;
  if (!s->open()) return Status::NotConnected;
  s->more = false;
  pump(*s, now);
  end_or_arm(*s, now);
  return Status::Ok;
}

}  // namespace urnic::tcp
