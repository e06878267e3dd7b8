#include "cli/transfer/quota.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace urnic::cli {
namespace {

using ::testing::HasSubstr;

class QuotaTest : public ::testing::Test {
 protected:
  QuotaTest() {
    char name[] = "/tmp/urnic-quota-XXXXXX";
    root_ = mkdtemp(name);
    fd_ = std::move(*open_folder(root_));
  }
  ~QuotaTest() override { std::filesystem::remove_all(root_); }
  void begin(const QuotaLimits& limits) { quota_ = std::make_unique<Quota>(fd_.get(), limits); }
  void write(const std::string& name, std::size_t bytes) const {
    std::ofstream(root_ + "/" + name) << std::string(bytes, 'x');
  }
  Outcome<Quota::Share, FileError> reserve(const std::string& name, std::uint64_t size,
                                           const std::string& client = "10.0.0.2") {
    return quota_->reserve(client, name, size, now_);
  }
  // A put that is received completely, as a session does it. Empty, or the reason of a refusal.
  std::string put(const std::string& name, std::uint64_t size,
                  const std::string& client = "10.0.0.2") {
    auto share = reserve(name, size, client);
    if (!share.ok()) {
      EXPECT_EQ(share.error().status, Status::NoSpace);
      return share.error().text;
    }
    const auto replaced = size_of_file(fd_.get(), name);
    write(name, size);
    share->keep(replaced);
    return "";
  }

  std::string root_;
  FileDescriptor fd_;
  std::unique_ptr<Quota> quota_;
  double now_ = 100;
};

// proves: AC-6
TEST_F(QuotaTest, CountsEveryExistingFileOfTheExport) {
  write("a", 100);
  mkdir((root_ + "/d").c_str(), 0755);
  mkdir((root_ + "/d/e").c_str(), 0755);
  write("d/e/b", 50);
  write("line\nfeed", 30);
  write(".urnic-abc.part", 1000);  // still in transfer
  ASSERT_EQ(symlink("/etc/passwd", (root_ + "/link").c_str()), 0);
  ASSERT_EQ(symlink("..", (root_ + "/d/up").c_str()), 0);
  EXPECT_EQ(folder_usage(fd_.get()), (Usage{180, 5})) << "folders count as files without bytes";
  begin({.bytes = 200});
  EXPECT_EQ(put("f", 20), "");
  EXPECT_THAT(put("g", 1),
              HasSubstr("g: exceeds the target's quota of 200 B, of which 200 B are used"));
}

// proves: AC-6
TEST_F(QuotaTest, AReplacedFileMakesRoomForItsReplacement) {
  write("f", 80);
  begin({.bytes = 100, .files = 1});
  EXPECT_EQ(put("f", 100), "");
  EXPECT_NE(put("f", 101), "");
  EXPECT_EQ(put("f", 10), "");
  EXPECT_EQ(put("f", 100), "");
  EXPECT_THAT(put("g", 0), HasSubstr("exceeds the target's quota of 1 files"));
}

// proves: AC-6
TEST_F(QuotaTest, AboveTheQuotaAFileMayBecomeSmaller) {
  write("f", 500);
  begin({.bytes = 100});
  EXPECT_NE(put("g", 1), "");
  EXPECT_NE(put("f", 501), "");
  EXPECT_EQ(put("f", 400), "");
  EXPECT_EQ(put("f", 90), "");
  EXPECT_EQ(put("g", 10), "");
}

// proves: AC-6
TEST_F(QuotaTest, ConcurrentPutsShareTheRemainingQuota) {
  begin({.bytes = 100, .files = 3});
  auto a = reserve("a", 60), b = reserve("b", 40);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_FALSE(reserve("c", 1).ok());
  a->give_back();
  a->give_back();
  auto c = reserve("c", 60);
  EXPECT_TRUE(c.ok());
  EXPECT_FALSE(reserve("d", 1).ok());
  { const Quota::Share gone = std::move(*c); }
  EXPECT_TRUE(reserve("d", 60).ok());
  auto d = reserve("d", 1), e = reserve("e", 1);
  EXPECT_TRUE(d.ok() && e.ok());
  EXPECT_FALSE(reserve("f", 0).ok()) << "three files are on their way";
}

// proves: AC-6
TEST_F(QuotaTest, FilesAddedOrDeletedByOthersAreCounted) {
  begin({.bytes = 100});
  EXPECT_EQ(put("f", 100), "");
  EXPECT_NE(put("g", 50), "");
  std::filesystem::remove(root_ + "/f");
  now_ += 2;
  EXPECT_EQ(put("g", 50), "");
  write("h", 50);
  now_ += 2;
  EXPECT_NE(put("i", 1), "");
}

// proves: AC-6
TEST_F(QuotaTest, ImpossibleSizesExceedTheQuota) {
  begin({.bytes = 100, .client_bytes = 100});
  EXPECT_NE(put("f", ~std::uint64_t{0}), "");
  EXPECT_EQ(put("f", 100), "");
}

// proves: AC-7
TEST_F(QuotaTest, EachClientHasItsOwnQuotaWithoutPreexistingFiles) {
  write("old", 1000);
  begin({.client_bytes = 100, .client_files = 2});
  EXPECT_EQ(put("a", 60, "10.0.0.2"), "");
  EXPECT_THAT(put("b", 41, "10.0.0.2"),
              HasSubstr("b: exceeds this client's quota of 100 B, of which 60 B are used"));
  EXPECT_EQ(put("b", 100, "10.0.0.3"), "");
  EXPECT_EQ(put("c", 40, "10.0.0.2"), "");
  EXPECT_THAT(put("d", 0, "10.0.0.2"), HasSubstr("exceeds this client's quota of 2 files"));
  EXPECT_EQ(put("a", 10, "10.0.0.2"), "") << "its own, replaced";
}

// proves: AC-7
TEST_F(QuotaTest, ReplacingAFileOfAnotherClientTransfersItsUsage) {
  begin({.client_bytes = 100});
  EXPECT_EQ(put("a", 100, "10.0.0.2"), "");
  EXPECT_EQ(put("a", 90, "10.0.0.3"), "");
  EXPECT_EQ(put("b", 100, "10.0.0.2"), "");
  EXPECT_NE(put("c", 11, "10.0.0.3"), "");
}

// proves: AC-7
TEST_F(QuotaTest, DeletedFilesNoLongerCount) {
  begin({.client_bytes = 100, .client_files = 1});
  EXPECT_EQ(put("a", 100), "");
  EXPECT_NE(put("b", 100), "");
  std::filesystem::remove(root_ + "/a");
  EXPECT_EQ(put("b", 100), "");
}

// proves: AC-7
TEST_F(QuotaTest, AFailedPutLeavesNothingReserved) {
  begin({.bytes = 100, .client_bytes = 100});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(reserve("a", 100).ok());
  EXPECT_EQ(put("a", 100), "");
}

}  // namespace
}  // namespace urnic::cli
