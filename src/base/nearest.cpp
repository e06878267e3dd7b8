#include "base/nearest.h"

#include <algorithm>

namespace urnic {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = last;
    last = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string nearest_of(std::string_view name, const std::vector<std::string>& known) {
  const auto best = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
  return best == known.end() ? std::string() : *best;
}

std::string nearest_hint(std::string_view name, const std::vector<std::string>& known) {
  if (name.size() > 64) return {};
  std::string best;
  for (const std::string& k : known) {
    if (name.size() >= 2 && k.starts_with(name) && best.empty()) best = k;
  }
  if (best.empty()) {
    best = nearest_of(name, known);
    const std::size_t bound = 1 + std::max(name.size(), best.size()) / 3;
    if (best.empty() || edit_distance(name, best) > bound) return {};
  }
  return "; the nearest is '" + best + "'";
}

}  // namespace urnic
