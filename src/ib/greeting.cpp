#include "ib/greeting.h"

namespace urnic::ib {

void Greeting::on_time(Instant now) {
  if (due_ > now || due_.is_never()) return;
  asks_ = true;
  --left_;
  const Duration wait = Duration::ms(left_ == kTimes - 1 ? 10 : 100);
  due_ = left_ == 0 ? Instant::never() : now + wait;
}

PacketHeader Greeting::next(const QpAttributes& qp, bool may_send, Hello* out) {
  PacketHeader h;
  h.bth.opcode = kHelloOpcode;
  h.bth.pkey = qp.pkey;
  h.bth.dest_qp = qp.dest_qp;
  h.bth.psn = may_send ? qp.sq_psn : qp.rq_psn;
  *out = {true, asks_, true};
  asks_ = answers_ = false;
  return h;
}

void Greeting::heard(const Hello& hello) {
  end();
  answers_ = hello.answer;
}

bool Greeting::is_of_peer(const PacketHeader& h, const QpAttributes& qp, bool may_send) {
  return h.bth.psn == qp.rq_psn || (may_send && h.bth.psn == qp.sq_psn);
}

}  // namespace urnic::ib
