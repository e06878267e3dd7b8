#include "base/fused.h"

#include <array>
#include <atomic>

#include "base/cpu.h"
#include "base/fused_kernels.h"

namespace urnic {
namespace {

struct Available {
  std::array<const FusedKernelSet*, 5> sets{};
  std::size_t count = 0;
};

Available find_available() {
  Available a;
  [[maybe_unused]] const CpuFeatures& cpu = cpu_features();
  a.sets[a.count++] = &kFusedPortable;
#if defined(__x86_64__)
  if (cpu.sse42) a.sets[a.count++] = &kFusedSse42;
  if (cpu.avx2) a.sets[a.count++] = &kFusedAvx2;
  if (cpu.avx512) a.sets[a.count++] = &kFusedAvx512;
  if (cpu.vpclmulqdq) a.sets[a.count++] = &kFusedVpclmul;
#elif defined(__aarch64__)
  if (cpu.armv8_crc) a.sets[a.count++] = &kFusedArm64;
#endif
  return a;
}

// Slowest first, because each set needs more CPU features than the previous one.
const Available& available() {
  static const Available a = find_available();
  return a;
}

FusedSums resolve_crc_sum(ByteView bytes, std::uint32_t crc);
FusedSums resolve_copy_crc_sum(std::uint8_t* dst, ByteView bytes, std::uint32_t crc);
std::uint32_t resolve_copy_sum(std::uint8_t* dst, ByteView bytes);

// One pointer per function instead of one table: a call is one load and one jump. crc32c.cpp
// explains why this is safe at any time and from any thread.
constinit std::atomic<decltype(FusedKernelSet::crc_sum)> chosen_crc_sum{resolve_crc_sum};
constinit std::atomic<decltype(FusedKernelSet::copy_crc_sum)> chosen_copy_crc_sum{
    resolve_copy_crc_sum};
constinit std::atomic<decltype(FusedKernelSet::copy_sum)> chosen_copy_sum{resolve_copy_sum};

FusedSums resolve_crc_sum(ByteView bytes, std::uint32_t crc) {
  const auto best = fused_best().crc_sum;
  chosen_crc_sum.store(best, std::memory_order_relaxed);
  return best(bytes, crc);
}
FusedSums resolve_copy_crc_sum(std::uint8_t* dst, ByteView bytes, std::uint32_t crc) {
  const auto best = fused_best().copy_crc_sum;
  chosen_copy_crc_sum.store(best, std::memory_order_relaxed);
  return best(dst, bytes, crc);
}
std::uint32_t resolve_copy_sum(std::uint8_t* dst, ByteView bytes) {
  const auto best = fused_best().copy_sum;
  chosen_copy_sum.store(best, std::memory_order_relaxed);
  return best(dst, bytes);
}

}  // namespace

const FusedKernelSet& fused_best() {
  const Available& a = available();
  return *a.sets[a.count - 1];
}

FusedSums fused_crc_sum(ByteView bytes, std::uint32_t crc) {
  return chosen_crc_sum.load(std::memory_order_relaxed)(bytes, crc);
}
FusedSums fused_copy_crc_sum(std::uint8_t* dst, ByteView bytes, std::uint32_t crc) {
  return chosen_copy_crc_sum.load(std::memory_order_relaxed)(dst, bytes, crc);
}
std::uint32_t fused_copy_sum(std::uint8_t* dst, ByteView bytes) {
  return chosen_copy_sum.load(std::memory_order_relaxed)(dst, bytes);
}

std::string_view fused_kernel_name() {
  return fused_best().name;
}

std::size_t fused_kernel_count() {
  return available().count;
}

FusedKernel fused_kernel(std::size_t index) {
  const FusedKernelSet& s = *available().sets[index];
  return {s.name, s.crc_sum, s.copy_crc_sum};
}

}  // namespace urnic
