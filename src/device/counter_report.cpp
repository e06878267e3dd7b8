#include "device/counter_report.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/clock.h"

namespace urnic::device {

CounterReport::CounterReport(StatSource source, const std::string& section, const std::string& port,
                             std::function<void(const std::string&)> complain)
    : source_(std::move(source)),
      complain_(std::move(complain)),
      publisher_(stat_directory(), section, port) {
  complain_once(publisher_.open());
}

void CounterReport::complain_once(int error) {
  if (error == 0 || complained_) return;
  complained_ = true;
  complain_("counters are not shown to other programs: " + stat_directory() + ": " +
            std::strerror(error));
}

// The totals of ended connections are read first: one that ends meanwhile may be missing, but none
// is counted twice.
EngineStats CounterReport::present() const {
  EngineStats s = source_.totals();
  std::vector<ConnectionStats> some;
  for (StatsPlace place;;) {
    some.clear();
    const bool more = source_.connections(&place, kPiece, &some);
    for (const ConnectionStats& c : some) add_counters(&s.ended, c);
    if (!more) return s;
  }
}

Duration CounterReport::publish() {
  const std::lock_guard guard(mutex_);
  const Instant begun = monotonic_now();
  complain_once(publisher_.publish(present()));
  const Duration took = monotonic_now() - begun;
  return std::max(kDistance, Duration::ns(took.count_ns() * kShare));
}

}  // namespace urnic::device
