#include "ib/placement.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/guarded.h"
#include "verbs/sge_walk.h"

namespace urnic::ib {
namespace {

constexpr std::size_t kTail = 8;

// Calls act(bytes of the piece, number of bytes before it) for each piece of [offset, offset + n).
// False if one cannot be written, or if act() returns false.
template <class Act>
bool for_pieces(const verbs::MemoryTable& memory, std::span<const verbs::Sge> sges, verbs::PdId pd,
                std::uint64_t offset, std::uint64_t n, Act&& act) {
  std::uint64_t done = 0;
  return verbs::for_each_piece(sges, offset, n,
                               [&](const verbs::Sge& sge, std::uint64_t at, std::uint64_t here) {
                                 const auto bytes = verbs::resolve_sge(memory, sge, pd, true);
                                 if (bytes.data() == nullptr) return false;
                                 const std::uint64_t before = done;
                                 done += here;
                                 return act(bytes.subspan(at, here), before);
                               });
}

// Stores the last bytes after the rest.
inline void copy_in_order(std::uint8_t* to, ByteView payload) {
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

}  // namespace

std::uint8_t* address_in(const verbs::MemoryTable& memory, std::uint32_t key,
                         std::uint64_t address) {
  const verbs::Region* r = memory.find(key);
  return r->base + (address - r->address);
}

bool place(std::uint8_t* to, ByteView payload) {
  return guarded(to, payload.size(), [=] { copy_in_order(to, payload); });
}

bool receive_holds(const verbs::MemoryTable& memory, std::span<const verbs::Sge> sges,
                   verbs::PdId pd, std::uint64_t offset, std::uint64_t n) {
  return for_pieces(memory, sges, pd, offset, n,
                    [](std::span<std::uint8_t>, std::uint64_t) { return true; });
}

bool place_in_receive(const verbs::MemoryTable& memory, std::span<const verbs::Sge> sges,
                      verbs::PdId pd, std::uint64_t offset, ByteView payload) {
  return for_pieces(memory, sges, pd, offset, payload.size(),
                    [payload](std::span<std::uint8_t> to, std::uint64_t before) {
                      return place(to.data(),
                                   payload.subspan(static_cast<std::size_t>(before), to.size()));
                    });
}

bool fetch_add(std::uint8_t* at, std::uint64_t add, std::uint64_t* original) {
  auto* const number = reinterpret_cast<std::uint64_t*>(at);
  return guarded(at, sizeof *number,
                 [=] { *original = __atomic_fetch_add(number, add, __ATOMIC_SEQ_CST); });
}

bool compare_swap(std::uint8_t* at, std::uint64_t compare, std::uint64_t swap,
                  std::uint64_t* original) {
  auto* const number = reinterpret_cast<std::uint64_t*>(at);
  return guarded(at, sizeof *number, [=] {
    std::uint64_t expected = compare;
    __atomic_compare_exchange_n(number, &expected, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    *original = expected;
  });
}

bool carry_out_atomic(std::uint8_t* at, const PacketHeader& request, std::uint64_t* original) {
  const AtomicEth& a = request.atomic;
  return request.bth.opcode.operation() == Operation::FetchAdd
             ? fetch_add(at, a.swap_or_add, original)
             : compare_swap(at, a.compare, a.swap_or_add, original);
}

}  // namespace urnic::ib
