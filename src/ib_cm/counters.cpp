#include "ib_cm/counters.h"

namespace urnic::ib_cm {

std::string_view name(Drop d) {
  static constexpr std::array<std::string_view, kDrops> kNames = {
      "length",  "base_version", "class",      "class_version", "method", "attribute",
      "unknown", "stranger",     "unexpected", "backlog",       "full"};
  return kNames[static_cast<std::size_t>(d)];
}

}  // namespace urnic::ib_cm
