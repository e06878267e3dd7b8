#include "base/byte_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace urnic {
namespace {

std::uint8_t byte_at(std::uint64_t offset) {
  return static_cast<std::uint8_t>((offset * 0x9e3779b97f4a7c15ULL) >> 56);
}
std::vector<std::uint8_t> bytes_at(std::uint64_t offset, std::size_t n) {
  std::vector<std::uint8_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = byte_at(offset + i);
  return v;
}

TEST(ByteStore, TakesMemoryOnlyForWrittenPartsAndReturnsIt) {
  ChunkPool pool(4096, 100, 100);
  ByteStore s(&pool, 1 << 20);
  EXPECT_EQ(s.memory(), 0u);
  EXPECT_TRUE(s.write(500000, bytes_at(500000, 10)));
  EXPECT_EQ(s.memory(), 4096u);
  EXPECT_TRUE(s.write(0, bytes_at(0, 5000)));
  EXPECT_EQ(s.memory(), 3 * 4096u);
  EXPECT_EQ(pool.in_use(), 3u);
  s.advance(4096);
  EXPECT_EQ(pool.in_use(), 2u);
  s.advance(500010);
  EXPECT_EQ(pool.in_use(), 0u) << "all read: the rest of the last chunk is of no use";
  EXPECT_EQ(s.high(), s.base());
}

TEST(ByteStore, RefusesBytesOutsideTheWindow) {
  ChunkPool pool(4096, 100, 0);
  ByteStore s(&pool, 10000, 1000);
  EXPECT_FALSE(s.write(999, bytes_at(999, 1)));
  EXPECT_TRUE(s.write(1000, bytes_at(1000, 10000)));
  EXPECT_FALSE(s.write(1001, bytes_at(1001, 10000)));
  EXPECT_FALSE(s.write(11001, {}));
  EXPECT_TRUE(s.write(11000, {}));
  EXPECT_FALSE(s.write(~std::uint64_t{0}, bytes_at(0, 100)));
  EXPECT_FALSE(s.can_write(~std::uint64_t{0} - 5, 100));
  s.advance(3000);
  EXPECT_TRUE(s.write(11000, bytes_at(11000, 2000)));
  EXPECT_FALSE(s.write(2999, bytes_at(2999, 1)));
  EXPECT_EQ(s.view(2999, 10).size(), 0u);
}

TEST(ByteStore, AnEmptyPoolChangesNothing) {
  ChunkPool pool(4096, 2, 2);
  ByteStore s(&pool, 1 << 20);
  EXPECT_TRUE(s.write(0, bytes_at(0, 100)));
  EXPECT_FALSE(s.can_write(4096, 4097));
  EXPECT_FALSE(s.write(4096, bytes_at(4096, 4097))) << "needs two chunks, there is one";
  EXPECT_EQ(s.memory(), 4096u);
  EXPECT_EQ(s.high(), 100u);
  EXPECT_TRUE(s.write(4096, bytes_at(4096, 4096)));
  EXPECT_TRUE(s.write(200, bytes_at(200, 100))) << "inside a chunk it has already";
  s.advance(4096);
  EXPECT_TRUE(s.write(8192, bytes_at(8192, 100)));
}

TEST(ByteStore, AStoreReturnsEverythingWhenDestroyedOrReset) {
  ChunkPool pool(4096, 10, 10);
  {
    ByteStore s(&pool, 40960);
    s.write(0, bytes_at(0, 40960));
    EXPECT_EQ(pool.in_use(), 10u);
    s.reset(77);
    EXPECT_EQ(pool.in_use(), 0u);
    EXPECT_EQ(s.base(), 77u);
    s.write(77, bytes_at(77, 4096));
    EXPECT_EQ(pool.in_use(), 2u);
  }
  EXPECT_EQ(pool.in_use(), 0u);
}

// Bytes written and not returned: disjoint, non-adjacent ranges from begin to end.
class Written {
 public:
  using Range = std::pair<const std::uint64_t, std::uint64_t>;
  bool empty() const { return ranges_.empty(); }
  std::size_t size() const { return ranges_.size(); }
  const Range& operator[](std::size_t i) const {
    return *std::next(ranges_.begin(), static_cast<std::ptrdiff_t>(i));
  }
  std::uint64_t end() const { return ranges_.rbegin()->second; }
  void clear() { ranges_.clear(); }
  void insert(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    auto it = ranges_.begin();
    while (it != ranges_.end() && it->second < begin) ++it;
    while (it != ranges_.end() && it->first <= end) {
      begin = std::min(begin, it->first);
      end = std::max(end, it->second);
      it = ranges_.erase(it);
    }
    ranges_.emplace(begin, end);
  }
  void erase_below(std::uint64_t offset) {
    while (!empty() && ranges_.begin()->first < offset) {
      const std::uint64_t end = ranges_.begin()->second;
      ranges_.erase(ranges_.begin());
      if (end > offset) ranges_.emplace(offset, end);
    }
  }
  // The first missing byte at or after `from`.
  std::uint64_t first_missing(std::uint64_t from) const {
    for (const auto& [begin, end] : ranges_) {
      if (begin <= from && from < end) return end;
    }
    return from;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;
};

TEST(ByteStore, ReadsBackWrittenBytesUnderRandomOperationsOnASharedPool) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    ChunkPool pool(4096, rng.between(4, 60), rng.below(20));
    struct Stream {
      std::unique_ptr<ByteStore> store;
      Written written;
    };
    std::vector<Stream> streams(3);
    const std::uint64_t capacity = rng.between(5000, 100000);
    for (auto& s : streams) {
      const std::uint64_t start = rng.next() >> 4;
      s.store = std::make_unique<ByteStore>(&pool, capacity, start);
    }
    int refused = 0;
    for (int step = 0; step < 1500; ++step) {
      Stream& s = streams[rng.below(streams.size())];
      const std::uint64_t at = s.store->base() + rng.below(capacity + 2000);
      switch (rng.below(8)) {
        case 0: {  // read in order
          const std::uint64_t to = s.written.first_missing(s.store->base());
          std::vector<std::uint8_t> got(static_cast<std::size_t>(to - s.store->base()));
          ASSERT_TRUE(s.store->read(s.store->base(), got));
          ASSERT_EQ(got, bytes_at(s.store->base(), got.size()));
          s.store->advance(to);
          s.written.erase_below(to);
          break;
        }
        case 1:  // skip
          if (rng.chance(0.2)) {
            s.store->advance(at);
            s.written.erase_below(at);
          }
          break;
        case 2:
          if (rng.chance(0.05)) {
            s.store->reset(at);
            s.written.clear();
          }
          break;
        default: {
          const std::size_t n = rng.below(9000);
          const bool can = s.store->can_write(at, n);
          const std::size_t before = pool.in_use();
          ASSERT_EQ(s.store->write(at, bytes_at(at, n)), can);
          if (can) {
            s.written.insert(at, at + n);
          } else {
            ++refused;
            ASSERT_EQ(pool.in_use(), before);
          }
        }
      }
      std::size_t memory = 0;
      for (auto& t : streams) {
        memory += t.store->memory();
        if (t.written.empty()) {
          ASSERT_EQ(t.store->memory(), 0u);
          continue;
        }
        ASSERT_EQ(t.store->high(), t.written.end());
        const auto& [begin, end] = t.written[rng.below(t.written.size())];
        const ByteView v = t.store->view(begin, static_cast<std::size_t>(end - begin));
        ASSERT_FALSE(v.empty());
        ASSERT_EQ(std::vector<std::uint8_t>(v.begin(), v.end()), bytes_at(begin, v.size()));
      }
      ASSERT_EQ(memory, pool.in_use() * pool.chunk_size());
    }
    EXPECT_GT(refused, 0);
  }
}

}  // namespace
}  // namespace urnic
