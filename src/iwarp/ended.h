// What is remembered of connections that have ended: their counters in all, and how each queue
// pair's last one stood at its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <unordered_map>

#include "urnic/stats.h"

namespace urnic::iwarp {

class EndedConnections {
 public:
  void add(const ConnectionStats& s) { add_counters(&totals_, s); }
  const ConnectionStats& totals() const { return totals_; }

  // Of the queue pair `qp`; nullptr when there is nothing.
  const ConnectionStats* last_of(std::uint32_t qp) const {
    const auto it = last_.find(qp);
    return it != last_.end() ? &it->second : nullptr;
  }
  // Not without memory: statistics hold up nothing.
  void keep(std::uint32_t qp, const ConnectionStats& s) {
    try {
      last_.insert_or_assign(qp, s);
    } catch (const std::bad_alloc&) {
      last_.erase(qp);
    }
  }
  void forget(std::uint32_t qp) { last_.erase(qp); }
  std::size_t kept() const { return last_.size(); }

 private:
  ConnectionStats totals_;
  std::unordered_map<std::uint32_t, ConnectionStats> last_;  // by number of the queue pair
};

}  // namespace urnic::iwarp
