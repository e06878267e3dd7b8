// A port's table of GIDs over time, as a kernel keeps it: an entry keeps its index as long as its
// address exists. An address that is removed leaves a hole, and a new one takes the first hole or
// is appended.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace urnic::dropin {

class GidSlots {
 public:
  // bound: GIDs of a port (the range of `sgid_index`); beyond: further addresses get no GID; test:
  // GidSlotsTest.TheTableHoldsNoMoreThanAnIndexCanName
  static constexpr std::size_t kMost = 256;

  // `present` are the GIDs of the present addresses, in the order in which new ones get their
  // index. Returns true if an entry was added or removed.
  bool update(const std::vector<ibv_gid>& present);
  // Includes holes; never shrinks.
  std::size_t size() const { return slots_.size(); }
  // All zeros for a hole. `index` must be below size().
  const ibv_gid& at(std::size_t index) const { return slots_[index]; }
  std::optional<std::uint32_t> find(const ibv_gid& gid) const;

 private:
  std::vector<ibv_gid> slots_;
};

// All zeros: an entry without an address.
bool is_hole(const ibv_gid& gid);

}  // namespace urnic::dropin
