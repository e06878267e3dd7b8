#include "tests/support/allocator.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace urnic::testing {
namespace {

std::atomic<std::uint64_t> count{0}, bytes{0};

struct Plan {
  bool on = false;
  std::uint64_t after = 0, many = 0, asked = 0, failed = 0;
};
thread_local Plan plan;

bool fails() {
  count.fetch_add(1, std::memory_order_relaxed);
  if (!plan.on) return false;
  const std::uint64_t n = plan.asked++;
  if (n < plan.after || n - plan.after >= plan.many) return false;
  ++plan.failed;
  return true;
}

}  // namespace

std::uint64_t allocations() {
  return count.load(std::memory_order_relaxed);
}

std::uint64_t allocated_bytes() {
  return bytes.load(std::memory_order_relaxed);
}

NoMemory::NoMemory(std::uint64_t after, std::uint64_t many) {
  plan = {true, after, many, 0, 0};
}
NoMemory::~NoMemory() {
  plan.on = false;
}
void NoMemory::pause() {
  plan.on = false;
}
void NoMemory::resume() {
  plan.on = true;
}
std::uint64_t NoMemory::asked() const {
  return plan.asked;
}
std::uint64_t NoMemory::failed() const {
  return plan.failed;
}

static void* allocate_or_null(std::size_t n, std::size_t align) {
  if (fails()) return nullptr;
  void* const p = align == 0 ? std::malloc(n != 0 ? n : 1)
                             : std::aligned_alloc(align, (n + align - 1) / align * align);
  bytes.fetch_add(malloc_usable_size(p), std::memory_order_relaxed);
  return p;
}

static void release(void* p) {
  bytes.fetch_sub(malloc_usable_size(p), std::memory_order_relaxed);
  std::free(p);
}

// Like operator new: never null.
static void* allocate(std::size_t n, std::size_t align) {
  void* p = allocate_or_null(n, align);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace urnic::testing

// All forms, because they must not be mixed with a sanitizer's.
void* operator new(std::size_t n) {
  return urnic::testing::allocate(n, 0);
}
void* operator new[](std::size_t n) {
  return urnic::testing::allocate(n, 0);
}
void* operator new(std::size_t n, std::align_val_t align) {
  return urnic::testing::allocate(n, static_cast<std::size_t>(align));
}
void* operator new[](std::size_t n, std::align_val_t align) {
  return urnic::testing::allocate(n, static_cast<std::size_t>(align));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return urnic::testing::allocate_or_null(n, 0);
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return urnic::testing::allocate_or_null(n, 0);
}
void* operator new(std::size_t n, std::align_val_t align, const std::nothrow_t&) noexcept {
  return urnic::testing::allocate_or_null(n, static_cast<std::size_t>(align));
}
void* operator new[](std::size_t n, std::align_val_t align, const std::nothrow_t&) noexcept {
  return urnic::testing::allocate_or_null(n, static_cast<std::size_t>(align));
}
void operator delete(void* p) noexcept {
  urnic::testing::release(p);
}
void operator delete(void* p, std::size_t) noexcept {
  urnic::testing::release(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  urnic::testing::release(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  urnic::testing::release(p);
}
void operator delete(void* p, const std::nothrow_t&) noexcept {
  urnic::testing::release(p);
}
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept {
  urnic::testing::release(p);
}
void operator delete[](void* p) noexcept {
  urnic::testing::release(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  urnic::testing::release(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  urnic::testing::release(p);
}
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  urnic::testing::release(p);
}
void operator delete[](void* p, const std::nothrow_t&) noexcept {
  urnic::testing::release(p);
}
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept {
  urnic::testing::release(p);
}
