#include "cli/transfer/old_parts.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cli/transfer/incoming_file.h"

namespace urnic::cli {
namespace {

constexpr std::int64_t kNow = 2'000'000'000, kDay = 24 * 3600;

class OldParts : public testing::Test {
 protected:
  OldParts() {
    char name[] = "/tmp/urnic-parts-XXXXXX";
    root_ = mkdtemp(name);
    fd_ = std::move(*open_folder(root_));
    std::filesystem::create_directories(root_ + "/a/b");
  }
  ~OldParts() override { std::filesystem::remove_all(root_); }
  // Creates a file that was changed `age` seconds ago.
  std::string make(const std::string& name, std::int64_t age) {
    std::ofstream(root_ + "/" + name) << "half";
    const timespec times[2] = {{0, UTIME_OMIT}, {kNow - age, 0}};
    EXPECT_EQ(utimensat(fd_.get(), name.c_str(), times, 0), 0);
    return name;
  }
  bool there(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(root_ + "/" + name));
  }
  std::size_t remove(bool below = true) { return remove_old_parts(fd_.get(), kNow, below); }

  std::string root_;
  FileDescriptor fd_;
  static constexpr std::int64_t kOld = kDaysOfAPart * kDay + 1;
};

// proves: E-38
TEST_F(OldParts, AreDeletedAndYoungOnesAreKept) {
  const std::string old = make(temporary_name("x"), kOld);
  const std::string young = make(temporary_name("y"), kOld - 1);
  const std::string of_tomorrow = make(temporary_name("z"), -kDay);
  EXPECT_EQ(remove(), 1u);
  EXPECT_FALSE(there(old));
  EXPECT_TRUE(there(young));
  EXPECT_TRUE(there(of_tomorrow));
}

TEST_F(OldParts, InSubfoldersAreDeletedOnRequest) {
  const std::string part = make("a/b/" + temporary_name("x"), kOld);
  EXPECT_EQ(remove(false), 0u);
  EXPECT_TRUE(there(part));
  EXPECT_EQ(remove(true), 1u);
  EXPECT_FALSE(there(part));
}

// proves: E-38
TEST_F(OldParts, LockedPartsAreKept) {
  const std::string part = make(temporary_name("x"), kOld);
  {
    const FileDescriptor owner(openat(fd_.get(), part.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(flock(owner.get(), LOCK_EX), 0);
    EXPECT_EQ(remove(), 0u);
    EXPECT_TRUE(there(part));
  }
  EXPECT_EQ(remove(), 1u);
}

TEST_F(OldParts, OtherFilesAreKeptWhateverTheirAge) {
  for (const char* name : {"x", ".urnic-x", "x.part", ".urnic-.part", "a/.hidden"}) {
    make(name, 100 * kOld);
  }
  EXPECT_EQ(remove(), 0u);
  for (const char* name : {"x", ".urnic-x", "x.part", ".urnic-.part", "a/.hidden"}) {
    EXPECT_TRUE(there(name)) << name;
  }
}

TEST_F(OldParts, LinksAreNeitherFollowedNorDeleted) {
  make("a/" + temporary_name("x"), kOld);
  ASSERT_EQ(symlink("a", (root_ + "/link").c_str()), 0);
  ASSERT_EQ(symlink("a", (root_ + "/" + temporary_name("l")).c_str()), 0);
  const FileDescriptor b = std::move(*open_folder(root_ + "/a/b"));
  ASSERT_EQ(symlink("..", (root_ + "/a/b/up").c_str()), 0);
  EXPECT_EQ(remove_old_parts(b.get(), kNow, true), 0u);
  EXPECT_TRUE(there("a/" + temporary_name("x")));
  EXPECT_EQ(remove(), 1u);
  EXPECT_TRUE(there(temporary_name("l")));
}

}  // namespace
}  // namespace urnic::cli
