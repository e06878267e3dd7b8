// A FIFO with access by position.
//
//   Ring<T>         grows by doubling; owns no memory before the first push
//   FixedRing<T,N>  stores N elements inside the object; rejects further ones
//
// Position 0 is the oldest element. Capacities are powers of two, so a mask converts a position to
// a slot. Not thread safe. An element stays at its address until it is popped, except that growing
// and shrinking a Ring moves all elements.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace urnic {

template <class T>
class Ring {
  static_assert(std::is_nothrow_move_constructible_v<T>, "growing must not fail half way");

 public:
  Ring() = default;
  ~Ring() { release(); }
  Ring(Ring&& o) noexcept
      : slots_(std::exchange(o.slots_, nullptr)),
        capacity_(std::exchange(o.capacity_, 0)),
        head_(std::exchange(o.head_, 0)),
        size_(std::exchange(o.size_, 0)) {}
  Ring& operator=(Ring&& o) noexcept {
    if (this != &o) {
      release();
      slots_ = std::exchange(o.slots_, nullptr);
      capacity_ = std::exchange(o.capacity_, 0);
      head_ = std::exchange(o.head_, 0);
      size_ = std::exchange(o.size_, 0);
    }
    return *this;
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }

  T& operator[](std::size_t i) {
    assert(i < size_);
    return slots_[slot(i)];
  }
  const T& operator[](std::size_t i) const {
    assert(i < size_);
    return slots_[slot(i)];
  }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  // `value` may be an element of this ring.
  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) {
      // Construct it first: an argument may refer to an element that growing moves.
      T made(std::forward<Args>(args)...);
      resize_to(capacity_ == 0 ? kFirstCapacity : capacity_ * 2);
      return construct_back(std::move(made));
    }
    return construct_back(std::forward<Args>(args)...);
  }

  void pop_front() {
    assert(size_ > 0);
    slots_[head_].~T();
    head_ = (head_ + 1) & (capacity_ - 1);
    --size_;
  }
  // Removes the n oldest elements; n <= size().
  void pop_front(std::size_t n) {
    assert(n <= size_);
    for (; n != 0; --n) pop_front();
  }
  void pop_back() {
    assert(size_ > 0);
    slots_[slot(size_ - 1)].~T();
    --size_;
  }

  // Removes all elements; keeps the memory.
  void clear() {
    while (size_ != 0) pop_front();
    head_ = 0;
  }
  void reserve(std::size_t n) {
    if (n > capacity_) resize_to(std::bit_ceil(n < kFirstCapacity ? kFirstCapacity : n));
  }
  // Shrinks to the smallest sufficient capacity; frees all memory if the ring is empty.
  void shrink_to_fit() {
    if (size_ == 0) {
      release();
    } else if (const std::size_t want = std::bit_ceil(size_); want < capacity_) {
      resize_to(want);
    }
  }

 private:
  static constexpr std::size_t kFirstCapacity = 4;

  std::size_t slot(std::size_t i) const { return (head_ + i) & (capacity_ - 1); }

  template <class... Args>
  T& construct_back(Args&&... args) {
    T* p = ::new (static_cast<void*>(slots_ + slot(size_))) T(std::forward<Args>(args)...);
    ++size_;
    return *p;
  }

  void resize_to(std::size_t capacity) {
    T* slots = std::allocator<T>().allocate(capacity);
    for (std::size_t i = 0; i < size_; ++i) {
      T& from = slots_[slot(i)];
      ::new (static_cast<void*>(slots + i)) T(std::move(from));
      from.~T();  // NOLINT(bugprone-use-after-move): the moved-from object
    }
    if (slots_ != nullptr) std::allocator<T>().deallocate(slots_, capacity_);
    slots_ = slots;
    capacity_ = capacity;
    head_ = 0;
  }

  void release() {
    clear();
    if (slots_ != nullptr) std::allocator<T>().deallocate(slots_, capacity_);
    slots_ = nullptr;
    capacity_ = 0;
  }

  T* slots_ = nullptr;
  std::size_t capacity_ = 0;  // 0 or a power of two
  std::size_t head_ = 0;      // slot of the oldest element
  std::size_t size_ = 0;
};

// N > 0 need not be a power of two; the storage is rounded up. Elements are default-constructed at
// the beginning and assigned later, so use it only for cheap types.
template <class T, std::size_t N>
class FixedRing {
  static_assert(N > 0);

 public:
  static constexpr std::size_t capacity() { return N; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == N; }
  std::size_t size() const { return size_; }

  T& operator[](std::size_t i) {
    assert(i < size_);
    return slots_[(head_ + i) & kMask];
  }
  const T& operator[](std::size_t i) const {
    assert(i < size_);
    return slots_[(head_ + i) & kMask];
  }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  // Returns false without a change if the ring is full.
  bool push_back(T value) {
    if (full()) return false;
    slots_[(head_ + size_) & kMask] = std::move(value);
    ++size_;
    return true;
  }
  // Resets the slot, so that resources of the element are freed now.
  void pop_front() {
    assert(size_ > 0);
    if constexpr (!std::is_trivially_destructible_v<T>) slots_[head_] = T();
    head_ = (head_ + 1) & kMask;
    --size_;
  }
  void clear() {
    while (size_ != 0) pop_front();
  }

 private:
  static constexpr std::size_t kSlots = std::bit_ceil(N);
  static constexpr std::size_t kMask = kSlots - 1;
  std::array<T, kSlots> slots_{};
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace urnic
