#include "fault/fault_line.h"

#include <algorithm>
#include <cstring>

#include "fault/mark.h"

namespace urnic::fault {
namespace {

constexpr std::size_t kSpareLimit = 1024;
// CRC32C detects every burst of up to 32 bits, so a corrupted FPDU is always detected.
constexpr std::uint64_t kCorruptBytes = 4;

Rng rng_for(const FaultPlan& plan, Direction direction, std::uint16_t queue) {
  return Rng(plan.seed * 0x9e3779b97f4a7c15ULL + queue * 2u +
             (direction == Direction::Tx ? 1u : 0u));
}

}  // namespace

FaultLine::FaultLine(const FaultPlan& plan, Direction direction, std::uint16_t queue, FaultLog* log)
    : direction_(direction),
      queue_(queue),
      log_(log),
      rng_(rng_for(plan, direction, queue)),
      resegmenter_(rng_) {
  set_plan(plan);
}

void FaultLine::set_plan(const FaultPlan& plan) {
  plan_ = plan;
  idle_ = plan.idle();
  const bool only_loss_and_corruption =
      std::all_of(plan.at.begin(), plan.at.end(), [](const FaultPlan::At& at) {
        return at.kind == FaultKind::Loss || at.kind == FaultKind::Corrupt ||
               at.kind == FaultKind::BadSum;
      });
  in_place_ = only_loss_and_corruption && plan.duplicate == 0 && plan.reorder == 0 &&
              plan.resegment == 0 && plan.delay == Duration() && plan.jitter == Duration() &&
              plan.rate_bps == 0;
  rng_ = rng_for(plan, direction_, queue_);
  resegmenter_.reseed(Rng(rng_.next()));
  ordinal_ = 0;
  burst_left_ = 0;
  duplicate_next_ = reorder_next_ = false;
}

// ---- entering -------------------------------------------------------------------------------

Frame FaultLine::new_blank_frame(std::size_t length) {
  Frame f;
  if (!spare_.empty()) {
    f = std::move(spare_.back());
    spare_.pop_back();
  }
  f.bytes.resize(length);
  f.csum = URNIC_CSUM_UNKNOWN;
  return f;
}

Frame FaultLine::new_frame(ByteView head, ByteView tail, std::uint8_t csum) {
  Frame f = new_blank_frame(head.size() + tail.size());
  std::copy(tail.begin(), tail.end(), std::copy(head.begin(), head.end(), f.bytes.begin()));
  f.csum = csum;
  return f;
}

void FaultLine::recycle(Frame f) {
  if (spare_.size() < kSpareLimit) spare_.push_back(std::move(f));
}

bool FaultLine::is_eligible(const FrameView& v, ByteView payload) {
  const bool spared = v.tcp ? guard_.spares(*v.tcp, payload, plan_)
                            : v.roce && plan_.skip_handshake && v.roce->management();
  if (spared) {
    ++counters_.spared;
    return false;
  }
  if (!plan_.tcp_only) return true;
  return (v.tcp || v.roce) && v.payload() > plan_.payload_only;
}

bool FaultLine::asked_for(FaultKind kind) const {
  return std::find(plan_.at.begin(), plan_.at.end(), FaultPlan::At{kind, ordinal_}) !=
         plan_.at.end();
}

void FaultLine::note(FaultKind kind, std::size_t length, const FrameView& v, Instant now,
                     std::uint32_t at) {
  ++counters_.injected[static_cast<std::size_t>(kind)];
  if (log_ == nullptr) return;
  FaultRecord r;
  r.time = now;
  r.kind = kind;
  r.direction = direction_;
  r.tcp = v.tcp.has_value();
  r.roce = v.roce.has_value();
  r.queue = queue_;
  r.seq = v.tcp ? v.tcp->seq : v.roce ? v.roce->psn : 0;
  r.payload = v.payload();
  r.length = static_cast<std::uint32_t>(length);
  r.at = at;
  log_->add(r);
}

bool FaultLine::decide_loss(std::size_t length, const FrameView& v, Instant now) {
  bool lost = burst_left_ != 0;
  if (lost) {
    --burst_left_;
  } else if (is_wanted(FaultKind::Loss, plan_.loss)) {
    lost = true;
    burst_left_ = plan_.loss_burst - 1;
  }
  if (lost) note(FaultKind::Loss, length, v, now);
  return lost;
}

FaultLine::Decision FaultLine::decide(const FrameView& v, ByteView payload, std::size_t length,
                                      Instant now) {
  Decision d;
  if (v.tcp) {
    mtu_seen_ = std::max(mtu_seen_, v.tcp->overhead() - v.tcp->net.l3_offset + v.tcp->payload_len);
  }
  d.eligible = is_eligible(v, payload);
  if (!d.eligible) return d;
  ++counters_.eligible;
  ++ordinal_;
  d.lost = decide_loss(length, v, now);
  if (d.lost) return d;
  d.corrupt = v.corruptible() && is_wanted(FaultKind::Corrupt, plan_.corrupt);
  d.bad_checksum = v.tcp && !d.corrupt && is_wanted(FaultKind::BadSum, plan_.bad_checksum);
  return d;
}

FaultLine::Fate FaultLine::inspect(const urnic_frame& f, Instant now, Frame* changed) {
  ++counters_.frames;
  // Copies the headers before using them: the memory may be a peer's (E-19).
  std::uint8_t head[net::kHeadSpan];
  const std::size_t n = std::min<std::size_t>(f.len[0], sizeof head);
  std::memcpy(head, f.data[0], n);
  const std::uint32_t length = port::frame_len(f);
  const FrameView view = look_at({head, n}, length);
  const TcpView* v = view.segment();
  ByteView payload;
  if (v != nullptr && v->payload_offset() < f.len[0]) {
    payload = ByteView(f.data[0], f.len[0]).subspan(v->payload_offset());
  } else if (v != nullptr) {
    payload = {f.data[1], f.len[1]};
  }
  const Decision d = decide(view, payload, length, now);
  if (d.lost) return Fate::Lost;
  ++counters_.delivered;
  if (!d.corrupt && !d.bad_checksum) return Fate::Pass;
  *changed = new_frame({f.data[0], f.len[0]}, {f.data[1], f.len[1]}, f.csum);
  std::memcpy(changed->bytes.data(), head, n);  // as inspected; the memory may have changed since
  if (d.corrupt) {
    corrupt(*changed, view, now);
  } else {
    break_checksum(*changed, view, now);
  }
  return Fate::Change;
}

void FaultLine::corrupt(Frame& f, const FrameView& v, Instant now) {
  const std::uint32_t at = v.tcp ? corrupt_tcp(f, *v.tcp) : corrupt_roce(f, *v.roce, &rng_);
  note(FaultKind::Corrupt, f.bytes.size(), v, now, at);
}

std::uint32_t FaultLine::corrupt_tcp(Frame& f, const TcpView& v) {
  const std::uint64_t n = rng_.between(1, std::min<std::uint64_t>(kCorruptBytes, v.payload_len));
  const auto at =
      static_cast<std::uint32_t>(v.payload_offset() + rng_.below(v.payload_len - n + 1));
  const std::vector<std::uint8_t> was(f.bytes.begin() + at,
                                      f.bytes.begin() + at + static_cast<std::ptrdiff_t>(n));
  for (std::uint64_t i = 0; i < n; ++i) {
    f.bytes[at + i] = static_cast<std::uint8_t>(f.bytes[at + i] ^ rng_.between(1, 255));
  }
  patch_tcp_checksum(f, v, at, was);
  return at;
}

void FaultLine::break_checksum(Frame& f, const FrameView& seen, Instant now) {
  const TcpView& v = *seen.tcp;
  if (!tcp_checksum_ok(f, v)) return;  // broken already; another change might repair it
  if (f.csum == URNIC_CSUM_PARTIAL) finish_tcp_frame(f, v, v.payload_len);
  f.csum = URNIC_CSUM_UNKNOWN;
  // Flipping one bit changes the sum by a power of two, which is never a multiple of 0xffff.
  // Without payload, flips a bit of the checksum itself.
  const std::uint32_t at =
      v.payload_len != 0
          ? v.payload_offset() + static_cast<std::uint32_t>(rng_.below(v.payload_len))
          : v.net.l4_offset + 16u + static_cast<std::uint32_t>(rng_.below(2));
  f.bytes[at] = static_cast<std::uint8_t>(f.bytes[at] ^ (1u << rng_.below(8)));
  note(FaultKind::BadSum, f.bytes.size(), seen, now, at);
}

void FaultLine::push(ByteView head, ByteView tail, std::uint8_t csum, Instant now) {
  ++counters_.frames;
  Frame f = new_frame(head, tail, csum);
  if (idle_) {
    enqueue(std::move(f), now, Duration(), true);
    return;
  }
  const FrameView view = look_at(f);
  const TcpView* v = view.segment();
  const ByteView payload =
      v != nullptr ? ByteView(f.bytes).subspan(v->payload_offset()) : ByteView();
  const Decision d = decide(view, payload, f.bytes.size(), now);
  if (d.lost) return recycle(std::move(f));
  if (d.corrupt) corrupt(f, view, now);
  if (d.bad_checksum) break_checksum(f, view, now);
  if (d.eligible) {
    duplicate_next_ = duplicate_next_ || asked_for(FaultKind::Duplicate);
    reorder_next_ = reorder_next_ || asked_for(FaultKind::Reorder);
  }
  Resegmenter::Rule rule;
  rule.probability = plan_.resegment;
  rule.cut_now = d.eligible && asked_for(FaultKind::Cut);
  rule.cut_from = plan_.cut_from;
  rule.cut_to = plan_.cut_to;
  rule.touch = d.eligible && (plan_.resegment != 0 || rule.cut_now);
  rule.mtu = plan_.mtu != 0 ? plan_.mtu : mtu_seen_;
  rule.hold = plan_.hold;
  const ResegmentStats before = resegmenter_.stats();
  const std::size_t length = f.bytes.size();
  out_.clear();
  resegmenter_.push(std::move(f), v, rule, now, out_);
  if (resegmenter_.stats().cut != before.cut) note(FaultKind::Cut, length, view, now);
  if (resegmenter_.stats().joined != before.joined) note(FaultKind::Join, length, view, now);
  pass_on(d.eligible, now);
}

void FaultLine::pass_on(bool eligible, Instant now) {
  for (Frame& f : out_) {
    const bool twice = eligible && (duplicate_next_ || chance(plan_.duplicate));
    const bool late = eligible && (reorder_next_ || chance(plan_.reorder));
    if (eligible) duplicate_next_ = reorder_next_ = false;
    if (twice || late) {
      const FrameView view = look_at(f);
      if (twice) note(FaultKind::Duplicate, f.bytes.size(), view, now);
      if (late) note(FaultKind::Reorder, f.bytes.size(), view, now);
    }
    if (twice) enqueue(new_frame(f.bytes, {}, f.csum), now, Duration(), true);
    if (!late) {
      enqueue(std::move(f), now, Duration(), true);
    } else if (plan_.reorder_frames == 0) {
      enqueue(std::move(f), now, plan_.reorder_delay, false);
    } else {
      reordered_.push_back({std::move(f), plan_.reorder_frames, now + plan_.hold});
    }
  }
  out_.clear();
}

// ---- waiting and leaving ----------------------------------------------------------------------

// One more frame has overtaken the frames that are held back for reordering.
void FaultLine::overtaken(Instant now) {
  for (Reordered& r : reordered_) {
    if (r.others_left != 0) --r.others_left;
  }
  while (!reordered_.empty() &&
         (reordered_.front().others_left == 0 || reordered_.front().until <= now)) {
    Frame f = std::move(reordered_.front().frame);
    reordered_.pop_front();
    enqueue(std::move(f), now, Duration(), false);
  }
}

void FaultLine::enqueue(Frame f, Instant now, Duration extra, bool in_order) {
  under_way_.move_due(now);
  if (under_way_.size() >= plan_.limit) {
    note(FaultKind::Overflow, f.bytes.size(), idle_ ? FrameView() : look_at(f), now);
    return recycle(std::move(f));
  }
  if (plan_.mark != Duration() && under_way_.wait(now) > plan_.mark) mark(&f, now);
  under_way_.enter(std::move(f), plan_, now, extra, in_order, &rng_);
  if (in_order) overtaken(now);
}

// Acts like a router that would otherwise have to drop the frame (RFC 3168, 5). Does not mark
// frames whose sender does not support ECN.
void FaultLine::mark(Frame* f, Instant now) {
  if (mark_frame(f)) note(FaultKind::Mark, f->bytes.size(), look_at(*f), now);
}

std::size_t FaultLine::ready(Instant now) {
  if (resegmenter_.held() != 0) {
    out_.clear();
    resegmenter_.flush(now, out_);
    pass_on(true, now);
  }
  while (!reordered_.empty() && reordered_.front().until <= now) {
    Frame f = std::move(reordered_.front().frame);
    reordered_.pop_front();
    enqueue(std::move(f), now, Duration(), false);
  }
  under_way_.move_due(now);
  return under_way_.ready();
}

Frame FaultLine::pop() {
  ++counters_.delivered;
  return under_way_.pop();
}

Instant FaultLine::next_release() const {
  Instant at = resegmenter_.next_deadline();
  if (!reordered_.empty()) at = earlier(at, reordered_.front().until);
  return earlier(at, under_way_.next_release());
}

std::size_t FaultLine::backlog() const {
  return under_way_.size() + reordered_.size() + resegmenter_.held();
}

}  // namespace urnic::fault
