#include "base/access_list.h"

#include <algorithm>

namespace urnic {
namespace {

constexpr std::uint8_t kMapped = 96;  // bits of ::ffff:0:0/96

IpPrefix unmapped(const IpPrefix& p) {
  if (!p.address.is_v4_mapped() || p.length < kMapped) return p;
  return {p.address.unmapped(), static_cast<std::uint8_t>(p.length - kMapped)};
}

}  // namespace

void AccessList::add(const IpPrefix& p, bool allows) {
  if (allows) admits_others_ = false;
  const Rule rule{unmapped(p), allows};
  const auto goes_before = [&](const Rule& other) {
    if (rule.prefix.length != other.prefix.length) return rule.prefix.length > other.prefix.length;
    return !rule.allows && other.allows;
  };
  rules_.insert(std::find_if(rules_.begin(), rules_.end(), goes_before), rule);
}

bool AccessList::admits(const IpAddress& address) const {
  const IpAddress who = address.unmapped();
  const auto decides = std::find_if(rules_.begin(), rules_.end(),
                                    [&](const Rule& r) { return r.prefix.contains(who); });
  return decides == rules_.end() ? admits_others_ : decides->allows;
}

}  // namespace urnic
