#include "ib/keepalive.h"

namespace urnic::ib {

bool Keepalive::on_time(std::uint64_t heard, bool busy, Duration idle, Instant now) {
  if (due_ > now || due_.is_never()) return false;
  const Duration apart = idle / kQuestions;
  // We were not running ourselves, and have not sent the probes that were due meanwhile.
  const bool away = now - due_ > apart;
  if (heard_ || heard != seen_ || busy) {
    heard_ = asks_ = false;
    seen_ = heard;
    asked_ = 0;
    due_ = now + idle;
    return false;
  }
  if (away) asked_ = 0;
  if (asked_ == kQuestions) {
    end();
    return true;
  }
  ++asked_;
  asks_ = true;
  due_ = now + apart;
  return false;
}

PacketHeader Keepalive::question(const QpAttributes& qp, Psn next) {
  asks_ = false;
  PacketHeader h;
  h.bth.opcode = Opcode(qp.service, Operation::WriteOnly);
  h.bth.pkey = qp.pkey;
  h.bth.dest_qp = qp.dest_qp;
  h.bth.psn = next - 1;
  h.bth.ack_request = true;
  return h;
}

PacketHeader Keepalive::answer(const QpAttributes& qp, std::uint8_t credits) {
  answers_ = false;
  PacketHeader h;
  h.bth.opcode = Opcode(qp.service, Operation::Acknowledge);
  h.bth.pkey = qp.pkey;
  h.bth.dest_qp = qp.dest_qp;
  h.bth.psn = qp.rq_psn - 1;
  h.aeth.syndrome = Syndrome::ack(credits);
  return h;
}

bool Keepalive::take_question(const ParsedPacket& p, const QpAttributes& qp) {
  const PacketHeader& h = p.header;
  const bool is = h.bth.psn == qp.rq_psn - 1 && h.row().family == Family::Write &&
                  h.row().begins() && h.row().ends() && p.payload.empty();
  if (!is) return false;
  heard_ = true;
  answers_ = h.bth.ack_request;
  return true;
}

bool Keepalive::take_answer(const ParsedPacket& p, const QpAttributes& qp) {
  const PacketHeader& h = p.header;
  const bool is = h.bth.psn == qp.sq_psn - 1 && h.row().family == Family::Acknowledge &&
                  h.aeth.syndrome.kind() == AckKind::Ack;
  if (is) heard_ = true;
  return is;
}

}  // namespace urnic::ib
