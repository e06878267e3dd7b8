#include "ib/placement.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace urnic::ib {
namespace {

constexpr std::size_t kTail = 8;

// For each piece of [offset, offset + n): act(its octets, how many before it). False when one
// cannot be written, or act() says so.
template <class Act>
bool for_pieces(const verbs::MemoryTable& memory, std::span<const verbs::Sge> sges, verbs::PdId pd,
                std::uint64_t offset, std::uint64_t n, Act&& act) {
  std::uint64_t done = 0;
  for (const verbs::Sge& sge : sges) {
    if (done == n) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::uint64_t here = std::min<std::uint64_t>(sge.length - offset, n - done);
    const auto octets = verbs::resolve_sge(memory, sge, pd, true);
    if (octets.data() == nullptr) return false;
    act(octets.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(here)), done);
    done += here;
    offset = 0;
  }
  return done == n;
}

}  // namespace

std::uint8_t* address_in(const verbs::MemoryTable& memory, std::uint32_t key,
                         std::uint64_t address) {
  const verbs::Region* r = memory.find(key);
  return r->base + (address - r->address);
}

void place(std::uint8_t* to, ByteView payload) {
  const std::size_t n = payload.size();
  const std::size_t tail = std::min(n, kTail);
  std::memcpy(to, payload.data(), n - tail);
  std::atomic_thread_fence(std::memory_order_release);
  if (tail == kTail) {
    std::memcpy(to + n - kTail, payload.data() + n - kTail, kTail);
    return;
  }
  for (std::size_t i = 0; i < tail; ++i) {
    to[i] = payload[i];
    std::atomic_thread_fence(std::memory_order_release);
  }
}

bool receive_holds(const verbs::MemoryTable& memory, std::span<const verbs::Sge> sges,
                   verbs::PdId pd, std::uint64_t offset, std::uint64_t n) {
  return for_pieces(memory, sges, pd, offset, n, [](std::span<std::uint8_t>, std::uint64_t) {});
}

void place_in_receive(const verbs::MemoryTable& memory, std::span<const verbs::Sge> sges,
                      verbs::PdId pd, std::uint64_t offset, ByteView payload) {
  for_pieces(memory, sges, pd, offset, payload.size(),
             [payload](std::span<std::uint8_t> to, std::uint64_t before) {
               place(to.data(), payload.subspan(static_cast<std::size_t>(before), to.size()));
             });
}

std::uint64_t fetch_add(std::uint8_t* at, std::uint64_t add) {
  return __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(at), add, __ATOMIC_SEQ_CST);
}

std::uint64_t compare_swap(std::uint8_t* at, std::uint64_t compare, std::uint64_t swap) {
  __atomic_compare_exchange_n(reinterpret_cast<std::uint64_t*>(at), &compare, swap, false,
                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return compare;
}

}  // namespace urnic::ib
