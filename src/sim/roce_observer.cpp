#include "sim/roce_observer.h"

#include <algorithm>

namespace urnic::sim {
namespace {

constexpr std::string_view kColumnNames[] = {
    "t_ns",     "fast",       "psn_sent", "psn_furthest", "psn_in_order",  "delivered",
    "held",     "held_bytes", "not_kept", "duplicates",   "sequence_naks", "rnr_naks",
    "repeated", "flight",     "window",   "marks"};
static_assert(std::size(kColumnNames) == kRoceColumns);

const ib::Requester* requester_of(const verbs::QueuePair& qp) {
  return roce::context_of(qp).requester.rc();
}
const ib::Responder* responder_of(const verbs::QueuePair& qp) {
  return roce::context_of(qp).responder.rc();
}

std::string microseconds(Duration d) {
  return std::to_string((d.count_ns() + 500) / 1000) + " us";
}

std::uint64_t bad_icrc(Pair& pair) {
  std::uint64_t n = 0;
  for (Node* node : {&pair.left(), &pair.right()}) {
    n += node->engine().roce().of_destroyed().drops.of(ib::Drop::BadIcrc);
  }
  return n;
}

}  // namespace

RoceObserver::RoceObserver(Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right,
                           const Traffic& traffic, bool series)
    : recorder(pair.clock(), kColumnNames, kHeld, series),
      pair_(pair),
      left_(left),
      right_(right),
      traffic_(traffic),
      first_psn_(roce::context_of(left).attributes.sq_psn) {
  if (const ib::Requester* r = requester_of(left)) was_.requester = r->counters();
  if (const ib::Responder* r = responder_of(right)) was_.responder = r->counters();
  was_.bad_icrc = bad_icrc(pair);
  pair_.watch_left([this](const urnic_frame& f) { from_left_.see(f); });
  pair_.watch_right([this](const urnic_frame& f) { from_right_.see(f); });
}

RoceObserver::~RoceObserver() {
  pair_.watch_left({});
  pair_.watch_right({});
}

void RoceObserver::look() {
  const ib::Requester* const asks = requester_of(left_);
  const ib::Responder* const serves = responder_of(right_);
  if (asks != nullptr) look_at_requester(*asks);
  if (serves != nullptr) look_at_responder(*serves);
  if (serves == nullptr) look_at_idle(roce::context_of(right_));
  if (asks == nullptr && !roce::context_of(left_).attributes.reliable())
    look_at_unreliable(roce::context_of(left_), roce::context_of(right_));
  const std::uint64_t bad = bad_icrc(pair_);
  if (bad != was_.bad_icrc) recorder.note("bad ICRC", "", bad - was_.bad_icrc);
  found.bad_icrc += bad - was_.bad_icrc;
  was_.bad_icrc = bad;
  for (auto it = pair_.left().events.begin(); it != pair_.left().events.end();) {
    if (it->kind != verbs::CmEvent::Kind::Drained) {
      ++it;
      continue;
    }
    ++found.drained;
    recorder.note("drained", "");
    it = pair_.left().events.erase(it);
  }
  found.from_left = from_left_.counts;
  found.from_right = from_right_.counts;
  recorder.put(kRoceDelivered, traffic_.delivered());
  recorder.step();
}

// Continues the count of PSNs since the first one, without wrapping around: `*from` is the last
// count, and `to` the current PSN.
std::uint64_t RoceObserver::run_on(std::uint64_t* from, ib::Psn to) const {
  const std::uint32_t up = to - (first_psn_ + static_cast<std::uint32_t>(*from & ib::kMask24));
  return *from += up;
}

void RoceObserver::look_at_requester(const ib::Requester& r) {
  const ib::RequesterCounters& is = r.counters();
  const ib::RequesterCounters& was = was_.requester;
  const ib::SendState& s = r.state();
  const std::uint64_t probes = is.probes - was.probes;
  if (const auto n = is.timeouts - was.timeouts) recorder.note("time-out", "", n);
  if (const auto n = is.repeated - was.repeated - probes) recorder.note("repetition", "", n);
  if (probes != 0) recorder.note("probe", "", probes);
  if (const auto n = is.implied_naks - was.implied_naks) recorder.note("implied NAK", "", n);
  if (s.rnr.on() && !was_.waits) {
    const Duration wait = s.rnr.until - pair_.now();
    ++found.rnr_waits;
    found.longest_rnr_wait = std::max(found.longest_rnr_wait, wait);
    recorder.note("RNR wait", microseconds(wait));
  } else if (s.rnr.on()) {
    found.sent_in_waits += is.packets - was.packets;
  }
  was_.waits = s.rnr.on();
  recorder.put(kPsnSent, run_on(&sent_, s.fresh.psn));
  recorder.put(kRepeated, is.repeated);
  recorder.put(kRoceFlight, s.outstanding());
  const std::uint64_t cuts = s.congestion.counters().cuts;
  if (cuts != was_.cuts) recorder.note("window closes", std::to_string(s.congestion.packets()));
  was_.cuts = cuts;
  recorder.put(kWindow, s.congestion.packets());
  if (traffic_.reads()) {
    recorder.put(kPsnInOrder, run_on(&in_order_, s.una.psn));
    recorder.put(kPsnFurthest, in_order_);
  }
  was_.requester = is;
}

// Used while nothing that needs a responder has arrived.
void RoceObserver::look_at_idle(const roce::Context& serves) {
  if (!serves.responder || !serves.attributes.reliable()) return;
  const ib::Recovery at_first(serves.attributes.loss);
  recorder.put(kRoceFast, at_first.type() == ib::ConnectionType::Fast ? 1 : 0);
}

void RoceObserver::look_at_responder(const ib::Responder& r) {
  const ib::ResponderCounters& is = r.counters();
  const ib::ResponderCounters& was = was_.responder;
  const ib::ResponderState& s = r.state();
  const auto put = [&](RoceColumn k, std::uint64_t v) { recorder.put(k, v); };
  look_for_gaps(s);
  if (const auto n = is.sequence_naks - was.sequence_naks) recorder.note("sequence NAK", "", n);
  if (const auto n = is.rnr_naks - was.rnr_naks) recorder.note("RNR NAK", "", n);
  if (const auto n = is.parked - was.parked) recorder.note("waits for a receive", "", n);
  if (is.downgrades != was.downgrades) {
    recorder.note("downgrade", std::string(ib::name(s.recovery.reason())));
  }
  if (is.upgrades != was.upgrades) recorder.note("upgrade", "");
  if (const auto n = is.refusals - was.refusals) recorder.note("refusal", "", n);
  const std::uint64_t bytes = pair_.right().engine().roce().held_bytes();
  found.most_held = std::max<std::uint64_t>(found.most_held, s.held.size());
  found.most_held_bytes = std::max(found.most_held_bytes, bytes);
  put(kRoceFast, s.recovery.type() == ib::ConnectionType::Fast ? 1 : 0);
  if (!traffic_.reads()) {
    put(kPsnInOrder, run_on(&in_order_, s.expected));
    put(kPsnFurthest, in_order_ + (s.held.empty() ? 0 : s.held.end() - s.expected));
  }
  put(kHeld, s.held.size());
  put(kHeldBytes, bytes);
  put(kNotKept, is.out_of_sequence - is.held);
  put(kDuplicates, is.duplicates);
  put(kSequenceNaks, is.sequence_naks);
  put(kRnrNaks, is.rnr_naks);
  put(kMarks, roce::context_of(right_).marks.marked());
  was_.responder = is;
}

// A gap begins with an out-of-sequence packet and ends when the packet expected at that time has
// been accepted.
void RoceObserver::look_for_gaps(const ib::ResponderState& s) {
  if (gap_ && gap_psn_.before(s.expected)) {
    gap_ = false;
    found.repairs.push_back(pair_.now() - gap_since_);
    recorder.note("gap closes", "");
  }
  if (gap_ || s.counters.out_of_sequence == was_.responder.out_of_sequence) return;
  gap_ = true;
  gap_psn_ = s.expected;
  gap_since_ = pair_.now();
  recorder.note("gap opens", "");
}

void RoceObserver::look_at_unreliable(const roce::Context& asks, const roce::Context& serves) {
  const roce::UnreliableCounters sent = roce::counters_of(asks), came = roce::counters_of(serves);
  if (const auto n = came.lost_messages - was_.lost_messages) recorder.note("message lost", "", n);
  was_.lost_messages = came.lost_messages;
  recorder.put(kPsnSent, sent.sent);
  recorder.put(kPsnFurthest, came.taken);
  recorder.put(kPsnInOrder, came.taken);
  recorder.put(kNotKept, came.out_of_sequence + came.refused);
}

}  // namespace urnic::sim
