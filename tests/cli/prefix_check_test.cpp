#include "cli/transfer/prefix_check.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <random>

namespace urnic::cli {
namespace {

constexpr std::size_t kSize = 5'300'000;  // several digests

class PrefixCheckTest : public testing::Test {
 protected:
  PrefixCheckTest() : data_(kSize) {
    std::mt19937 rng(1);
    for (auto& b : data_) b = static_cast<std::uint8_t>(rng());
    for (int* fd : {&here_, &there_}) {
      char name[] = "/tmp/urnic-prefix-XXXXXX";
      *fd = mkstemp(name);
      unlink(name);
      EXPECT_EQ(pwrite(*fd, data_.data(), kSize, 0), static_cast<ssize_t>(kSize));
    }
  }
  ~PrefixCheckTest() override {
    close(here_);
    close(there_);
  }
  static void spoil(int fd, off_t at) { EXPECT_EQ(pwrite(fd, "\0\1\2\3\4\5\6\7", 8, at), 8); }

  // Runs both sides of the comparison; returns where the initiator begins.
  std::uint64_t agree(std::uint64_t length) {
    PrefixTeller teller(there_, length, "there");
    PrefixComparer comparer(here_, length, "here");
    std::size_t open = 0;
    for (bool worked = true; worked && !comparer.finished();) {
      worked = teller.step();
      while (const auto told = teller.next()) {
        comparer.told(told->offset, told->digest);
        EXPECT_LE(++open, 4u) << "no more than the initiator keeps up with";
      }
      bool answered = false;
      worked = comparer.step(&answered) || worked;
      if (answered) {
        --open;
        EXPECT_TRUE(teller.compared());
      }
    }
    EXPECT_TRUE(comparer.finished());
    Point mine = comparer.take();
    auto theirs = teller.begin(mine.offset);
    EXPECT_TRUE(theirs.has_value());
    if (!theirs) return UINT64_MAX;
    EXPECT_EQ(theirs->hash.finish(), mine.hash.finish());
    Xxh128 expected;
    expected.add({data_.data(), mine.offset});
    EXPECT_FALSE(mine.offset > kSize);
    return mine.offset;
  }

  std::vector<std::uint8_t> data_;
  int here_ = -1, there_ = -1;
};

TEST_F(PrefixCheckTest, AnEqualPrefixIsResumedCompletely) {
  EXPECT_EQ(agree(kSize), kSize);
  EXPECT_EQ(agree(1), 1u);
  EXPECT_EQ(agree(0), 0u);
}

// proves: E-38
TEST_F(PrefixCheckTest, TheTransferNeverContinuesAfterADifference) {
  spoil(there_, 3'000'000);
  EXPECT_EQ(agree(kSize), 2u << 20) << "the last place before it";
  EXPECT_EQ(agree(3'000'000), 3'000'000u) << "it lies behind";
  spoil(here_, 10);
  EXPECT_EQ(agree(kSize), 0u);
}

TEST_F(PrefixCheckTest, TheInitiatorMayBeginOnlyAtSentPoints) {
  PrefixTeller teller(there_, kSize, "there");
  EXPECT_FALSE(teller.begin(1 << 20).has_value());
  EXPECT_FALSE(teller.compared()) << "nothing was told";
  while (teller.step()) {
  }
  ASSERT_TRUE(teller.next().has_value());
  EXPECT_FALSE(teller.begin(5).has_value());
  EXPECT_FALSE(teller.begin(2 << 20).has_value()) << "hashed, but not told";
  EXPECT_TRUE(teller.begin(1 << 20).has_value());
  EXPECT_TRUE(teller.begin(0).has_value());
}

TEST_F(PrefixCheckTest, TheTargetWaitsForTheInitiator) {
  PrefixTeller teller(there_, kSize, "there");  // five points
  std::size_t told = 0;
  while (teller.step()) {
    while (teller.next()) ++told;
  }
  EXPECT_EQ(told, 4u);
  EXPECT_TRUE(teller.compared());
  while (teller.step()) {
    while (teller.next()) ++told;
  }
  EXPECT_EQ(told, 5u);
}

TEST_F(PrefixCheckTest, AShortenedFileIsAnError) {
  ASSERT_EQ(ftruncate(there_, 1000), 0);
  PrefixTeller teller(there_, kSize, "there");
  while (teller.step()) {
  }
  ASSERT_TRUE(teller.error().has_value());
  EXPECT_EQ(teller.error()->status, Status::Truncated);
}

}  // namespace
}  // namespace urnic::cli
