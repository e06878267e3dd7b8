#include "sim/observer.h"

#include <algorithm>
#include <optional>

namespace urnic::sim {
namespace {

constexpr std::string_view kColumnNames[] = {"t_ns",        "fast",       "attempts",  "holes",
                                             "in_order",    "placed",     "delivered", "pending",
                                             "hole_state",  "reassembly", "copied",    "dup_acks",
                                             "retransmits", "cwnd",       "flight"};
static_assert(std::size(kColumnNames) == kColumns);

using fastpath::Reason;

// Separates reasons for dropping a segment from reasons for accepting one or for a downgrade.
constexpr bool is_drop(Reason r) {
  switch (r) {
    case Reason::Slow:
    case Reason::Aligned:
    case Reason::Upgrade:
    case Reason::OutOfOrderStore:
    case Reason::Seam:
    case Reason::RecoveryExhausted:
    case Reason::SameSegment:
    case Reason::CutFrames:
      return false;
    default:
      return true;
  }
}

std::uint64_t pending_messages(const engine::Connection& c) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < c.hole_counters.size(); ++i) {
    const ddp::MessageCounts& m = c.hole_counters[i];
    n += m.sends + m.read_responses + m.read_requests;
  }
  return n;
}

}  // namespace

Observer::Observer(Pair& pair, Node& sender_node, verbs::QueuePair& sender, Node& receiver_node,
                   verbs::QueuePair& receiver, const Traffic& traffic, bool series)
    : recorder(pair.clock(), kColumnNames, kAttempts, series),
      pair_(pair),
      sender_node_(sender_node),
      receiver_node_(receiver_node),
      sender_(sender),
      receiver_(receiver),
      traffic_(traffic) {
  if (const auto* c = receiver_node_.engine().iwarp().find(receiver_.connection)) {
    was_.receiver = c->counters;
  }
  if (const auto* c = sender_node_.engine().iwarp().find(sender_.connection)) {
    was_.sender = c->counters;
    was_.mss = c->tcb.snd.mss;
  }
}

void Observer::look() {
  const Instant now = pair_.now();
  if (const auto* c = sender_node_.engine().iwarp().find(sender_.connection)) look_at_sender(*c);
  if (const auto* c = receiver_node_.engine().iwarp().find(receiver_.connection)) {
    look_at_receiver(*c, now);
  }
  recorder.put(kDelivered, traffic_.delivered());
  recorder.step();
}

void Observer::look_at_verdicts(const engine::Connection& c) {
  const auto& is = c.counters;
  const auto& was = was_.receiver;
  const auto fresh = [&](Reason r) {
    const auto i = static_cast<std::size_t>(r);
    return is.reasons[i] - was.reasons[i];
  };
  const bool downgraded = is.downgrades != was.downgrades;
  // The reason for the downgrade. If no attempt is allowed, it is the reason of the error itself
  //
  std::optional<Reason> why;
  for (const Reason r :
       {Reason::RecoveryExhausted, Reason::SameSegment, Reason::CutFrames, Reason::Seam}) {
    if (downgraded && fresh(r) != 0) why = r;
  }
  for (std::size_t i = 0; i < kReasonCount; ++i) {
    const auto r = static_cast<Reason>(i);
    auto n = fresh(r);
    if (n == 0 || !is_drop(r)) continue;
    if (downgraded && !why) {
      why = r;
      --n;
    }
    if (n != 0) recorder.note("drop", std::string(fastpath::reason_name(r)), n);
  }
  if (const auto n = is.empty_rq_drops - was.empty_rq_drops)
    recorder.note("drop", "no receive posted", n);
  if (is.detours != was.detours) recorder.note("detour begins", "");
  if (downgraded)
    recorder.note("downgrade", why ? std::string(fastpath::reason_name(*why)) : std::string());
  if (is.upgrades != was.upgrades) recorder.note("upgrade", "");
  if (is.terminates_sent != was.terminates_sent) recorder.note("terminate sent", c.failure);
}

void Observer::look_at_receiver(const engine::Connection& c, Instant now) {
  look_at_verdicts(c);
  const bool fast = c.context.type == fastpath::ConnectionType::Fast;
  const std::uint64_t holes = c.tcb.rcv.holes.size();
  if (holes != was_.holes)
    recorder.note(holes > was_.holes ? "hole opens" : "hole closes", "", holes);
  look_for_repairs(c, now);
  const std::uint64_t pending = pending_messages(c);
  const std::uint64_t state = holes * (sizeof(tcp::Hole) + sizeof(ddp::MessageCounts));
  const std::uint64_t reassembly = receiver_node_.engine().iwarp().state().pool.in_use();
  found.most_holes = std::max(found.most_holes, holes);
  found.most_pending = std::max(found.most_pending, pending);
  found.most_hole_state = std::max(found.most_hole_state, state);
  found.most_reassembly = std::max(found.most_reassembly, reassembly);
  const auto put = [&](Column k, std::uint64_t v) { recorder.put(k, v); };
  put(kFast, fast ? 1 : 0);
  put(kAttempts, c.context.recovery_attempts);
  put(kHoles, holes);
  put(kInOrder, c.tcb.rcv.holes.rcv_nxt().value());
  put(kPlaced, c.counters.payload_placed);
  put(kPending, pending);
  put(kHoleState, state);
  put(kReassembly, reassembly);
  put(kCopied, c.counters.bytes_copied);
  put(kDupAcks, c.counters.dup_acks_out);
  was_.receiver = c.counters;
  was_.holes = holes;
}

void Observer::look_at_sender(const engine::Connection& c) {
  const auto& is = c.counters;
  if (const auto n = is.retransmits - was_.sender.retransmits)
    recorder.note("retransmission", "", n);
  if (const auto n = is.rto_expirations - was_.sender.rto_expirations)
    recorder.note("time-out", "", n);
  if (c.tcb.snd.mss != was_.mss) {
    recorder.note("segment size",
                  std::to_string(was_.mss) + " to " + std::to_string(c.tcb.snd.mss));
  }
  recorder.put(kRetransmits, is.retransmits);
  recorder.put(kCwnd, c.tcb.cc.cwnd);
  recorder.put(kFlight, tcp::flight(c.tcb));
  was_.sender = is;
  was_.mss = c.tcb.snd.mss;
}

// Measures repairs: from the moment the ULP dropped a segment until RCV.NXT has passed it.
void Observer::look_for_repairs(const engine::Connection& c, Instant now) {
  const bool attempt = c.counters.recovery_attempts != was_.receiver.recovery_attempts;
  const StreamOffset next = c.tcb.rcv.holes.rcv_nxt();
  if (attempt && c.context.recovery_attempts != 0) {
    // LastRecoverySN 294 belongs to that segment, unless a later one is also being repaired.
    const tcp::Seq sn = c.context.last_recovery_sn;
    const std::int32_t ahead = sn - tcp::rcv_seq(c.tcb, next);
    const StreamOffset at = next + static_cast<std::uint32_t>(std::max(ahead, 0));
    const bool known =
        std::any_of(dropped_.begin(), dropped_.end(), [&](const Dropped& d) { return d.at == at; });
    if (!known && ahead >= 0) dropped_.push_back({at, now});
  }
  for (auto it = dropped_.begin(); it != dropped_.end();) {
    if (it->at < next) {
      found.repairs.push_back(now - it->since);
      it = dropped_.erase(it);
    } else {
      ++it;
    }
  }
}

}  // namespace urnic::sim
