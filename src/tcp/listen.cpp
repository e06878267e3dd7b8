#include "tcp/listen.h"

#include "tcp/tcb_state.h"

namespace urnic::tcp {

ListenAction check_listen(const Segment& s) {
  if (s.has(kRst)) return ListenAction::Discard;
  if (s.has(kAck)) return ListenAction::Rst;
  return s.has(kSyn) ? ListenAction::Accept : ListenAction::Discard;
}

Segment closed_reply(const Segment& s) {
  Segment r;
  r.src_port = s.dst_port;
  r.dst_port = s.src_port;
  r.flags = kRst;
  if (s.has(kAck)) {
    r.seq = s.ack;
  } else {
    r.flags |= kAck;
    r.ack = s.seq + s.seq_len();
  }
  return r;
}

bool may_reopen(const Tcb& t, const Segment& s) {
  if (t.state != State::TimeWait || !s.has(kSyn) || s.has(kRst) || s.has(kAck)) return false;
  if (t.ts_on && s.opts.has_ts) {
    const auto newer = static_cast<std::int32_t>(s.opts.tsval - t.rcv.ts_recent);
    return newer > 0 || (newer == 0 && s.seq > rcv_nxt_seq(t));
  }
  return s.seq > rcv_nxt_seq(t);
}

}  // namespace urnic::tcp
