// A program that polls all the time acknowledges a request by its reply (E-7).
#include <algorithm>
#include <atomic>

#include "tests/support/wired_ends.h"

namespace urnic {
namespace {

class Carried : public test::WiredEnds {
 protected:
  // An eight-octet Write to the other end's memory, which polls until it sees it.
  void write(End& from, const MemoryRegion& to, End& at, std::uint64_t n) {
    SendRequest r;
    const Sge sge{reinterpret_cast<std::uintptr_t>(&n), sizeof n, 0};
    r.opcode = Opcode::write;
    r.flags = send_inline | (n % 64 == 0 ? send_signaled : SendFlags(0));
    r.sges = {&sge, 1};
    r.remote_address = to.remote_address();
    r.rkey = to.rkey();
    ASSERT_TRUE(from.qp.post_send(r).ok());
    const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at.memory.data()));
    for (std::uint64_t i = 0; word.load(std::memory_order_acquire) != n; ++i) {
      ASSERT_LT(i, std::uint64_t{1} << 32);
      Completion done[1];
      from.cq.poll(done);
      at.cq.poll(done);
    }
  }
  std::uint64_t segments() {
    return server.qp.stats().iwarp.tcp.segments_out + client.qp.stats().iwarp.tcp.segments_out;
  }
};

// The time in between is the scheduler's, so the best of many rounds is looked at. An ACK of its
// own for each Write would make it four segments a round in all of them. proves: E-7
TEST_P(Carried, E7_OneFrameEachWayIsAllThereIs) {
  const MemoryRegion at_server = server.add(test::kAllRights),
                     at_client = client.add(test::kAllRights);
  constexpr unsigned kRounds = 10;
  std::uint64_t best = ~std::uint64_t{0}, n = 0;
  for (int chunk = 0; chunk < 20000 && best > 2 * kRounds; ++chunk) {
    const std::uint64_t before = segments();
    for (unsigned i = 0; i < kRounds; ++i) {
      ++n;
      write(client, at_server, server, n);
      write(server, at_client, client, n);
      if (HasFatalFailure()) return;
    }
    best = std::min(best, segments() - before);
  }
  EXPECT_EQ(best, 2 * kRounds);
}

INSTANTIATE_TEST_SUITE_P(Wires, Carried, ::testing::Values("memif"),
                         [](const auto& wire) { return std::string(wire.param); });

}  // namespace
}  // namespace urnic
