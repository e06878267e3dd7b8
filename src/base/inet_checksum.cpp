#include "base/inet_checksum.h"

#include <atomic>

#include "base/fused_kernels.h"

namespace urnic {
namespace {

using Sum = std::uint32_t (*)(ByteView);

std::uint32_t resolve_and_run(ByteView bytes);

// See crc32c.cpp.
constinit std::atomic<Sum> chosen{resolve_and_run};

std::uint32_t resolve_and_run(ByteView bytes) {
  const Sum best = fused_best().sum;
  chosen.store(best, std::memory_order_relaxed);
  return best(bytes);
}

}  // namespace

std::uint32_t inet_sum(ByteView bytes) {
  return chosen.load(std::memory_order_relaxed)(bytes);
}

std::uint32_t inet_sum_portable(ByteView bytes) {
  return kFusedPortable.sum(bytes);
}

}  // namespace urnic
