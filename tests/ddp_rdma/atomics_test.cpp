#include "ddp_rdma/atomics.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/rng.h"
#include "ddp_rdma/segments.h"

namespace urnic::ddp::test {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

AtomicRequest operation(AtomicCode code, std::uint64_t data, std::uint64_t mask,
                        std::uint64_t compare = 0, std::uint64_t compare_mask = kAll) {
  AtomicRequest a;
  a.code = code;
  a.data = data;
  a.mask = mask;
  a.compare = compare;
  a.compare_mask = compare_mask;
  return a;
}

// proves: E-53
TEST(Atomics, SwapsStoreAndCompareOnlyTheBitsInTheirMasks) {
  EXPECT_EQ(result_of(operation(AtomicCode::CmpSwap, 7, kAll, 0, 0), 3), 7u);
  EXPECT_EQ(result_of(operation(AtomicCode::CmpSwap, 0x1234, 0x00ff, 0, 0), 0xabcd), 0xab34u);
  EXPECT_EQ(result_of(operation(AtomicCode::CmpSwap, 7, kAll, 3), 3), 7u);
  EXPECT_EQ(result_of(operation(AtomicCode::CmpSwap, 7, kAll, 4), 3), 3u);
  EXPECT_EQ(result_of(operation(AtomicCode::CmpSwap, 7, kAll, 0xf3, 0x0f), 3), 7u);
  EXPECT_EQ(result_of(operation(AtomicCode::CmpSwap, 0x1234, 0xff00, 0xabcd), 0xabcd), 0x12cdu);
}

// Bit by bit, as RFC 7306, 5.1.1 describes it.
std::uint64_t add_slowly(std::uint64_t a, std::uint64_t b, std::uint64_t mask) {
  std::uint64_t out = 0, carry = 0;
  for (int i = 0; i < 64; ++i) {
    const std::uint64_t sum = carry + (a >> i & 1) + (b >> i & 1);
    out |= (sum & 1) << i;
    carry = (mask >> i & 1) != 0 ? 0 : sum >> 1;
  }
  return out;
}

// proves: E-53
TEST(Atomics, NoCarryOfAnAdditionLeavesItsField) {
  EXPECT_EQ(result_of(operation(AtomicCode::FetchAdd, 1, 0), kAll), 0u);
  EXPECT_EQ(result_of(operation(AtomicCode::FetchAdd, 1, 0x80000000), 0xffffffff), 0u);
  Rng rng(3);
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t a = rng.next(), b = rng.next(), mask = rng.next() & rng.next();
    EXPECT_EQ(result_of(operation(AtomicCode::FetchAdd, b, mask), a), add_slowly(a, b, mask));
  }
}

class AtomicTarget : public StreamFixture {
 protected:
  AtomicTarget() {
    words = table.register_memory(kPd, target_bytes, sizeof target_bytes,
                                  kLocalWrite | verbs::kRemoteAtomic);
  }
  AtomicRequest add(std::uint32_t stag, std::uint64_t to) {
    AtomicRequest a = operation(AtomicCode::FetchAdd, 5, 0);
    a.id = 77;
    a.stag = stag;
    a.to = to;
    return a;
  }
  std::uint64_t word(std::size_t i) const {
    std::uint64_t out;
    std::memcpy(&out, target_bytes + 8 * i, 8);
    return out;
  }
  alignas(8) std::uint8_t target_bytes[32] = {};
  std::uint32_t words = 0;
};

// proves: E-53
TEST_F(AtomicTarget, RightsBoundsAndAlignmentAreCheckedOnDelivery) {
  const auto at = address(target_bytes);
  const auto zero_based = table.register_memory(kPd, target_bytes + 4, 16,
                                                kLocalWrite | verbs::kRemoteAtomic | kZeroBased);
  const auto others =
      table.register_memory(kPd + 1, target_bytes, 32, kLocalWrite | verbs::kRemoteAtomic);
  const struct {
    std::uint32_t stag;
    std::uint64_t to;
    Violation want;
  } rows[] = {{words ^ 1, at, Violation::ReadInvalidStag},
              {key, address(bytes.data()), Violation::ReadAccess},
              {source_key, address(source.data()), Violation::ReadAccess},
              {others, at, Violation::ReadStagNotAssociated},
              {words, at + 28, Violation::ReadBounds},
              {words, ~std::uint64_t{3}, Violation::ReadToWrap},
              {words, at + 4, Violation::AtomicMisaligned},
              {zero_based, 4, Violation::AtomicMisaligned},
              {zero_based, 0, Violation::AtomicMisaligned}};
  for (const auto& row : rows) {
    const Bytes u = atomic_request(s.next_read_msn(), add(row.stag, row.to));
    EXPECT_EQ(take(u), row.want);
    EXPECT_EQ(Bytes(offending.begin(), offending.end()), u);
    EXPECT_EQ(s.inbound_reads.ready(), 0u);
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(word(i), 0u);
}

// A Read before the atomic returns the old value, a Read after it the new one. Each is carried out
// once, no matter how often its response is sent.
// proves: E-53
TEST_F(AtomicTarget, EachAtomicIsCarriedOutOnceAndInOrder) {
  const auto readable = table.register_memory(kPd, target_bytes, 32, kRemoteRead);
  const auto at = address(target_bytes);
  ASSERT_EQ(take(read_request(1, 8, readable, at)), Violation::None);
  ASSERT_EQ(take(atomic_request(2, add(words, at))), Violation::None);
  ASSERT_EQ(take(read_request(3, 8, readable, at)), Violation::None);
  ASSERT_EQ(take(atomic_request(4, add(words, at))), Violation::None);
  EXPECT_EQ(word(0), 0u) << "not before its turn";
  const Bytes out = transmit();
  EXPECT_EQ(word(0), 10u);
  ASSERT_EQ(out.size(), 28u + 36 + 28 + 36);
  EXPECT_EQ(out[16], 0) << "read before the first";
  EXPECT_EQ(load_be64(out.data() + 28 + 24), 0u);
  std::uint64_t between;
  std::memcpy(&between, out.data() + 64 + 16, 8);
  EXPECT_EQ(between, 5u);
  EXPECT_EQ(load_be64(out.data() + 92 + 24), 5u);
  EXPECT_EQ(load_be32(out.data() + 28 + 20), 77u);
  EXPECT_EQ(load_be32(out.data() + 28 + 12), 1u) << "MSNs of their own queue";
  EXPECT_EQ(load_be32(out.data() + 92 + 12), 2u);
  Bytes again(out.size());
  bool ok = false;
  s.sender.fill(StreamOffset(), static_cast<std::uint32_t>(again.size()), again.data(), &ok);
  EXPECT_TRUE(ok);
  EXPECT_EQ(again, out);
  EXPECT_EQ(word(0), 10u);
  s.sender.acked(StreamOffset(out.size()), [](const Completion&) {});
  EXPECT_TRUE(s.inbound_reads.empty());
}

// proves: E-53
TEST_F(AtomicTarget, AResponseBelongsToTheOldestRequest) {
  std::uint64_t landed[2] = {1, 1};
  const auto landing = table.register_memory(kPd, reinterpret_cast<std::uint8_t*>(landed),
                                             sizeof landed, kLocalWrite);
  std::uint32_t sinks[2], size = 0;
  for (std::uint64_t i = 0; i < 2; ++i) {
    const Sge halves[] = {{address(&landed[i]), 4, landing}, {address(&landed[i]) + 4, 4, landing}};
    const Sge whole{address(&landed[i]), 8, landing};
    SendWr wr;
    wr.wr_id = i;
    wr.op = WrOp::Swap;
    wr.flags = kSignaled;
    if (i == 0) {
      wr.sges = {&whole, 1};
    } else {
      wr.sges = halves;
    }
    ASSERT_EQ(s.sq.post(wr), verbs::Post::Ok);
  }
  transmit();
  auto cursor = s.sender.outstanding_reads();
  for (auto& sink : sinks) ASSERT_TRUE(s.sender.next_read(&cursor, &sink, &size));
  EXPECT_EQ(refused(atomic_response(1, sinks[0] ^ 1, 9)), Violation::UnexpectedOpcode);
  EXPECT_EQ(refused(atomic_response(1, sinks[1], 9)), Violation::UnexpectedOpcode);
  EXPECT_EQ(refused(atomic_response(2, sinks[0], 9)), Violation::UntaggedMsnRange);
  EXPECT_EQ(refused(response_segment(sinks[0], 0, Bytes(8))), Violation::TaggedStagNotAssociated);
  EXPECT_EQ(refused(response_segment(sinks[0], 0, {})), Violation::TaggedBounds);
  // The second response arrives early and waits for the first.
  MessageCounts counts = put(atomic_response(2, sinks[1], 22), false);
  EXPECT_EQ(refused(atomic_response(0, sinks[0], 9), false), Violation::UntaggedMsnRange);
  ASSERT_EQ(take(atomic_response(1, sinks[0], 11)), Violation::None);
  ASSERT_EQ(done.size(), 1u);
  ASSERT_EQ(deliver_counts(counts), Violation::None);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].byte_len, 8u);
  EXPECT_EQ(landed[0], 11u);
  EXPECT_EQ(landed[1], 22u);
  EXPECT_EQ(s.sender.next_atomic_msn(), 3u);
}

// proves: E-53
TEST_F(AtomicTarget, ResponsesAndOurOwnRequestsAlternate) {
  const Sge sge{address(source.data()), 8, source_key};
  SendWr wr;
  wr.op = WrOp::Write;
  wr.sges = {&sge, 1};
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_EQ(s.sq.post(wr), verbs::Post::Ok);
    ASSERT_EQ(take(atomic_request(i + 1, add(words, address(target_bytes)))), Violation::None);
  }
  const Bytes out = transmit();
  ASSERT_EQ(out.size(), 3 * (28u + 36u));
  for (std::size_t at = 0; at < out.size(); at += 28 + 36) {
    EXPECT_EQ(out[at + 3] & 0x0f, static_cast<int>(Opcode::Write));
    EXPECT_EQ(out[at + 28 + 3] & 0x0f, static_cast<int>(Opcode::AtomicResponse));
  }
}

// proves: E-53
TEST_F(AtomicTarget, WithOrdZeroAnAtomicFails) {
  s.set_limits(8, 0);
  const Sge sge{address(bytes.data()), 8, key};
  SendWr wr;
  wr.op = WrOp::FetchAdd;
  wr.sges = {&sge, 1};
  ASSERT_EQ(s.sq.post(wr), verbs::Post::Ok);
  s.sender.execute_due();
  EXPECT_TRUE(s.sender.failed());
  std::vector<verbs::Status> ends;
  s.sender.flush(verbs::Status::Flushed, [&](const Completion& c) { ends.push_back(c.status); });
  EXPECT_EQ(ends, std::vector{verbs::Status::RemoteInvalidRequest});
}

TEST_F(AtomicTarget, AnAtomicHasExactlyEightBytes) {
  const Sge sge{address(bytes.data()), 7, key};
  SendWr wr;
  wr.op = WrOp::FetchAdd;
  wr.sges = {&sge, 1};
  EXPECT_EQ(s.sq.post(wr), verbs::Post::BadOp);
}

}  // namespace
}  // namespace urnic::ddp::test
