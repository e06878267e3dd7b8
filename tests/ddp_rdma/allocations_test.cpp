#include "ddp_rdma/allocations.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

namespace {

std::atomic<std::uint64_t> count{0};

void* counted(void* p) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(std::size_t n) {
  return counted(std::malloc(n != 0 ? n : 1));
}
void* operator new(std::size_t n, std::align_val_t align) {
  const auto a = static_cast<std::size_t>(align);
  return counted(std::aligned_alloc(a, (n + a - 1) / a * a));
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

namespace urnic::ddp::test {

std::uint64_t allocations() {
  return count.load(std::memory_order_relaxed);
}

TEST(Allocations, AreCounted) {
  const std::uint64_t before = allocations();
  auto p = std::make_unique<std::uint64_t>(before);
  EXPECT_EQ(allocations(), *p + 1);
}

}  // namespace urnic::ddp::test
