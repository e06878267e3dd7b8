// Output for people: sizes, times, tables, the progress bar, hashes as hex.
#include <gtest/gtest.h>

#include "cli/runtime.h"
#include "cli/table.h"
#include "cli/transfer/progress_bar.h"
#include "cli/units.h"
#include "cli/xxh128.h"

namespace urnic::cli {
namespace {

// RoCE pads private data with zeros (IB-137).
TEST(SaidIn, PrivateDataIsTextWithoutPadding) {
  EXPECT_EQ(error_text_in(std::string("it is busy") + std::string(138, '\0')), "it is busy");
  EXPECT_EQ(error_text_in("it is busy"), "it is busy");
  EXPECT_EQ(error_text_in(std::string("a\0\x1b[2J\xff \0\0", 10)), "a??[2J?");
  EXPECT_EQ(error_text_in(std::string(148, '\0')), "");
  EXPECT_EQ(error_text_in(""), "");
}

TEST(Units, SizesAreParsed) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("64K"), 65536u);
  EXPECT_EQ(parse_size("64kB"), 65536u);
  EXPECT_EQ(parse_size("2MiB"), 2u << 20);
  EXPECT_EQ(parse_size("16777215T"), (std::uint64_t{1} << 40) * 16777215);
  for (const char* bad :
       {"", "K", "-1", "1.5M", "1Q", "1Kx", "16777216T", "99999999999999999999"}) {
    EXPECT_FALSE(parse_size(bad).has_value()) << bad;
  }
}

TEST(Units, DurationsAreParsed) {
  EXPECT_EQ(parse_duration_ms("250ms"), 250u);
  EXPECT_EQ(parse_duration_ms("1.5"), 1500u);
  EXPECT_EQ(parse_duration_ms("5s"), 5000u);
  EXPECT_EQ(parse_duration_ms("2m"), 120'000u);
  EXPECT_EQ(parse_duration_ms("1h"), 3'600'000u);
  for (const char* bad : {"", "s", "-1s", "1x", "nan", "inf", "1e300s"}) {
    EXPECT_FALSE(parse_duration_ms(bad).has_value()) << bad;
  }
}

TEST(Units, SharesNeverRoundTo0Or100) {
  EXPECT_EQ(format_share(0, 0), "-");
  EXPECT_EQ(format_share(10, 10), "100 %");
  EXPECT_EQ(format_share(0, 10), "0 %");
  EXPECT_EQ(format_share(999'999'999, 1'000'000'000), "99.99 %");
  EXPECT_EQ(format_share(1, 1'000'000'000), "0.01 %");
  EXPECT_EQ(format_share(1, 3), "33.33 %");
}

TEST(Units, NumbersAreReadable) {
  EXPECT_EQ(format_size(312), "312 B");
  EXPECT_EQ(format_size(1.5 * (1 << 30)), "1.50 GiB");
  EXPECT_EQ(format_rate(237.4 * (1 << 20)), "237 MiB/s");
  EXPECT_EQ(format_seconds(0.5), "0.50 s");
  EXPECT_EQ(format_seconds(185), "3 min 05 s");
  EXPECT_EQ(format_seconds(7500), "2 h 05 min");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1 000");
  EXPECT_EQ(format_count(1234567), "1 234 567");
}

TEST(Table, ColumnsAlignAndLinesHaveNoTrailingBlanks) {
  Table t({{"name", Table::Align::Left}, {"n", Table::Align::Right}, {"", Table::Align::Left}});
  t.add({"\xc3\xa4", "1", "x"});
  t.add({"longer", "1000"});
  EXPECT_EQ(t.text(), "name       n\n\xc3\xa4          1  x\nlonger  1000\n");
}

TEST(Table, KeyValuesAndWrapping) {
  EXPECT_EQ(key_values({{"a", "1"}, {"long", "2"}}, 1), " a     1\n long  2\n");
  EXPECT_EQ(wrapped("one two three four", 2, 9), "one two\n  three\n  four");
  EXPECT_EQ(wrapped("", 2, 9), "");
}

TEST(ProgressBar, FitsItsWidthAndEndsFull) {
  for (unsigned width : {20u, 40u, 80u, 200u}) {
    for (std::uint64_t done : {0u, 1u, 50u, 99u, 100u}) {
      const std::string line =
          ProgressBar::line("a-rather-long-name-of-a-file.tar", done, 100, 2.5, width);
      if (width >= 80) {
        EXPECT_LE(line.size(), width) << line;
      }
    }
  }
  EXPECT_NE(ProgressBar::line("f", 100, 100, 1, 80)
                .find("[########################################]  100 %"),
            std::string::npos);
  EXPECT_NE(ProgressBar::line("f", 0, 0, 0, 80).find("100 %"), std::string::npos)
      << "an empty file";
}

// All kernels that this processor supports.
class Xxh128Test : public testing::TestWithParam<bool> {
 protected:
  Xxh128Test() : bytes_(100'003) {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<std::uint8_t>(i * i >> 3);
  }
  void SetUp() override {
    if (GetParam() && !cpu_features().avx512) GTEST_SKIP() << "no AVX-512";
  }
  std::vector<std::uint8_t> bytes_;
};

// The hashes are those of `xxhsum -H128`.
TEST_P(Xxh128Test, PrintsWhatXxhsumPrints) {
  Xxh128 h(GetParam());
  EXPECT_EQ(to_hex(h.finish()), "99aa06d3014798d86001c324468d497f");
  const std::uint8_t abc[] = {'a', 'b', 'c'};
  h.add({abc, 1});
  h.add({abc + 1, 2});
  EXPECT_EQ(to_hex(h.finish()), "06b05ab6733a618578af5f94892f3950");
  h.add(bytes_);
  EXPECT_EQ(to_hex(h.finish()), "bb23957e1c925c56dd7e99b0796a9ee6");
}

// A file arrives in pieces of any size, and a resumed transfer continues from a copy of the state.
TEST_P(Xxh128Test, DoesNotDependOnThePieces) {
  Xxh128 whole(GetParam()), pieces(GetParam());
  whole.add(bytes_);
  const Digest digest = whole.finish();
  const auto all = std::span<const std::uint8_t>(bytes_);
  std::size_t at = 0;
  for (std::size_t n = 1; at + n < 70'000; at += n, n += 61) pieces.add(all.subspan(at, n));
  Xxh128 copy = pieces.copy();
  pieces.add(all.subspan(at, 1));
  copy.add(all.subspan(at));
  pieces.add(all.subspan(at + 1));
  EXPECT_EQ(copy.finish(), digest);
  EXPECT_EQ(pieces.finish(), digest);
  bytes_[50'000] ^= 1;
  whole.add(bytes_);
  EXPECT_NE(whole.finish(), digest);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Xxh128Test, testing::Bool());

}  // namespace
}  // namespace urnic::cli
