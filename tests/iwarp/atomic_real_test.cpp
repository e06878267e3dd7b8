// Atomic operations (RFC 7306, 5) over the kernel's TCP, through the API.
#include <gtest/gtest.h>

#include <cstring>

#include "iwarp/stream_ends.h"

namespace urnic {
namespace {

// proves: E-53
TEST(AtomicOverKernelTcp, TheOldValueIsReturned) {
  using namespace stream_test;
  Device server = open(), client = open();
  End a(client), b(server);
  join(server, b, a);
  if (HasFailure()) return;
  alignas(8) std::uint64_t word = 41;
  auto target =
      server.register_memory(b.pd, &word, sizeof word, access_local_write | access_remote_atomic);
  ASSERT_TRUE(target.ok());
  EXPECT_FALSE(server.register_memory(b.pd, &word, sizeof word, access_remote_atomic).ok());
  const auto into = a.sge(16, 8);
  const auto run = [&](Opcode op, std::uint64_t data, std::uint64_t compare) {
    SendRequest r = a.request(op, into, 5);
    r.remote_address = target->remote_address();
    r.rkey = target->rkey();
    r.atomic.data = data;
    r.atomic.compare = compare;
    EXPECT_TRUE(a.qp.post_send(r).ok());
    const Completion c = a.wait();
    EXPECT_EQ(c.status, WcStatus::success);
    EXPECT_EQ(c.opcode, op);
    std::uint64_t original;
    std::memcpy(&original, a.memory.data() + 16, 8);
    return original;
  };
  EXPECT_EQ(run(Opcode::fetch_add, 1, 0), 41u);
  EXPECT_EQ(run(Opcode::compare_swap, 50, 1), 42u);
  EXPECT_EQ(run(Opcode::compare_swap, 50, 42), 42u);
  EXPECT_EQ(run(Opcode::swap, 60, 0), 50u);
  b.qp.stats();
  EXPECT_EQ(word, 60u);
}

}  // namespace
}  // namespace urnic
