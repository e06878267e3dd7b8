#include "ib/receive_end.h"

namespace urnic::ib {

void complete_receive(verbs::ReceiveQueue* rq, const PacketHeader& last, std::uint32_t bytes,
                      verbs::Completion* c) {
  const OpcodeRow& row = last.row();
  const std::uint32_t index = rq->head();
  rq->claim(index);
  verbs::ReceiveWqe& w = rq->wqe(index);
  verbs::ReceiveEnd end;
  end.byte_len = bytes;
  end.solicited = last.bth.solicited;
  end.with_immediate = row.has(kImmDt);
  if (end.with_immediate) w.immediate = last.immediate;
  end.with_invalidate = row.has(kIeth);
  end.inv_key = last.inv_rkey;
  verbs::fill_completion(w, end, c);
  if (row.family == Family::Write) c->op = verbs::WrOp::WriteImm;
  rq->pop();
}

void fail_receive(verbs::ReceiveQueue* rq, verbs::Status status, verbs::Completion* c) {
  const std::uint32_t index = rq->head();
  rq->claim(index);
  *c = {};
  c->wr_id = rq->wqe(index).wr_id;
  c->receive = true;
  c->status = status;
  rq->pop();
}

}  // namespace urnic::ib
