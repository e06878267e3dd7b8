// Immediate Data (RFC 7306, 6) over the kernel's TCP, through the API.
#include <gtest/gtest.h>

#include <cstring>

#include "iwarp/stream_ends.h"

namespace urnic {
namespace {

constexpr std::uint64_t kData = 0x1122334455667788;

// proves: E-53
TEST(ImmediateOverKernelTcp, TheImmediateDataIsInTheCompletion) {
  using namespace stream_test;
  Device server = open(), client = open();
  End a(client), b(server);
  join(server, b, a);
  if (HasFailure()) return;
  a.fill(3);
  std::uint64_t id = 0;
  for (const std::uint32_t n : {0u, 13u, 4096u, 200003u}) {
    for (const Opcode op : {Opcode::write_with_immediate, Opcode::send_with_immediate}) {
      std::memset(b.memory.data(), 0, b.memory.size());
      const auto into = b.sge(0, 300000), from = a.sge(1000, n);
      ASSERT_TRUE(b.qp.post_receive({++id, {&into, 1}}).ok());
      SendRequest r = a.towards(op, from, b, 0, id);
      r.immediate = kData + id;
      ASSERT_TRUE(a.qp.post_send(r).ok());
      const Completion sent = a.wait(), got = b.wait();
      EXPECT_EQ(sent.status, WcStatus::success);
      EXPECT_EQ(sent.opcode, op);
      EXPECT_EQ(got.wr_id, id);
      ASSERT_EQ(got.status, WcStatus::success);
      EXPECT_EQ(got.opcode, Opcode::receive);
      EXPECT_TRUE(got.with_immediate);
      EXPECT_EQ(got.immediate, kData + id);
      EXPECT_EQ(got.byte_len, op == Opcode::send_with_immediate ? n : 0);
      EXPECT_EQ(std::memcmp(b.memory.data(), a.memory.data() + 1000, n), 0);
    }
  }
}

}  // namespace
}  // namespace urnic
