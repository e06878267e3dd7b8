// A hash table for demultiplexing: open addressing with linear probing. Erasure shifts entries
// back, so there are no tombstones, and a lookup costs the same after years of connections.
//
// `Hash` maps a key to 64 bits; if a peer chooses the keys it must be keyed (flow_hash.h). The
// table is at most three quarters full. Growing allocates; if there is no memory it throws and
// leaves the table unchanged. Finding and erasing never throw. Pointers to values are valid until
// the next insert or erase. Not thread safe.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace urnic {

template <class Key, class Value, class Hash>
class HashMap {
  static_assert(std::is_nothrow_move_constructible_v<Key> &&
                    std::is_nothrow_move_constructible_v<Value>,
                "elements are moved when the table grows and when others are erased");

 public:
  struct Insertion {
    Value* value;   // the value in the table
    bool inserted;  // false: the key existed; its value is unchanged
  };

  explicit HashMap(Hash hash = Hash()) : hash_(std::move(hash)) {}
  ~HashMap() { release(); }
  HashMap(HashMap&& o) noexcept
      : hash_(std::move(o.hash_)),
        tags_(std::exchange(o.tags_, nullptr)),
        slots_(std::exchange(o.slots_, nullptr)),
        capacity_(std::exchange(o.capacity_, 0)),
        size_(std::exchange(o.size_, 0)) {}
  HashMap(const HashMap&) = delete;
  HashMap& operator=(const HashMap&) = delete;
  HashMap& operator=(HashMap&&) = delete;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t capacity() const { return capacity_; }

  // For a burst: hash all keys, prefetch all slots, then look up.
  std::uint64_t hash_of(const Key& key) const { return hash_(key); }
  void prefetch(std::uint64_t hash) const {
    if (capacity_ == 0) return;
    __builtin_prefetch(&tags_[home(hash)]);
    __builtin_prefetch(&slots_[home(hash)]);
  }

  Value* find(const Key& key) { return find(key, hash_(key)); }
  const Value* find(const Key& key) const { return const_cast<HashMap*>(this)->find(key); }
  Value* find(const Key& key, std::uint64_t hash) {
    const std::size_t i = index_of(key, hash);
    return i == kNone ? nullptr : &slots_[i].value;
  }
  bool contains(const Key& key) const { return find(key) != nullptr; }

  Insertion insert(Key key, Value value) {
    const std::uint64_t hash = hash_(key);
    if (const std::size_t i = index_of(key, hash); i != kNone) return {&slots_[i].value, false};
    if ((size_ + 1) * 4 > capacity_ * 3) rehash(capacity_ == 0 ? kFirstCapacity : capacity_ * 2);
    const std::size_t i = place(hash, std::move(key), std::move(value));
    ++size_;
    return {&slots_[i].value, true};
  }

  // Returns true if the key existed.
  bool erase(const Key& key) {
    std::size_t hole = index_of(key, hash_(key));
    if (hole == kNone) return false;
    slots_[hole].~Slot();
    --size_;
    // Shift back every following entry that is not in its home slot, so that no chain has a gap.
    for (std::size_t i = next(hole); tags_[i] != kEmpty; i = next(i)) {
      const std::size_t at_home = home_of_tag(tags_[i]);
      const std::size_t from_home = (i - at_home) & (capacity_ - 1);
      const std::size_t from_hole = (i - hole) & (capacity_ - 1);
      if (from_home < from_hole) continue;
      ::new (static_cast<void*>(&slots_[hole])) Slot(std::move(slots_[i]));
      slots_[i].~Slot();
      tags_[hole] = tags_[i];
      hole = i;
    }
    tags_[hole] = kEmpty;
    return true;
  }

  // Calls f(const Key&, Value&) for every element, in no particular order; f must not insert or
  // erase.
  template <class F>
  void for_each(F&& f) {
    for (std::size_t i = 0; i < capacity_; ++i) {
      if (tags_[i] != kEmpty) f(std::as_const(slots_[i].key), slots_[i].value);
    }
  }

  // Removes all elements; keeps the memory.
  void clear() {
    for (std::size_t i = 0; i < capacity_; ++i) {
      if (tags_[i] != kEmpty) slots_[i].~Slot();
      tags_[i] = kEmpty;
    }
    size_ = 0;
  }
  // Makes room for n elements without growing.
  void reserve(std::size_t n) {
    const std::size_t want = std::bit_ceil(n + n / 3 + 1);
    if (want > capacity_) rehash(want < kFirstCapacity ? kFirstCapacity : want);
  }
  // Frees unused memory; all of it if the table is empty.
  void shrink_to_fit() {
    if (size_ == 0) {
      release();
      return;
    }
    std::size_t want = std::bit_ceil(size_ + size_ / 3 + 1);
    if (want < kFirstCapacity) want = kFirstCapacity;
    if (want < capacity_) rehash(want);
  }

 private:
  struct Slot {
    Key key;
    Value value;
  };
  static constexpr std::size_t kFirstCapacity = 8;
  static constexpr std::size_t kNone = ~std::size_t{0};
  static constexpr std::uint32_t kEmpty = 0;

  // The upper half of the spread hash with its lowest bit set, so that no tag is kEmpty. Its upper
  // bits select the home slot; the whole tag is compared before the key. At most 2^31 slots.
  static std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>((hash * 0x9e3779b97f4a7c15ULL) >> 32) | 1;
  }
  std::size_t home_of_tag(std::uint32_t tag) const {
    return tag >> (32 - std::countr_zero(capacity_));
  }
  std::size_t home(std::uint64_t hash) const { return home_of_tag(tag_of(hash)); }
  std::size_t next(std::size_t i) const { return (i + 1) & (capacity_ - 1); }

  std::size_t index_of(const Key& key, std::uint64_t hash) const {
    if (size_ == 0) return kNone;
    const std::uint32_t tag = tag_of(hash);
    for (std::size_t i = home_of_tag(tag);; i = next(i)) {
      if (tags_[i] == kEmpty) return kNone;
      if (tags_[i] == tag && slots_[i].key == key) return i;
    }
  }

  // Puts it into the first free slot of its chain; there must be one.
  std::size_t place(std::uint64_t hash, Key&& key, Value&& value) {
    return place_tagged(tag_of(hash), Slot{std::move(key), std::move(value)});
  }
  std::size_t place_tagged(std::uint32_t tag, Slot&& slot) {
    std::size_t i = home_of_tag(tag);
    while (tags_[i] != kEmpty) i = next(i);
    ::new (static_cast<void*>(&slots_[i])) Slot(std::move(slot));
    tags_[i] = tag;
    return i;
  }

  void rehash(std::size_t capacity) {
    assert(std::has_single_bit(capacity) && capacity <= (std::size_t{1} << 31));
    std::uint32_t* const tags = std::allocator<std::uint32_t>().allocate(capacity);
    Slot* slots = nullptr;
    try {
      slots = std::allocator<Slot>().allocate(capacity);
    } catch (const std::bad_alloc&) {  // leave everything unchanged
      std::allocator<std::uint32_t>().deallocate(tags, capacity);
      throw;
    }
    std::uninitialized_fill_n(tags, capacity, kEmpty);
    std::uint32_t* const old_tags = std::exchange(tags_, tags);
    Slot* const old_slots = std::exchange(slots_, slots);
    const std::size_t old_capacity = std::exchange(capacity_, capacity);
    for (std::size_t i = 0; i < old_capacity; ++i) {
      if (old_tags[i] == kEmpty) continue;
      place_tagged(old_tags[i], std::move(old_slots[i]));
      old_slots[i].~Slot();
    }
    free_arrays(old_tags, old_slots, old_capacity);
  }

  void release() {
    clear();
    free_arrays(tags_, slots_, capacity_);
    tags_ = nullptr;
    slots_ = nullptr;
    capacity_ = 0;
  }
  static void free_arrays(std::uint32_t* tags, Slot* slots, std::size_t capacity) {
    if (capacity == 0) return;
    std::allocator<std::uint32_t>().deallocate(tags, capacity);
    std::allocator<Slot>().deallocate(slots, capacity);
  }

  [[no_unique_address]] Hash hash_;
  std::uint32_t* tags_ = nullptr;
  Slot* slots_ = nullptr;
  std::size_t capacity_ = 0;  // 0 or a power of two, at least kFirstCapacity
  std::size_t size_ = 0;
};

}  // namespace urnic
