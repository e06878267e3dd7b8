#include "roce/statistics.h"

#include "roce/context.h"

namespace urnic::roce {

UnreliableCounters counters_of(const Context& c) {
  UnreliableCounters n;
  n.sent = c.unreliable;
  if (const auto* const half = c.requester.ud()) n.too_long = half->too_long();
  if (const auto* const half = c.responder.uc()) {
    const ib::UcResponderCounters& uc = half->counters();
    n.taken = uc.requests;
    n.out_of_sequence = uc.out_of_sequence;
    n.refused = uc.refused;
    n.lost_messages = uc.lost_messages;
  }
  if (const auto* const half = c.responder.ud()) {
    n.taken = half->counters().requests;
    n.refused = half->counters().refused;
  }
  return n;
}

CongestionCounters congestion_of(const Context& c) {
  CongestionCounters n;
  n.marked = c.marks.marked();
  n.cnps_sent = c.marks.cnps();
  if (const auto* const half = c.requester.rc()) n.own = half->state().congestion.counters();
  return n;
}

MessageCounters messages_of(const Context& c) {
  MessageCounters n;
  if (const auto* const half = c.requester.rc()) n.sent = half->state().messages;
  if (const auto* const half = c.requester.uc()) n.sent = half->messages();
  if (const auto* const half = c.requester.ud()) n.sent = half->messages();
  if (const auto* const half = c.responder.rc()) n.taken = half->state().messages;
  if (const auto* const half = c.responder.uc()) n.taken = half->counters().messages;
  if (const auto* const half = c.responder.ud()) n.taken = half->counters().messages;
  return n;
}

void add(Statistics* to, const Context& c) {
  add(&to->congestion, congestion_of(c));
  if (const auto* const half = c.requester.rc()) add(&to->requesters, half->counters());
  if (const auto* const half = c.responder.rc()) add(&to->responders, half->counters());
  add(&to->unreliable, counters_of(c));
  add(&to->messages, messages_of(c));
}

}  // namespace urnic::roce
