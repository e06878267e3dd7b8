#include "reassembly/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "tests/fastpath/fpdu_maker.h"

namespace urnic::reassembly {
namespace {

using testing::Bytes;
using testing::random_bytes;

constexpr std::uint64_t kPlenty = 64u << 20;

StreamOffset at(std::uint64_t v) {
  return StreamOffset(v);
}

Bytes read_all(const Buffer& b, std::uint32_t len) {
  Bytes out(len);
  b.copy(0, len, out.data());
  return out;
}

TEST(ReassemblyBuffer, AnEmptyBufferOwnsNoChunk) {
  Pool pool(kPlenty);
  Buffer b(&pool, 1 << 20);
  b.reset(at(5));
  EXPECT_TRUE(b.empty());
  EXPECT_EQ(pool.in_use(), 0u);
  Rng rng(1);
  ASSERT_TRUE(b.store(at(5), random_bytes(rng, 10), true));
  EXPECT_FALSE(b.empty());
  EXPECT_EQ(pool.in_use(), Pool::kChunk);
  b.consume(at(15));
  EXPECT_TRUE(b.empty());
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_EQ(b.read_position(), at(15));
}

TEST(ReassemblyBuffer, KeepsBytesAcrossChunkEdgesInAnyOrder) {
  Rng rng(2);
  Pool pool(kPlenty);
  Buffer b(&pool, 1 << 20);
  b.reset(at(1000));
  const Bytes data = random_bytes(rng, 3 * Pool::kChunk + 77);
  const ByteView v(data);
  const std::size_t cut1 = Pool::kChunk - 3, cut2 = 2 * Pool::kChunk + 5;
  ASSERT_TRUE(b.store(at(1000 + cut2), v.subspan(cut2), false));
  ASSERT_TRUE(b.store(at(1000 + cut1), v.subspan(cut1, cut2 - cut1), false));
  ASSERT_TRUE(b.store(at(1000), v.first(cut1), true));
  EXPECT_EQ(read_all(b, static_cast<std::uint32_t>(data.size())), data);
}

// proves: R-51
TEST(ReassemblyBuffer, ViewEndsWhereTheInOrderBytesEnd) {
  Rng rng(3);
  Pool pool(kPlenty);
  Buffer b(&pool, 1 << 20);
  b.reset(at(0));
  const Bytes data = random_bytes(rng, 100);
  ASSERT_TRUE(b.store(at(0), ByteView(data).first(40), true));
  ASSERT_TRUE(b.store(at(60), ByteView(data).subspan(60), false));  // [40, 60) is a hole
  EXPECT_EQ(b.view(0, 1000, at(40)).size(), 40u);
  EXPECT_EQ(b.view(10, 1000, at(40)).size(), 30u);
  EXPECT_EQ(b.view(10, 7, at(40)).size(), 7u);
  EXPECT_TRUE(b.view(40, 1000, at(40)).empty());
  EXPECT_TRUE(b.view(50, 10, at(40)).empty());
  // A caller that claims more than was ever stored gets only the stored bytes.
  EXPECT_EQ(b.view(0, 100000, at(100000)).size(), 100u);
}

// proves: R-51
TEST(ReassemblyBuffer, ViewOfAChunkNeverStoredIsEmpty) {
  Rng rng(4);
  Pool pool(kPlenty);
  Buffer b(&pool, 1 << 20);
  b.reset(at(0));
  const std::uint64_t far = 5 * Pool::kChunk;
  ASSERT_TRUE(b.store(at(far), random_bytes(rng, 100), false));
  EXPECT_EQ(pool.in_use(), Pool::kChunk) << "holes cost no memory";
  EXPECT_TRUE(b.view(0, 1000, at(far + 100)).empty());
}

TEST(ReassemblyBuffer, RefusesBytesBelowTheReadPositionOrBeyondTheCapacity) {
  Rng rng(5);
  Pool pool(kPlenty);
  Buffer b(&pool, 200000);
  b.reset(at(1000));
  const Bytes data = random_bytes(rng, 100);
  EXPECT_FALSE(b.store(at(999), data, true));
  EXPECT_FALSE(b.store(at(1000 + 200000 - 99), data, false));
  EXPECT_FALSE(b.can_store(at(~0ull - 10), 100, false));
  EXPECT_TRUE(b.empty());
  EXPECT_TRUE(b.store(at(1000 + 200000 - 100), data, false));
}

TEST(ReassemblyBuffer, ConsumeGivesWholeChunksBack) {
  Rng rng(6);
  Pool pool(kPlenty);
  Buffer b(&pool, 1 << 20);
  b.reset(at(0));
  const Bytes data = random_bytes(rng, 4 * Pool::kChunk);
  ASSERT_TRUE(b.store(at(0), data, true));
  EXPECT_EQ(pool.in_use(), 4u * Pool::kChunk);
  b.consume(at(Pool::kChunk - 1));
  EXPECT_EQ(pool.in_use(), 4u * Pool::kChunk);
  b.consume(at(2 * Pool::kChunk + 1));
  EXPECT_EQ(pool.in_use(), 2u * Pool::kChunk);
  const ByteView rest = b.view(0, 100, at(4 * Pool::kChunk));
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), data.begin() + 2 * Pool::kChunk + 1));
  b.consume(at(4 * Pool::kChunk));
  EXPECT_EQ(pool.in_use(), 0u);
}

// proves: R-44
TEST(ReassemblyBuffer, ResetForgetsEverythingStored) {
  Rng rng(7);
  Pool pool(kPlenty);
  Buffer b(&pool, 1 << 20);
  b.reset(at(0));
  ASSERT_TRUE(b.store(at(50000), random_bytes(rng, 30000), false));
  b.reset(at(70000));
  EXPECT_TRUE(b.empty());
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_EQ(b.read_position(), at(70000));
  EXPECT_TRUE(b.view(0, 100, at(80000)).empty());
}

// Connections that hold as much as they can leave enough for later ones.
// proves: E-11
TEST(ReassemblyBuffer, AConnectionThatHoldsMuchOutOfOrderLeavesAShareToOthers) {
  constexpr std::uint64_t kPool = 64u << 20;
  constexpr std::uint32_t kCapacity = 4u << 20;
  Rng rng(9);
  const Bytes piece = random_bytes(rng, 8192);
  Pool pool(kPool);
  const auto fill = [&](Buffer& b) {
    b.reset(at(0));
    std::uint64_t taken = 0;
    for (std::uint64_t pos = Pool::kChunk; pos + piece.size() <= kCapacity; pos += piece.size()) {
      if (b.store(at(pos), piece, false)) taken += piece.size();
    }
    return taken;
  };
  std::vector<std::unique_ptr<Buffer>> greedy;
  for (int i = 0; i < 16; ++i) {
    greedy.push_back(std::make_unique<Buffer>(&pool, kCapacity));
    fill(*greedy.back());
  }
  EXPECT_GT(pool.available(), 4u << 20);
  Buffer late(&pool, kCapacity);
  EXPECT_GT(fill(late), 1u << 20);
}

// A few connections hold all they can, out of order, for ever. Later ones still get half of their
// share, however many there are. When the few end, their memory goes to the others.
// proves: E-11
TEST(ReassemblyBuffer, AFewThatHoldAllTheyCanLeaveTheOthersHalfOfTheirShare) {
  constexpr std::uint64_t kPool = 64u << 20;
  constexpr std::uint32_t kCapacity = 32u << 20;
  Rng rng(19);
  const Bytes piece = random_bytes(rng, Pool::kChunk);
  const auto one_more = [&](Buffer& b, std::uint64_t* held) {
    const bool stored = b.store(at(Pool::kChunk + *held), piece, false);
    if (stored) *held += piece.size();
    return stored;
  };
  for (const std::size_t few : {1u, 2u, 4u}) {
    for (const std::size_t many : {4u, 16u, 60u}) {
      SCOPED_TRACE(::testing::Message() << few << " and " << many);
      Pool pool(kPool);
      std::vector<std::unique_ptr<Buffer>> greedy, others;
      for (std::size_t i = 0; i < few + many; ++i) {
        auto& list = i < few ? greedy : others;
        list.push_back(std::make_unique<Buffer>(&pool, kCapacity));
        list.back()->reset(at(0));
      }
      std::vector<std::uint64_t> taken(few), held(many);
      for (bool any = true; any;) {
        any = false;
        for (std::size_t i = 0; i < few; ++i) any |= one_more(*greedy[i], &taken[i]);
      }
      for (bool any = true; any;) {
        any = false;
        for (std::size_t i = 0; i < many; ++i) any |= one_more(*others[i], &held[i]);
      }
      const std::uint64_t half = kPool / (few + many) / 2;
      for (const std::uint64_t bytes : held) EXPECT_GE(bytes + Pool::kChunk, half);
      greedy.clear();
      std::uint64_t more = 0;
      for (std::size_t i = 0; i < many; ++i) {
        const std::uint64_t before = held[i];
        while (one_more(*others[i], &held[i])) {
        }
        more += held[i] - before;
      }
      EXPECT_GT(more, 0u) << "what they held is of use again";
    }
  }
}

// proves: E-11
TEST(ReassemblyBuffer, WhenThePoolIsExhaustedOutOfOrderIsRefusedAndInOrderIsNot) {
  Rng rng(8);
  Pool pool(2 * Pool::kChunk);
  Buffer greedy(&pool, 1 << 20), victim(&pool, 1 << 20);
  greedy.reset(at(0));
  victim.reset(at(0));
  const Bytes piece = random_bytes(rng, 1460);
  ASSERT_TRUE(greedy.store(at(Pool::kChunk), piece, false));
  ASSERT_TRUE(greedy.store(at(3 * Pool::kChunk), piece, false));
  EXPECT_EQ(pool.available(), 0u);
  EXPECT_FALSE(greedy.can_store(at(5 * Pool::kChunk), 1460, false));
  EXPECT_FALSE(greedy.store(at(5 * Pool::kChunk), piece, false));
  EXPECT_TRUE(greedy.store(at(Pool::kChunk + 1460), piece, false)) << "its chunk is already there";
  EXPECT_FALSE(victim.store(at(1460), piece, false));
  EXPECT_TRUE(victim.empty()) << "a refusal leaves no trace";

  // In order, one maximal FPDU plus one MSS can always be stored.
  const Bytes whole = random_bytes(rng, kGuarantee);
  for (std::uint32_t pos = 0; pos < kGuarantee;) {
    const auto n = std::min<std::uint32_t>(1460, kGuarantee - pos);
    ASSERT_TRUE(victim.can_store(at(pos), n, true)) << pos;
    ASSERT_TRUE(victim.store(at(pos), ByteView(whole).subspan(pos, n), true)) << pos;
    pos += n;
  }
  EXPECT_EQ(read_all(victim, kGuarantee), whole);
  EXPECT_FALSE(victim.store(at(kGuarantee + Pool::kChunk), piece, true)) << "beyond: by the pool";
}

TEST(ReassemblyBuffer, ChunksBeginAtACacheLine) {
  Pool pool(std::uint64_t{1} << 20);
  std::vector<std::uint8_t*> chunks;
  for (int i = 0; i < 16; ++i) {
    chunks.push_back(pool.take(true));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(chunks.back()) % 64, 0u) << i;
  }
  for (std::uint8_t* chunk : chunks) pool.give(chunk);
}

// proves: E-11
TEST(ReassemblyBuffer, RoomFollowsCapacityGuaranteeAndPool) {
  Rng rng(9);
  Pool pool(4u << 20);
  Buffer b(&pool, 1 << 20);
  b.reset(at(0));
  EXPECT_EQ(b.room(at(0)), 1u << 20);
  ASSERT_TRUE(b.store(at(0), random_bytes(rng, 1000), true));
  EXPECT_EQ(b.room(at(1000)), (1u << 20) - 1000);

  Pool small(0);
  Buffer poor(&small, 1 << 20);
  poor.reset(at(0));
  EXPECT_EQ(poor.room(at(0)), kGuarantee);
  ASSERT_TRUE(poor.store(at(0), random_bytes(rng, 65544), true));
  EXPECT_EQ(poor.room(at(65544)), kGuarantee - 65544) << "still a whole MSS beyond a whole FPDU";
}

TEST(ReassemblyBuffer, ASmallCapacityStillHoldsAMaximalFpduAndOneMss) {
  Pool pool(kPlenty);
  Buffer b(&pool, 4096);
  b.reset(at(0));
  EXPECT_EQ(b.room(at(0)), kGuarantee);
  EXPECT_TRUE(b.can_store(at(0), kGuarantee, true));
  EXPECT_FALSE(b.can_store(at(0), kGuarantee + 1, true));
}

// A thousand connections downgrade at once on a pool of ten windows. Each makes progress.
// proves: E-11
TEST(ReassemblyBuffer, AThousandDowngradesOnAPoolOfTenWindows) {
  constexpr std::uint32_t kWindow = 256 * 1024, kSegment = 1460;
  Rng rng(10);
  Pool pool(10 * kWindow);
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 1000; ++i) {
    buffers.push_back(std::make_unique<Buffer>(&pool, kWindow));
    buffers.back()->reset(at(0));
  }
  // All lost their first segment, so all later data is out of order.
  const Bytes data = random_bytes(rng, 64 * 1024);
  std::size_t accepted = 0, refused = 0;
  std::vector<std::vector<bool>> got(buffers.size(),
                                     std::vector<bool>(data.size() / kSegment + 1, false));
  for (std::size_t seg = 1; seg * kSegment < data.size(); ++seg) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::size_t pos = seg * kSegment,
                        n = std::min<std::size_t>(kSegment, data.size() - pos);
      got[i][seg] = buffers[i]->store(at(pos), ByteView(data).subspan(pos, n), false);
      ++(got[i][seg] ? accepted : refused);
    }
    ASSERT_LE(pool.in_use(), 10u * kWindow);
  }
  EXPECT_GT(accepted, 0u);
  EXPECT_GT(refused, 0u);
  // The peers resend what was not accepted. Now it is in order and never refused.
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    for (std::size_t seg = 0; seg * kSegment < data.size(); ++seg) {
      if (got[i][seg]) continue;
      const std::size_t pos = seg * kSegment,
                        n = std::min<std::size_t>(kSegment, data.size() - pos);
      ASSERT_TRUE(buffers[i]->store(at(pos), ByteView(data).subspan(pos, n), true)) << i;
    }
    ASSERT_EQ(read_all(*buffers[i], static_cast<std::uint32_t>(data.size())), data);
    buffers[i]->consume(at(data.size()));
  }
  EXPECT_EQ(pool.in_use(), 0u);
}

// Compares random operations with a map from offset to byte.
class ReassemblyBufferModel : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ReassemblyBufferModel, AgreesWithAMapOfBytes) {
  SCOPED_TRACE(::testing::Message() << "seed " << GetParam());
  Rng rng(GetParam());
  const std::uint32_t capacity = kGuarantee + static_cast<std::uint32_t>(rng.below(200000));
  Pool pool(rng.chance(0.5) ? kPlenty : rng.below(20) * Pool::kChunk);
  Buffer b(&pool, capacity);
  std::uint64_t read = rng.below(1u << 30);
  b.reset(at(read));
  std::map<std::uint64_t, std::uint8_t> model;
  const auto in_order_end = [&] {
    std::uint64_t end = read;
    for (auto it = model.find(end); it != model.end() && it->first == end; ++it) ++end;
    return end;
  };
  for (int op = 0; op < 400; ++op) {
    const std::uint64_t end = in_order_end();
    switch (rng.below(8)) {
      case 0: {  // consume part of the in-order bytes
        const std::uint64_t to = read + rng.below(end - read + 1);
        model.erase(model.begin(), model.lower_bound(to));
        b.consume(at(to));
        read = to;
        break;
      }
      case 1:
        if (rng.below(20) == 0) {
          read += rng.below(100000);
          model.clear();
          b.reset(at(read));
        }
        break;
      default: {
        const bool in_order = rng.chance(0.5);
        const std::uint64_t begin = in_order ? end : read + rng.below(capacity + 2000);
        const Bytes bytes = random_bytes(rng, rng.below(9000));
        const auto len = static_cast<std::uint32_t>(bytes.size());
        const bool can = b.can_store(at(begin), len, in_order);
        if (in_order && begin + len <= read + kGuarantee) {
          ASSERT_TRUE(can);
        }
        ASSERT_EQ(b.store(at(begin), bytes, in_order), can);
        if (can) {
          for (std::size_t i = 0; i < len; ++i) model[begin + i] = bytes[i];
        }
      }
    }
    ASSERT_EQ(b.read_position(), at(read));
    ASSERT_EQ(b.empty(), model.empty());
    if (model.empty()) {
      ASSERT_EQ(pool.in_use(), 0u);
    }
    // All in-order bytes read back, piece by piece.
    const std::uint64_t now_end = in_order_end();
    for (std::uint64_t skip = 0; read + skip < now_end;) {
      const ByteView v = b.view(skip, 1u << 30, at(now_end));
      ASSERT_FALSE(v.empty());
      auto it = model.find(read + skip);
      for (const std::uint8_t byte : v) {
        ASSERT_EQ(byte, it->second);
        ++it;
      }
      skip += v.size();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReassemblyBufferModel, ::testing::Range<std::uint64_t>(1, 13));

}  // namespace
}  // namespace urnic::reassembly
