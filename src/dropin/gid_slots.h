// A port's table of GIDs over time, as a kernel keeps it: an entry stays where it is as long as its
// address is there, one whose address goes leaves a hole, and one that comes takes the first hole
// or the end.
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
  // GidSlotsTest.NoMoreThanAnIndexCanName
  static constexpr std::size_t kMost = 256;

  // `present` are those of the addresses that are there now, in the order in which new ones are
  // numbered. Returns whether an entry came or went.
  bool update(const std::vector<ibv_gid>& present);
  // Holes included; it never shrinks.
  std::size_t size() const { return slots_.size(); }
  // Zero for a hole. `index` is below size().
  const ibv_gid& at(std::size_t index) const { return slots_[index]; }
  std::optional<std::uint32_t> find(const ibv_gid& gid) const;

 private:
  std::vector<ibv_gid> slots_;
};

// Zero: an entry without an address.
bool is_hole(const ibv_gid& gid);

}  // namespace urnic::dropin
