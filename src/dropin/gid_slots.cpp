#include "dropin/gid_slots.h"

#include <algorithm>
#include <cstring>

namespace urnic::dropin {
namespace {

bool is_same(const ibv_gid& a, const ibv_gid& b) {
  return std::memcmp(a.raw, b.raw, sizeof a.raw) == 0;
}

bool has(const std::vector<ibv_gid>& all, const ibv_gid& gid) {
  return std::any_of(all.begin(), all.end(), [&](const ibv_gid& g) { return is_same(g, gid); });
}

}  // namespace

bool is_hole(const ibv_gid& gid) {
  return is_same(gid, ibv_gid{});
}

bool GidSlots::update(const std::vector<ibv_gid>& present) {
  bool changed = false;
  for (ibv_gid& slot : slots_) {
    if (is_hole(slot) || has(present, slot)) continue;
    slot = {};
    changed = true;
  }
  for (const ibv_gid& gid : present) {
    if (is_hole(gid) || has(slots_, gid)) continue;
    const auto hole = std::find_if(slots_.begin(), slots_.end(), is_hole);
    if (hole != slots_.end()) {
      *hole = gid;
    } else if (slots_.size() < kMost) {
      slots_.push_back(gid);
    } else {
      continue;
    }
    changed = true;
  }
  return changed;
}

std::optional<std::uint32_t> GidSlots::find(const ibv_gid& gid) const {
  if (is_hole(gid)) return std::nullopt;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (is_same(slots_[i], gid)) return i;
  }
  return std::nullopt;
}

}  // namespace urnic::dropin
