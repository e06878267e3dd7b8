// Address handles: the ways that requests of UD name. A handle is an index and a generation of its
// entry, so that one which has gone names nobody until its entry has been used 4095 times more.
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
  // no_memory; test: AddressHandles.ThereAreSoManyAndThenNoMore
  static constexpr std::uint32_t kMost = 1u << kIndexBits;

  struct Handle {
    ib::AddressVector av;
    Path way;
  };

  // 0: there are kMost. Throws std::bad_alloc, and then everything is as it was.
  std::uint32_t open(const ib::AddressVector& av);
  // Nobody else's yet; nothing happens to one that is not open.
  void close(std::uint32_t handle) noexcept;
  // Null: not open. Holds until the next call of open().
  Handle* find(std::uint32_t handle);
  std::size_t size() const { return size_; }

  // f(Handle&) for each.
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
    std::uint32_t generation = 1;  // never 0: no handle is
    bool open = false;
  };

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
  std::uint32_t first_free_ = kNone;
};

}  // namespace urnic::roce
