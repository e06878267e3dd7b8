// Data about ended connections: their total counters, and the final statistics of each queue pair's
// last connection.
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

  // The statistics of the last connection of queue pair `qp`; nullptr if there are none.
  const ConnectionStats* last_of(std::uint32_t qp) const {
    const auto it = last_.find(qp);
    return it != last_.end() ? &it->second : nullptr;
  }
  // Without memory nothing is stored: statistics must not delay an end.
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
