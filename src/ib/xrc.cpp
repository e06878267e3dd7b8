#include "ib/xrc.h"

#include "ib/xrc_queues.h"

namespace urnic::ib {
namespace {

// The queue must stay the same from the first to the last packet of a message.
Verdict choose_queue(ResponderState& s, std::uint32_t number) {
  if (s.message.open()) {
    const verbs::SharedReceiveQueue* const now = s.rq->shared();
    return now != nullptr && now->xrc.number == number ? Verdict::Accept : Verdict::InvalidRequest;
  }
  verbs::SharedReceiveQueue* const queue = s.qp->xrc.queues->find(number);
  if (queue == nullptr) return Verdict::InvalidRequest;
  if (queue->xrc.domain != s.qp->xrc.domain) return Verdict::WrongDomain;
  s.rq->turn_to(queue);
  s.pd = queue->pd();
  return Verdict::Accept;
}

}  // namespace

RequestJudgment judge_xrc_request(ResponderState& s, const ParsedPacket& request) {
  const PacketHeader& h = request.header;
  if (h.row().known() && !is_fatal(s.failure) && h.bth.psn == s.expected) {
    const Verdict v = choose_queue(s, h.srq);
    if (v == Verdict::InvalidRequest) ++s.counters.unknown_queues;
    if (v == Verdict::WrongDomain) ++s.counters.wrong_domains;
    if (v != Verdict::Accept) return {v};
  }
  return judge_request(s, request);
}

}  // namespace urnic::ib
