// The parts that interrupted transfers leave for resuming; other tests are in folder_test.cpp.
#include "cli/transfer/incoming_file.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace urnic::cli {
namespace {

using testing::HasSubstr;

class IncomingFileTest : public testing::Test {
 protected:
  IncomingFileTest() {
    char name[] = "/tmp/urnic-incoming-XXXXXX";
    root_ = mkdtemp(name);
    fd_ = std::move(*open_folder(root_));
    part_ = root_ + "/" + temporary_name("x");
  }
  ~IncomingFileTest() override { std::filesystem::remove_all(root_); }
  Outcome<IncomingFile, FileError> create(bool resume, FileTime modified = {}) {
    return IncomingFile::create(fd_.get(), "x", {6, 6, 0640, modified},
                                resume ? Resume::Keep : Resume::No);
  }
  // A transfer that is abandoned after these bytes.
  void interrupted(const std::string& bytes, bool resume = true) {
    auto f = create(resume);
    ASSERT_TRUE(f.ok()) << f.error().text;
    ASSERT_EQ(pwrite(f->fd(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  static std::string read(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
  bool is_empty() const { return std::filesystem::is_empty(root_); }

  std::string root_, part_;
  FileDescriptor fd_;
};

// proves: E-38
TEST_F(IncomingFileTest, AnAbandonedPartKeepsOnlyATemporaryName) {
  interrupted("abc");
  EXPECT_EQ(read(part_), "abc");
  EXPECT_NE(access((root_ + "/x").c_str(), F_OK), 0);
  EXPECT_EQ(IncomingFile::left(fd_.get(), "x"), 3u);
  auto f = create(true);
  ASSERT_TRUE(f.ok());
  EXPECT_EQ(f->there(), 3u);
  ASSERT_TRUE(f->begin_at(2).ok());
  ASSERT_EQ(pwrite(f->fd(), "cdef", 4, 2), 4);
  ASSERT_TRUE(f->commit(6, false).ok());
  EXPECT_EQ(read(root_ + "/x"), "abcdef");
  EXPECT_NE(access(part_.c_str(), F_OK), 0);
}

TEST_F(IncomingFileTest, WithoutResumeNoPartIsKeptAndAnOldOneIsDeleted) {
  interrupted("abc", false);
  EXPECT_TRUE(is_empty());
  interrupted("abc");
  interrupted("abc", false);
  EXPECT_TRUE(is_empty());
}

TEST_F(IncomingFileTest, EmptyAndDiscardedPartsAreDeleted) {
  interrupted("");
  EXPECT_TRUE(is_empty());
  {
    auto f = create(true);
    ASSERT_TRUE(f.ok());
    ASSERT_EQ(pwrite(f->fd(), "bad", 3, 0), 3);
    f->discard();
  }
  EXPECT_TRUE(is_empty());
}

TEST_F(IncomingFileTest, APartBeingWrittenIsNotTakenOver) {
  auto first = create(true);
  ASSERT_TRUE(first.ok());
  auto second = create(true);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().status, Status::Busy);
  EXPECT_THAT(second.error().text, HasSubstr("another client is writing this file"));
}

// A user with another name for the part, or its owner, could change it after verification.
// proves: E-38
TEST_F(IncomingFileTest, APartThatOthersCanChangeIsNotTakenOver) {
  interrupted("abc");
  ASSERT_EQ(link(part_.c_str(), (root_ + "/other").c_str()), 0);
  auto f = create(true);
  ASSERT_TRUE(f.ok());
  EXPECT_EQ(f->there(), 0u);
  ASSERT_EQ(pwrite(f->fd(), "abcdef", 6, 0), 6);
  ASSERT_TRUE(f->commit(6, false).ok());
  EXPECT_EQ(read(root_ + "/other"), "abc");
  EXPECT_EQ(read(root_ + "/x"), "abcdef");
}

TEST_F(IncomingFileTest, ALinkWithTheTemporaryNameIsNotFollowed) {
  std::ofstream(root_ + "/victim") << "victim";
  ASSERT_EQ(symlink("victim", part_.c_str()), 0);
  auto f = create(true);
  ASSERT_TRUE(f.ok());
  ASSERT_EQ(pwrite(f->fd(), "abcdef", 6, 0), 6);
  ASSERT_TRUE(f->commit(6, false).ok());
  EXPECT_EQ(read(root_ + "/victim"), "victim");
}

TEST_F(IncomingFileTest, AnIdenticalExistingFileIsKept) {
  for (const Resume resume : {Resume::Compare, Resume::Keep}) {
    std::ofstream(root_ + "/x") << "abcdef";
    struct stat before {
    }, after{};
    ASSERT_EQ(stat((root_ + "/x").c_str(), &before), 0);
    EXPECT_EQ(IncomingFile::left(fd_.get(), "x"), 6u);
    auto f = IncomingFile::create(fd_.get(), "x", {6, 6, 0600, {1'000'000'000, 0}}, resume);
    ASSERT_TRUE(f.ok());
    EXPECT_TRUE(f->whole_only());
    EXPECT_EQ(f->there(), 6u);
    char seen[7] = {};
    EXPECT_EQ(pread(f->check_fd(), seen, 6, 0), 6);
    EXPECT_STREQ(seen, "abcdef");
    ASSERT_TRUE(f->begin_at(6).ok());
    ASSERT_TRUE(f->commit(6, false).ok());
    ASSERT_EQ(stat((root_ + "/x").c_str(), &after), 0);
    EXPECT_EQ(before.st_ino, after.st_ino);
    EXPECT_EQ(after.st_mode & 0777, 0600u);
    EXPECT_EQ(after.st_mtim.tv_sec, 1'000'000'000);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_), {}), 1);
  }
}

TEST_F(IncomingFileTest, ADifferentExistingFileIsReplacedCompletely) {
  std::ofstream(root_ + "/x") << "ABCDEF";
  auto f = create(true);
  ASSERT_TRUE(f.ok());
  ASSERT_TRUE(f->whole_only());
  ASSERT_TRUE(f->begin_at(0).ok());
  ASSERT_EQ(pwrite(f->fd(), "abc", 3, 0), 3);
  EXPECT_EQ(read(root_ + "/x"), "ABCDEF");
  ASSERT_EQ(pwrite(f->fd(), "def", 3, 3), 3);
  ASSERT_TRUE(f->commit(6, false).ok());
  EXPECT_EQ(read(root_ + "/x"), "abcdef");
}

TEST_F(IncomingFileTest, AFileChangedDuringTheTransferIsAnError) {
  std::ofstream(root_ + "/x") << "abcdef";
  auto f = create(true);
  ASSERT_TRUE(f.ok());
  ASSERT_TRUE(f->begin_at(6).ok());
  std::ofstream(root_ + "/y") << "ABCDEF";
  ASSERT_EQ(rename((root_ + "/y").c_str(), (root_ + "/x").c_str()), 0);
  const auto done = f->commit(6, false);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().text, HasSubstr("changed by another process"));
  EXPECT_EQ(read(root_ + "/x"), "ABCDEF");
}

TEST_F(IncomingFileTest, AFileOfAnotherSizeIsNotCompared) {
  std::ofstream(root_ + "/x") << "abc";
  auto f = create(true);
  ASSERT_TRUE(f.ok());
  EXPECT_FALSE(f->whole_only());
  EXPECT_EQ(f->there(), 0u);
}

TEST_F(IncomingFileTest, ModeAndTimeOfTheOriginalAreKept) {
  const mode_t before = umask(027);
  for (const bool resume : {false, true}) {
    auto f = create(resume, {1'000'000'000, 5});
    ASSERT_TRUE(f.ok());
    struct stat st {};
    if (resume) {
      ASSERT_EQ(fstat(f->fd(), &st), 0);
      EXPECT_EQ(st.st_mode & 0777, 0600u) << "until it is complete";
    }
    ASSERT_TRUE(f->commit(0, false).ok());
    ASSERT_EQ(stat((root_ + "/x").c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0640u);
    EXPECT_EQ(st.st_mtim.tv_sec, 1'000'000'000);
    EXPECT_EQ(st.st_mtim.tv_nsec, 5);
  }
  umask(before);
}

TEST_F(IncomingFileTest, HolesOfAFileNeedNoRoom) {
  EXPECT_TRUE(IncomingFile::create(fd_.get(), "x", {std::uint64_t{1} << 42, 4096, 0640, {}}).ok());
  EXPECT_FALSE(IncomingFile::create(fd_.get(), "x",
                                    {std::uint64_t{1} << 60, std::uint64_t{1} << 60, 0640, {}})
                   .ok());
}

}  // namespace
}  // namespace urnic::cli
