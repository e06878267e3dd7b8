// The end of endpoints: half close, close, abort, and freeing them once TCP is done.
#include <utility>

#include "tcp/stack.h"

namespace urnic::tcp {

namespace {

Status status_of(CloseReason why) {
  switch (why) {
    case CloseReason::None:
      return Status::Ok;
    case CloseReason::Refused:
      return Status::Refused;
    case CloseReason::Reset:
    case CloseReason::Aborted:
      return Status::Reset;
    case CloseReason::TimedOut:
      return Status::TimedOut;
    case CloseReason::Unreachable:
      return Status::Unreachable;
  }
  return Status::Reset;
}

}  // namespace

Status Stack::shutdown_write(Endpoint e, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr || s->kind == Socket::Kind::Listener) return Status::Invalid;
  if (!s->open() || s->tcb.state == State::SynSent) return Status::NotConnected;
  s->write_closed = true;
  s->more = false;
  shutdown_send(s->tcb, now);
  pump(*s, now);
  end_or_arm(*s, now);
  return Status::Ok;
}

Status Stack::shutdown_read(Endpoint e, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr || s->kind == Socket::Kind::Listener) return Status::Invalid;
  if (s->kind != Socket::Kind::Stream) return Status::NotConnected;
  s->read_closed = true;
  s->rx.advance(s->tcb.rcv.holes.rcv_nxt().value());
  if (!s->open()) return Status::Ok;
  // If the peer waits for room, announce the new window at once, so that its FIN can arrive.
  // Otherwise no ACK is sent.
  const StreamOffset nxt = s->tcb.rcv.holes.rcv_nxt();
  if (s->tcb.rcv.adv >= nxt + 2 * s->tcb.config.mss) {
    offer_receive_room(s->tcb, s->receive_room());
  } else if (set_receive_room(s->tcb, s->receive_room(), now)) {
    emit(*s, plan_ack(s->tcb), now);
  }
  end_or_arm(*s, now);
  return Status::Ok;
}

void StackCore::reset_now(Socket& s, Instant now) {
  tcp::abort(s.tcb, now);
  pump(s, now);
}

// The program has closed the endpoint; the stack finishes the connection.
void StackCore::end_without_owner(Socket& s, Instant now) {
  s.has_handle = false;
  s.orphan = true;
  s.more = false;
  const bool unread = !s.read_closed && s.unread() != 0;
  if (!synchronized(s.tcb.state) || unread || s.options.linger == 0) {
    reset_now(s, now);  // RFC 9293 3.10.4, RFC 2525 2.17: the peer must learn that data was lost
    return;
  }
  // No program is left to notice that the peer stopped reading.
  if (s.tcb.config.user_timeout == Duration::zero()) {
    s.tcb.config.user_timeout = s.options.orphan_timeout;
  }
  shutdown_send(s.tcb, now);
  pump(s, now);
}

void StackCore::close_listener(Socket& s, Instant now) {
  sockets_.unlisten(s);
  sockets_.each([&](Socket& other) {
    if (!other.pending || other.parent_slot != s.slot || other.parent_generation != s.generation) {
      return;
    }
    other.pending = false;
    reset_now(other, now);
    end_or_arm(other, now);
  });
}

Status Stack::close(Endpoint e, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr) return Status::Invalid;
  if (s->kind == Socket::Kind::Listener) close_listener(*s, now);
  if (!s->open()) {
    free_socket(*s);
    return Status::Ok;
  }
  end_without_owner(*s, now);
  end_or_arm(*s, now);
  return Status::Ok;
}

Status Stack::abort(Endpoint e, Instant at) {
  const Entry entry(*this, at);
  const Instant now = entry.now();
  Socket* s = find(e);
  if (s == nullptr) return Status::Invalid;
  if (s->kind == Socket::Kind::Listener) close_listener(*s, now);
  if (!s->open()) {
    free_socket(*s);
    return Status::Ok;
  }
  s->has_handle = false;
  s->orphan = true;
  reset_now(*s, now);
  end_or_arm(*s, now);
  return Status::Ok;
}

// Call this after every change of a connection. It ends the connection if it is over, else arms its
// timer. It may free the socket.
void StackCore::end_or_arm(Socket& s, Instant now) {
  if (s.tcb.state == State::Closed && !s.dead) {
    s.dead = true;
    flows_.erase(s.key());
    if (const Status why = status_of(s.tcb.close_reason); why != Status::Ok && s.has_handle) {
      s.error = why;
      note(s, kError);
    }
    if (s.pending) {
      if (Socket* parent = sockets_.at(s.parent_slot, s.parent_generation)) {
        if (!s.was_connected) {
          --parent->backlog.half_open;
        } else {
          --parent->backlog.waiting;
          for (std::size_t n = parent->ready.size(); n > 0; --n) {
            const std::uint32_t slot = parent->ready.front();
            parent->ready.pop_front();
            if (slot != s.slot) parent->ready.push_back(slot);
          }
        }
      }
      s.pending = false;
    }
    s.tx.reset(s.tx.end());
    s.tx.release_memory();
  }
  if (s.dead) {
    if (!s.has_handle) free_socket(s);
    return;
  }
  if (s.orphan && s.tcb.state == State::TimeWait && !s.tcb.rcv.ack_due) {
    // Only the peer may still need this connection.
    time_wait_.add(s.key(), s.tcb);
    flows_.erase(s.key());
    free_socket(s);
    return;
  }
  if (s.tcb.state != State::FinWait2) {
    s.orphan_deadline = Instant::never();
  } else if (s.orphan && s.orphan_deadline.is_never() && s.options.fin_wait_2 != Duration::zero()) {
    s.orphan_deadline = now + s.options.fin_wait_2;
  }
  arm(s);
}

}  // namespace urnic::tcp
