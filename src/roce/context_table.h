// Queue pairs by their number. A number is an index and a generation of its entry, passed through a
// keyed permutation of 24 bits. It is found without a hash and is hard to guess, and the number of
// a destroyed queue pair finds no other until its entry has been reused 63 times.
//
// Owned by one engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/siphash.h"
#include "base/stag_form.h"

namespace urnic::roce {

struct Context;

class ContextTable {
 public:
  static constexpr std::uint32_t kIndexBits = 18;
  // bound: RoCE queue pairs of an engine, including numbers in time-wait; limit: 262144 (`kMost`);
  // beyond: creating fails with no_memory; test: ContextTable.IsLimitedInSize
  static constexpr std::uint32_t kMost = 1u << kIndexBits;

  // `most`: upper limit of numbers open at a time, at most kMost.
  explicit ContextTable(const SipKey& key, std::uint32_t most = kMost);

  // Opens an unused number; 0 if all are taken. find() returns null for it until set(). Throws
  // std::bad_alloc and then changes nothing.
  std::uint32_t open();
  // `number` must be open.
  void set(std::uint32_t number, Context* context);
  // find() no longer finds the number, and it is not reused before close().
  void rest(std::uint32_t number) noexcept;
  // find() no longer finds the number, and it may be reused.
  void close(std::uint32_t number) noexcept;

  // For any 24 bits; null if no queue pair has that number.
  Context* find(std::uint32_t number) {
    if (number == last_number_) [[likely]]
      return last_;
    return find_other(number);
  }
  // The context in each place, null if there is none. A context keeps its place while it lives.
  std::size_t places() const { return entries_.size(); }
  const Context* in(std::size_t place) const { return entries_[place].context; }

  // Resting numbers included.
  std::size_t size() const { return size_; }
  std::size_t resting() const { return resting_; }

  // Calls f(Context&) for each context that is set.
  template <class F>
  void for_each(F&& f) const {
    for (const Entry& e : entries_) {
      if (e.context != nullptr) f(*e.context);
    }
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kGenerations = 1u << (24 - kIndexBits);

  struct Entry {
    Context* context = nullptr;
    std::uint32_t next_free = kNone;
    std::uint8_t generation = 0;
    bool open = false, resting = false;
  };
  std::uint32_t number_of(std::uint32_t index) const {
    const std::uint32_t inside = index | std::uint32_t{entries_[index].generation} << kIndexBits;
    return form_.outside(inside ^ salt_);
  }
  // kNone if no open entry has that number.
  std::uint32_t index_of(std::uint32_t number) const;
  Context* find_other(std::uint32_t number);
  void forget_last(std::uint32_t number);

  StagForm form_;
  // 24 bits; the permutation maps 0 to itself, so this hides the first index
  std::uint32_t salt_;
  std::vector<Entry> entries_;
  std::uint32_t most_;
  std::uint32_t size_ = 0, resting_ = 0, free_ = 0;
  // FIFO: the entry that has been free longest is reused first
  std::uint32_t first_free_ = kNone, last_free_ = kNone;
  std::uint32_t last_number_ = kNone;
  Context* last_ = nullptr;
};

}  // namespace urnic::roce
