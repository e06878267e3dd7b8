// Counters of RoCE's side as the plain values of the public header (D10).
#include "roce/control_stats.h"

namespace urnic::roce {
namespace {

void put(const ib::RequesterCounters& c, RoceStats* out) {
  out->requests_sent += c.packets;
  out->requests_repeated += c.repeated;
  out->acks_received += c.acks;
  out->responses_duplicate += c.duplicates;
  out->responses_ghost += c.ghosts;
  out->responses_malformed += c.malformed;
  out->response_timeouts += c.timeouts;
  out->sequence_naks_received += c.sequence_naks;
  out->implied_naks += c.implied_naks;
  out->rnr_naks_received += c.rnr_naks;
  out->probes_sent += c.probes;
  out->probe_losses += c.probe_losses;
  out->requests_repeated_selectively += c.alone;
  out->spurious_repeats += c.needless;
  out->sacks_received += c.sacks;
  out->sacks_invalid += c.sacks_invalid;
  out->responses_held += c.ahead;
  out->response_parts_requested += c.missing;
  out->retries_exhausted += c.retries_exhausted;
  out->rnr_retries_exhausted += c.rnr_retries_exhausted;
}

void put(const ib::ResponderCounters& c, RoceStats* out) {
  out->requests_executed += c.requests;
  out->requests_duplicate += c.duplicates;
  out->requests_out_of_sequence += c.out_of_sequence;
  out->requests_held += c.held;
  out->requests_placed += c.placed;
  out->requests_parked += c.parked;
  out->gap_recoveries += c.recovery_attempts;
  out->roce_downgrades += c.downgrades;
  out->store_full_downgrades += c.store_full;
  out->roce_upgrades += c.upgrades;
  out->requests_too_late += c.dropped_duplicates;
  out->acks_sent += c.acks;
  out->sacks_sent += c.sacks;
  out->sequence_naks_sent += c.sequence_naks;
  out->rnr_naks_sent += c.rnr_naks;
  out->requests_refused += c.refusals;
  out->xrc.no_queue += c.unknown_queues;
  out->xrc.wrong_domain += c.wrong_domains;
  out->read_packets_sent += c.read_responses;
}

void put(const UnreliableCounters& c, RoceStats* out) {
  out->requests_sent += c.sent;
  out->requests_too_long += c.too_long;
  out->requests_executed += c.taken;
  out->requests_out_of_sequence += c.out_of_sequence;
  out->requests_dropped += c.refused;
  out->messages_lost += c.lost_messages;
}

void put(const CongestionCounters& c, RoceStats* out) {
  out->ce_marks_received += c.marked;
  out->cnps_sent += c.cnps_sent;
  out->cnps_received += c.own.cnps;
  out->cnps_ignored += c.own.cnps_ignored;
  out->window_reductions += c.own.cuts;
}

// Each receive that completes is one completion queue entry; the receive itself stores nothing.
void put(const MessageCounters& c, VerbsStats* out) {
  out->writes_sent += c.sent.writes;
  out->sends_sent += c.sent.sends;
  out->reads_sent += c.sent.reads;
  out->read_responses_sent += c.taken.answers;
  out->write_bytes_sent += c.sent.write_bytes;
  out->send_bytes_sent += c.sent.send_bytes;
  out->read_response_bytes_sent += c.taken.answer_bytes;
  out->write_bytes_received += c.taken.write_bytes;
  out->send_bytes_received += c.taken.send_bytes;
  out->read_response_bytes_received += c.sent.read_bytes;
  out->sends_received += c.taken.sends;
  out->read_requests_received += c.taken.reads;
  out->payload_placed += c.taken.write_bytes + c.taken.send_bytes + c.sent.read_bytes;
  out->completion_cqe_writes += c.taken.receives;
}

void put(const Statistics& s, RoceStats* out) {
  put(s.requesters, out);
  put(s.responders, out);
  put(s.unreliable, out);
  put(s.congestion, out);
}

}  // namespace

ConnectionStats ControlPath::stats_of(const verbs::QueuePair& qp) const {
  const Context& c = context_of(qp);
  ConnectionStats s;
  s.transport = "roce";
  s.qp_number = qp.number();
  s.state = verbs::name(qp.state);
  if (c.responder && qp.state.service() != verbs::Service::Ud) {  // it has a peer
    const ib::AddressVector& av = c.attributes.av;
    s.local = SocketAddress{av.local, ib::kUdpPort}.to_string();
    s.peer = (av.remote.is_v6() ? "[" + av.remote.to_string() + "]" : av.remote.to_string()) + ":" +
             std::to_string(c.attributes.dest_qp);
  }
  if (c.responder && c.attributes.reliable()) {
    const ib::Responder* const half = c.responder.rc();
    const ib::Recovery at_first(c.attributes.loss);
    const ib::Recovery& recovery = half != nullptr ? half->state().recovery : at_first;
    s.roce.fast = recovery.type() == ib::ConnectionType::Fast;
    s.roce.selective = c.attributes.peer_selective;
    s.roce.slow_reason = ib::name(recovery.reason());
  }
  Statistics of;
  add(&of, c);
  put(of, &s.roce);
  put(of.messages, &s.verbs);
  return s;
}

void fill_totals(const ControlPath& roce, EngineStats* out) {
  const Statistics& all = roce.side().of_destroyed();
  put(all, &out->ended.roce);
  put(all.messages, &out->ended.verbs);
  RoceHostStats& host = out->roce;
  host.rx_roce = all.received;
  host.tx_roce = all.sent;
  host.tx_unroutable = all.unroutable;
  host.rx_roce_malformed = all.drops.of(ib::Drop::Malformed);
  host.rx_bad_icrc = all.drops.of(ib::Drop::BadIcrc);
  host.rx_bad_version = all.drops.of(ib::Drop::BadVersion);
  host.rx_no_queue_pair = all.drops.of(ib::Drop::NoQueuePair);
  host.rx_wrong_state = all.drops.of(ib::Drop::WrongState);
  host.rx_wrong_service = all.drops.of(ib::Drop::WrongService);
  host.rx_bad_pkey = all.drops.of(ib::Drop::BadPkey);
  host.rx_wrong_address = all.drops.of(ib::Drop::WrongAddress);
  host.rx_bad_qkey = all.drops.of(ib::Drop::BadQkey);
  host.hellos_sent = all.hellos_sent;
  host.hellos_received = all.hellos_received;
  host.hellos_refused = all.hellos_refused;
  host.held_bytes = roce.side().held_bytes();
  roce.connections().fill_stats(out);
}

bool add_connection(const ControlPath& roce, std::size_t place, std::vector<ConnectionStats>* out) {
  const Context* const c = roce.side().contexts().in(place);
  if (c == nullptr || !c->responder) return false;
  out->push_back(roce.stats_of(*c->qp));
  return true;
}

void fill_stats(const ControlPath& roce, EngineStats* out) {
  fill_totals(roce, out);
  for (std::size_t i = 0; i < roce.side().contexts().places(); ++i) {
    add_connection(roce, i, &out->connections);
  }
}

}  // namespace urnic::roce
