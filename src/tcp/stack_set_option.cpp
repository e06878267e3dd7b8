// Setting and reading the options of endpoints, also on an open connection.
#include "tcp/stack.h"

namespace urnic::tcp {

Status Stack::set_default(Option o, std::int64_t value) {
  return tcp::set_option(config_.options, o, value) ? Status::Ok : Status::Invalid;
}

Status Stack::set_option(Endpoint e, Option o, std::int64_t value, Instant at) {
  const Entry entry(*this, at);
  Socket* s = find(e);
  if (s == nullptr) return Status::Invalid;
  return apply_option(*s, o, value, entry.now());
}

Status StackCore::apply_option(Socket& s, Option o, std::int64_t value, Instant now) {
  if (s.kind == Socket::Kind::Stream && !changeable_when_open(o)) return Status::Invalid;
  if (!tcp::set_option(s.options, o, value)) return Status::Invalid;
  if (!s.open()) return Status::Ok;
  // Auto-tuned buffers keep their size and grow to the new bound.
  if (o == Option::SendBuffer && !s.options.auto_tune) {
    s.send_granted = s.options.send_buffer;
    s.tx.set_capacity(s.send_granted);
  }
  if (o == Option::ReceiveBuffer && !s.options.auto_tune) {
    s.receive_granted = s.options.tcp.receive_buffer;
    s.rx.set_capacity(s.receive_granted);
  }
  s.tcb.config.live() = s.options.tcp.live();
  s.tcb.config.receive_buffer = s.receive_granted;
  s.tcb.rcv.holes.set_limit(s.tcb.config.hole_limit);
  if (o == Option::Keepalive) {
    s.tcb.timers.keepalive = Instant::never();
    s.tcb.timers.keepalive_sent = 0;
    if (synchronized(s.tcb.state)) arm_keepalive(s.tcb, now);
  }
  if (o == Option::SendBuffer && s.tx.room() != 0) note(s, kWritable);
  if (o == Option::ReceiveBuffer && set_receive_room(s.tcb, s.receive_room(), now)) {
    emit(s, plan_ack(s.tcb), now);
  }
  pump(s, now);
  end_or_arm(s, now);
  return Status::Ok;
}

std::optional<std::int64_t> Stack::option(Endpoint e, Option o) const {
  const Socket* s = find(e);
  if (s == nullptr || option_name(o) == "unknown") return std::nullopt;
  return get_option(s->options, o);
}

}  // namespace urnic::tcp
