#include "tcp/corruption.h"

#include "tcp/tcb_state.h"

namespace urnic::tcp {

void note_corrupted(Tcb& t, const Check& c) {
  if (!t.naming_on || c.begin >= c.end) return;
  t.rcv.has_corrupted = true;
  t.rcv.corrupted = c.begin;
  t.rcv.corrupted_end = c.end;
}

void take_corrupted(Tcb& t, const Segment& s) {
  LossState& l = t.loss;
  Corruption& c = l.corruption;
  Scoreboard& b = t.sent_segments;
  const std::int32_t from = s.opts.corrupted.begin - snd_una_seq(t);
  const std::int32_t to = s.opts.corrupted.end - snd_una_seq(t);
  if (!t.naming_on || from < 0 || to <= from) return;
  const StreamOffset begin = t.snd.una + static_cast<std::uint32_t>(from);
  const StreamOffset end = t.snd.una + static_cast<std::uint32_t>(to);
  for (std::size_t i = b.index_after(begin); i < b.size() && b[i].end() <= end; ++i) {
    if (b[i].begin < begin || b[i].is(SentSegment::kSacked)) continue;
    const std::uint64_t price = std::uint64_t{kRareness} * b[i].len;
    if (price > c.spare || c.together >= kNamedTogether) return;
    c.spare -= static_cast<std::uint32_t>(price);
    ++c.together;
    b.mark_lost_again(i);
    l.high_rxt = std::min(l.high_rxt, b[i].begin);
    // It has left the network, so another segment may enter, whatever cwnd is.
    l.force = true;
    if (l.state == Recovery::Open) l.state = Recovery::Disorder;
  }
}

}  // namespace urnic::tcp
