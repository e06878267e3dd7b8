#include "sim/observer.h"

#include <algorithm>
#include <optional>

namespace urnic::sim {
namespace {

constexpr std::size_t kMostSamples = 200;
constexpr std::size_t kMostEvents = 300;

constexpr std::string_view kColumnNames[] = {"t_ns",        "fast",       "attempts",  "holes",
                                             "in_order",    "placed",     "delivered", "pending",
                                             "hole_state",  "reassembly", "copied",    "dup_acks",
                                             "retransmits", "cwnd",       "flight"};
static_assert(std::size(kColumnNames) == kColumns);

using fastpath::Reason;

// Reasons for taking a segment, or for a downgrade; all others are for dropping it.
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

std::string_view column_name(std::size_t column) {
  return column < kColumns ? kColumnNames[column] : "?";
}

Observer::Observer(Pair& pair, Node& sender_node, verbs::QueuePair& sender, Node& receiver_node,
                   verbs::QueuePair& receiver, const Traffic& traffic, bool series)
    : pair_(pair),
      sender_node_(sender_node),
      receiver_node_(receiver_node),
      sender_(sender),
      receiver_(receiver),
      traffic_(traffic),
      series_(series),
      began_(pair.now()),
      next_sample_(pair.now()) {
  if (const auto* c = receiver_node_.engine().iwarp().find(receiver_.connection)) {
    was_.receiver = c->counters;
  }
  if (const auto* c = sender_node_.engine().iwarp().find(sender_.connection)) {
    was_.sender = c->counters;
    was_.mss = c->tcb.snd.mss;
  }
}

void Observer::note(std::string_view what, std::string text, std::uint64_t count) {
  if (!series_) return;
  if (found.events.size() == kMostEvents) {
    ++found.events_left_out;
    return;
  }
  found.events.push_back({pair_.now() - began_, what, std::move(text), count});
}

void Observer::look() {
  const Instant now = pair_.now();
  if (const auto* c = sender_node_.engine().iwarp().find(sender_.connection)) look_at_sender(*c);
  if (const auto* c = receiver_node_.engine().iwarp().find(receiver_.connection)) {
    look_at_receiver(*c, now);
  }
  row_[kDelivered] = static_cast<std::int64_t>(traffic_.delivered());
  if (series_ && now >= next_sample_) sample(now);
}

void Observer::look_at_verdicts(const engine::Connection& c) {
  const auto& is = c.counters;
  const auto& was = was_.receiver;
  const auto fresh = [&](Reason r) {
    const auto i = static_cast<std::size_t>(r);
    return is.reasons[i] - was.reasons[i];
  };
  const bool downgraded = is.downgrades != was.downgrades;
  // Which reason downgraded: with no attempt allowed it is the error's own.
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
    if (n != 0) note("drop", std::string(fastpath::reason_name(r)), n);
  }
  if (const auto n = is.empty_rq_drops - was.empty_rq_drops) note("drop", "no receive posted", n);
  if (is.detours != was.detours) note("detour begins", "");
  if (downgraded) note("downgrade", why ? std::string(fastpath::reason_name(*why)) : std::string());
  if (is.upgrades != was.upgrades) note("upgrade", "");
  if (is.terminates_sent != was.terminates_sent) note("terminate sent", c.failure);
}

void Observer::look_at_receiver(const engine::Connection& c, Instant now) {
  look_at_verdicts(c);
  const bool fast = c.context.type == fastpath::ConnectionType::Fast;
  const std::uint64_t holes = c.tcb.rcv.holes.size();
  if (holes != was_.holes) note(holes > was_.holes ? "hole opens" : "hole closes", "", holes);
  look_for_repairs(c, now);
  const std::uint64_t pending = pending_messages(c);
  const std::uint64_t state = holes * (sizeof(tcp::Hole) + sizeof(ddp::MessageCounts));
  const std::uint64_t reassembly = receiver_node_.engine().iwarp().state().pool.in_use();
  found.most_holes = std::max(found.most_holes, holes);
  found.most_pending = std::max(found.most_pending, pending);
  found.most_hole_state = std::max(found.most_hole_state, state);
  found.most_reassembly = std::max(found.most_reassembly, reassembly);
  const auto put = [&](Column k, std::uint64_t v) { row_[k] = static_cast<std::int64_t>(v); };
  put(kFast, fast ? 1 : 0);
  put(kAttempts, c.context.recovery_attempts);
  most_attempts_ = std::max(most_attempts_, row_[kAttempts]);
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
  if (const auto n = is.retransmits - was_.sender.retransmits) note("retransmission", "", n);
  if (const auto n = is.rto_expirations - was_.sender.rto_expirations) note("time-out", "", n);
  if (c.tcb.snd.mss != was_.mss) {
    note("segment size", std::to_string(was_.mss) + " to " + std::to_string(c.tcb.snd.mss));
  }
  row_[kRetransmits] = static_cast<std::int64_t>(is.retransmits);
  row_[kCwnd] = c.tcb.cc.cwnd;
  row_[kFlight] = tcp::flight(c.tcb);
  was_.sender = is;
  was_.mss = c.tcb.snd.mss;
}

// A segment was dropped by a decision of the ULP: from then until RCV.NXT has passed it.
void Observer::look_for_repairs(const engine::Connection& c, Instant now) {
  const bool attempt = c.counters.recovery_attempts != was_.receiver.recovery_attempts;
  const StreamOffset next = c.tcb.rcv.holes.rcv_nxt();
  if (attempt && c.context.recovery_attempts != 0) {
    // LastRecoverySN 294 is that segment's, unless a later one is being repaired as well.
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

void Observer::sample(Instant now) {
  row_[kTime] = (now - began_).count_ns();
  found.samples.push_back(row_);
  // Attempts come and go between two found.samples: the most since the last one is what counts.
  found.samples.back()[kAttempts] = std::max(row_[kAttempts], most_attempts_);
  most_attempts_ = 0;
  if (found.samples.size() > kMostSamples) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < found.samples.size(); i += 2) {
      Sample s = found.samples[i];
      if (i + 1 < found.samples.size())
        s[kAttempts] = std::max(s[kAttempts], found.samples[i + 1][kAttempts]);
      found.samples[kept++] = s;
    }
    found.samples.resize(kept);
    interval_ = interval_ * 2;
  }
  while (next_sample_ <= now) next_sample_ = next_sample_ + interval_;
}

void Observer::finish() {
  if (!series_) return;
  row_[kTime] = (pair_.now() - began_).count_ns();
  found.samples.push_back(row_);
}

}  // namespace urnic::sim
