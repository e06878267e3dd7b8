#include "ib/selective.h"

#include "ib/send_progress.h"

namespace urnic::ib {
namespace {

// True if it reports packets that were never sent.
bool lies(const SendState& s, const Sack& sack) {
  for (std::uint32_t i = s.fresh.psn - sack.expected; i < sack.size(); ++i) {
    if (sack.has(i)) return true;
  }
  return false;
}

}  // namespace

bool take_sack(SendState& s, const Sack& sack, Instant now) {
  ++s.counters.sacks;
  if (lies(s, sack)) ++s.counters.sacks_invalid;
  if (s.una == s.fresh) return false;  // all is answered
  if (!repeats_alone(s)) return s.next == s.fresh;
  if (s.log.report(sack, now)) judge_losses(s, now);
  return false;
}

void judge_losses(SendState& s, Instant now) {
  const std::uint32_t before = s.log.lost();
  s.log.judge(now);
  if (s.log.lost() != before) s.congestion.lost(s.log.lost() - before, s.fresh.psn, now);
  s.counters.needless += s.log.take_needless_repeats();
}

// The missing part of a READ that is partly answered; for other requests the packet itself.
SendPosition lost_position(const SendState& s) {
  const Psn psn = s.log.first_lost();
  if (psn.before(s.una.psn)) return s.una;
  const std::uint32_t wqe = wqe_at(s, psn);
  return {wqe, psn - s.wqes.part(wqe).psn, psn};
}

}  // namespace urnic::ib
