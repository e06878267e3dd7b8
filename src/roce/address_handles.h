// Address handles: the paths that UD requests name. A handle is an index and a generation of its
// entry. A closed handle is not valid again until its entry has been reused 4095 times.
//
// Owned by one engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ib/context.h"
#include "roce/path.h"

namespace urnic::roce {

class AddressHandles {
 public:
  static constexpr std::uint32_t kIndexBits = 20;
  // bound: address handles of an engine; limit: 1048576 (`kMost`); beyond: creating fails with
  // no_memory; test: AddressHandles.AreLimitedInNumber
  static constexpr std::uint32_t kMost = 1u << kIndexBits;

  struct Handle {
    ib::AddressVector av;
    Path path;
  };

  // 0 if there are kMost. Throws std::bad_alloc and then changes nothing.
  std::uint32_t open(const ib::AddressVector& av);
  // Closing a handle that is not open does nothing.
  void close(std::uint32_t handle) noexcept;
  // Null if not open. Holds until the next call of open().
  Handle* find(std::uint32_t handle);
  std::size_t size() const { return size_; }

  // Calls f(Handle&) for each open handle.
  template <class F>
  void for_each(F&& f) {
    for (Entry& e : entries_) {
      if (e.open) f(e.handle);
    }
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kGenerations = 1u << (32 - kIndexBits);

  struct Entry {
    Handle handle;
    std::uint32_t next_free = kNone;
    std::uint32_t generation = 1;  // never 0, so no handle is 0
    bool open = false;
  };

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
  std::uint32_t first_free_ = kNone;
};

}  // namespace urnic::roce
