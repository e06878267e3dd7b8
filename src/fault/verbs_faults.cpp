#include "fault/verbs_faults.h"

#include <utility>

namespace urnic::fault {

std::string VerbsHit::to_string() const {
  const std::string what = verbs_argument_text(kind, argument);
  return std::string(verbs_kind_name(kind)) + " " + std::to_string(nth) +
         (what.empty() ? "" : ": " + what);
}

VerbsFaults::VerbsFaults(const std::vector<VerbsPlan>& plans, IsFrom is_from)
    : is_from_(std::move(is_from)), has_(static_cast<std::size_t>(VerbsKind::Count)) {
  for (const VerbsPlan& plan : plans) {
    for (std::size_t k = 0; k < has_.size(); ++k) {
      Source s{static_cast<VerbsKind>(k), plan.qp, plan.from, {}, Rng(plan.seed ^ k << 56)};
      for (const VerbsPlan::Fault& f : plan.faults) {
        if (f.kind == s.kind) s.faults.push_back(f);
      }
      if (s.faults.empty()) continue;
      has_[k] = true;
      sources_.push_back(std::move(s));
    }
  }
}

std::optional<VerbsHit> VerbsFaults::next(VerbsKind kind, const Where& where) {
  std::optional<VerbsHit> hit;
  for (Source& s : sources_) {
    if (s.kind != kind || (s.qp != 0 && s.qp != where.qp)) continue;
    if (!s.from.empty() && !is_from_(where.caller, s.from)) continue;
    const auto drawn = draw(s);
    if (!hit) hit = drawn;
  }
  return hit;
}

// Draws a number for each probability, whether or not an earlier fault has been chosen: what comes
// later stays the same.
std::optional<VerbsHit> VerbsFaults::draw(Source& s) const {
  ++s.count;
  std::optional<VerbsHit> hit;
  for (const VerbsPlan::Fault& f : s.faults) {
    const bool is =
        f.nth != 0 ? f.nth == s.count : f.probability > 0 && s.rng.chance(f.probability);
    if (is && !hit) hit = VerbsHit{s.kind, s.count, f.argument};
  }
  return hit;
}

}  // namespace urnic::fault
