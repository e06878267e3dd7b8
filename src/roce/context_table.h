// Queue pairs by their number. A number is an index and a generation of its entry behind a keyed
// permutation of the 24 bits: found without a hash, hard to guess, and that of a queue pair which
// has gone finds nobody until its entry has been used 63 times more.
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
  // beyond: creating fails with no_memory; test: ContextTable.ThereAreSoManyAndThenNoMore
  static constexpr std::uint32_t kMost = 1u << kIndexBits;

  // `most`: no more at a time, up to kMost.
  explicit ContextTable(const SipKey& key, std::uint32_t most = kMost);

  // A number that nobody has: 0 when all are taken. Throws std::bad_alloc, and then everything is
  // as it was. find() answers null until set().
  std::uint32_t open();
  // `number` has been opened.
  void set(std::uint32_t number, Context* context);
  // The number finds nobody any more, and is nobody else's before it is closed.
  void rest(std::uint32_t number) noexcept;
  // The number finds nobody any more, and somebody else may have it.
  void close(std::uint32_t number) noexcept;

  // Of any 24 bits; null when it is nobody's.
  Context* find(std::uint32_t number) {
    if (number == last_number_) [[likely]]
      return last_;
    return find_other(number);
  }
  // What is in each of so many places; null: nothing. Who stays keeps its place.
  std::size_t places() const { return entries_.size(); }
  const Context* in(std::size_t place) const { return entries_[place].context; }

  // Those that rest included.
  std::size_t size() const { return size_; }
  std::size_t resting() const { return resting_; }

  // f(Context&) for each that is set.
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
  // kNone: not of an entry that is open.
  std::uint32_t index_of(std::uint32_t number) const;
  Context* find_other(std::uint32_t number);
  void forget_last(std::uint32_t number);

  StagForm form_;
  std::uint32_t salt_;  // 24 bits: the permutation leaves 0 where it is, and nobody begins there
  std::vector<Entry> entries_;
  std::uint32_t most_;
  std::uint32_t size_ = 0, resting_ = 0, free_ = 0;
  std::uint32_t first_free_ = kNone, last_free_ = kNone;  // the longest free first
  std::uint32_t last_number_ = kNone;
  Context* last_ = nullptr;
};

}  // namespace urnic::roce
