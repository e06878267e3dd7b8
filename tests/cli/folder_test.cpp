#include "cli/transfer/folder.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cli/transfer/incoming_file.h"

namespace urnic::cli {
namespace {

class FolderTest : public testing::Test {
 protected:
  FolderTest() {
    char name[] = "/tmp/urnic-folder-XXXXXX";
    base_ = mkdtemp(name);
    root_ = base_ + "/export";
    mkdir(root_.c_str(), 0755);
    fd_ = std::move(*open_folder(root_));
    write(base_ + "/secret", "secret");
  }
  ~FolderTest() override { std::filesystem::remove_all(base_); }

  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  static std::string read(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
  std::size_t entries() const {  // in the exported folder, including hidden ones
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(root_), {}));
  }
  Outcome<IncomingFile, FileError> create(const std::string& name, std::uint64_t size = 3) {
    return IncomingFile::create(fd_.get(), name, {size, size, 0640, {}});
  }

  std::string base_, root_;
  FileDescriptor fd_;
};

TEST_F(FolderTest, ReadsRegularFilesOnly) {
  write(root_ + "/a", "hello");
  mkdir((root_ + "/d").c_str(), 0755);
  write(root_ + "/d/b", "x");
  mkfifo((root_ + "/pipe").c_str(), 0600);
  auto a = open_for_reading(fd_.get(), "a");
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->is.size, 5u);
  EXPECT_TRUE(open_for_reading(fd_.get(), "d/b").ok());
  EXPECT_EQ(open_for_reading(fd_.get(), "d").error().status, Status::NotAFile);
  EXPECT_EQ(open_for_reading(fd_.get(), "pipe").error().status, Status::NotAFile);
  EXPECT_EQ(open_for_reading(fd_.get(), "none").error().status, Status::NotFound);
  EXPECT_EQ(open_for_reading(fd_.get(), "none/b").error().status, Status::NotFound);
  EXPECT_EQ(open_for_reading(fd_.get(), "a/b").error().status, Status::NotFound);
}

// proves: E-38
TEST_F(FolderTest, LinksDoNotLeadOutOfTheFolder) {
  ASSERT_EQ(symlink("../secret", (root_ + "/link").c_str()), 0);
  ASSERT_EQ(symlink("..", (root_ + "/up").c_str()), 0);
  EXPECT_FALSE(open_for_reading(fd_.get(), "link").ok());
  EXPECT_FALSE(open_for_reading(fd_.get(), "up/secret").ok());
  ASSERT_FALSE(create("up/evil").ok());
  EXPECT_NE(create("up/evil").error().text.find("symbolic links"), std::string::npos);
  EXPECT_FALSE(create("link").ok());
  EXPECT_EQ(read(base_ + "/secret"), "secret");
}

// A put must never replace a device, a FIFO or a link of the export by a regular file.
TEST_F(FolderTest, OnlyRegularFilesAreReplaced) {
  ASSERT_EQ(symlink("a", (root_ + "/link").c_str()), 0);
  ASSERT_EQ(mkfifo((root_ + "/pipe").c_str(), 0600), 0);
  const bool device = mknod((root_ + "/null").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0;
  for (const char* name : {"link", "pipe", "null"}) {
    if (!device && std::string(name) == "null") continue;
    struct stat before {
    }, after{};
    ASSERT_EQ(lstat((root_ + "/" + name).c_str(), &before), 0);
    EXPECT_FALSE(create(name).ok()) << name;
    ASSERT_EQ(lstat((root_ + "/" + name).c_str(), &after), 0);
    EXPECT_EQ(before.st_ino, after.st_ino);
    EXPECT_EQ(before.st_mode, after.st_mode);
  }
  // Also not if it appears during the transfer.
  auto f = create("late");
  ASSERT_TRUE(f.ok());
  ASSERT_EQ(mkfifo((root_ + "/late").c_str(), 0600), 0);
  EXPECT_FALSE(f->commit(0, false).ok());
  struct stat st {};
  ASSERT_EQ(lstat((root_ + "/late").c_str(), &st), 0);
  EXPECT_TRUE(S_ISFIFO(st.st_mode));
}

// Announcing a file must not use disk space.
TEST_F(FolderTest, NoDiskSpaceIsReservedInAdvance) {
  struct stat st {};
  auto f = create("x", std::uint64_t{256} << 20);
  ASSERT_TRUE(f.ok()) << f.error().text;
  ASSERT_EQ(fstat(f->fd(), &st), 0);
  EXPECT_EQ(st.st_blocks, 0);
  auto huge = create("y", std::uint64_t{1} << 60);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().status, Status::NoSpace);
}

// proves: E-38
TEST_F(FolderTest, AFileAppearsOnlyComplete) {
  {
    auto f = create("x");
    ASSERT_TRUE(f.ok());
    ASSERT_EQ(pwrite(f->fd(), "abc", 3, 0), 3);
    EXPECT_NE(access((root_ + "/x").c_str(), F_OK), 0);
    ASSERT_TRUE(f->commit(3, true).ok());
  }
  EXPECT_EQ(read(root_ + "/x"), "abc");
  struct stat st {};
  ASSERT_EQ(stat((root_ + "/x").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0640u);
  EXPECT_EQ(entries(), 1u);
}

// A process may die at any moment without leaving a file.
// proves: E-38
TEST_F(FolderTest, AFreeNameIsTakenInOneStep) {
  auto f = create("x");
  ASSERT_TRUE(f.ok());
  if (entries() != 0) GTEST_SKIP() << "no files without a name on the file system of /tmp";
  const FileDescriptor watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(inotify_add_watch(watch.get(), root_.c_str(), IN_CREATE | IN_MOVE), 0);
  ASSERT_TRUE(f->commit(0, false).ok());
  alignas(inotify_event) char seen[1024];
  const ssize_t n = ::read(watch.get(), seen, sizeof seen);
  const auto* event = reinterpret_cast<const inotify_event*>(seen);
  ASSERT_GT(n, 0);
  EXPECT_STREQ(event->name, "x");
  EXPECT_EQ(static_cast<std::size_t>(n), sizeof *event + event->len) << "one event";
}

// proves: E-38
TEST_F(FolderTest, AnAbandonedFileLeavesNothing) {
  write(root_ + "/x", "old");
  {
    auto f = create("x", 1 << 20);
    ASSERT_TRUE(f.ok());
    ASSERT_EQ(pwrite(f->fd(), "abc", 3, 0), 3);
  }
  EXPECT_EQ(read(root_ + "/x"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FolderTest, CommitReplacesTheExistingFile) {
  write(root_ + "/x", "a longer old content");
  auto f = create("x", 1 << 20);
  ASSERT_TRUE(f.ok());
  ASSERT_EQ(pwrite(f->fd(), "abc", 3, 0), 3);
  ASSERT_TRUE(f->commit(3, false).ok());
  EXPECT_EQ(read(root_ + "/x"), "abc");
}

// proves: E-38
TEST_F(FolderTest, TheNextFileOfThatNameDeletesThePartOfAKilledProcess) {
  write(root_ + "/x", "old");
  write(root_ + "/" + temporary_name("x"), "half");
  auto f = create("x", 3);
  ASSERT_TRUE(f.ok());
  ASSERT_EQ(pwrite(f->fd(), "abc", 3, 0), 3);
  ASSERT_TRUE(f->commit(3, false).ok());
  EXPECT_EQ(read(root_ + "/x"), "abc");
  EXPECT_EQ(entries(), 1u);
}

// proves: E-38
TEST_F(FolderTest, ALockedTemporaryFileIsKept) {
  write(root_ + "/x", "old");
  const std::string temporary = root_ + "/" + temporary_name("x");
  write(temporary, "half");
  const FileDescriptor owner(open(temporary.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(flock(owner.get(), LOCK_EX), 0);
  auto f = create("x", 3);
  ASSERT_TRUE(f.ok());
  ASSERT_EQ(pwrite(f->fd(), "abc", 3, 0), 3);
  ASSERT_TRUE(f->commit(3, false).ok());
  EXPECT_EQ(read(root_ + "/x"), "abc");
  EXPECT_EQ(read(temporary), "half");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(FolderTest, RefusalsGiveTheReason) {
  mkdir((root_ + "/d").c_str(), 0755);
  EXPECT_EQ(create("d").error().status, Status::NotAFile);
  EXPECT_EQ(create("none/x").error().status, Status::NotFound);
  EXPECT_EQ(create("x", std::uint64_t{1} << 63).error().status, Status::TooLarge);
  EXPECT_EQ(file_error(ENOSPC, "x").status, Status::NoSpace);
  EXPECT_EQ(file_error(EACCES, "x").status, Status::Permission);
  EXPECT_EQ(file_error(EIO, "x").text, "x: Input/output error");
  EXPECT_FALSE(open_folder(base_ + "/none").ok());
  EXPECT_FALSE(open_folder(base_ + "/secret").ok());
}

TEST_F(FolderTest, ListWalksFoldersAndHidesTemporaries) {
  mkdir((root_ + "/d").c_str(), 0755);
  write(root_ + "/z", "12");
  write(root_ + "/d/b", "1");
  write(root_ + "/.urnic-abc.part", "half");
  ASSERT_EQ(symlink("../secret", (root_ + "/link").c_str()), 0);
  const auto list = *list_folder(fd_.get(), "", 100);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].name, "d");
  EXPECT_TRUE(list[0].folder);
  EXPECT_EQ(list[1].name, "d/b");
  EXPECT_EQ(list[2].name, "z");
  EXPECT_EQ(list[2].size, 2u);
  EXPECT_EQ(list_folder(fd_.get(), "", 1)->size(), 1u);
}

TEST_F(FolderTest, ListingANameIncludesEverythingBelow) {
  mkdir((root_ + "/d").c_str(), 0755);
  mkdir((root_ + "/d/e").c_str(), 0755);
  write(root_ + "/d/e/b", "1");
  write(root_ + "/dz", "12");
  ASSERT_EQ(symlink("..", (root_ + "/up").c_str()), 0);
  const auto names = [&](const std::string& of) {
    std::string out;
    const auto list = list_folder(fd_.get(), of, 100);
    if (!list.ok()) return list.error().text;
    for (const ListEntry& e : *list) out += e.name + " ";
    return out;
  };
  EXPECT_EQ(names("d"), "d d/e d/e/b ");
  EXPECT_EQ(names("d/e"), "d/e d/e/b ");
  EXPECT_EQ(names("dz"), "dz ");
  EXPECT_EQ(names("none"), "none: No such file or directory");
  EXPECT_EQ(names("up"), "up: symbolic links are not followed");
  EXPECT_EQ(names("up/secret"), "up: symbolic links are not followed");
}

// proves: E-38
TEST_F(FolderTest, MakeFolderIsIdempotentAndStaysInsideTheExport) {
  ASSERT_EQ(symlink("..", (root_ + "/up").c_str()), 0);
  write(root_ + "/f", "x");
  EXPECT_TRUE(*make_folder(fd_.get(), "d", 0));
  EXPECT_FALSE(*make_folder(fd_.get(), "d", 0));
  struct stat st {};
  ASSERT_EQ(stat((root_ + "/d").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0700, 0700u) << "its owner may put something into it";
  EXPECT_TRUE(*make_folder(fd_.get(), "d/e", 0755));
  EXPECT_EQ(make_folder(fd_.get(), "n/e", 0755).error().status, Status::NotFound);
  EXPECT_FALSE(make_folder(fd_.get(), "f", 0755).ok());
  EXPECT_FALSE(make_folder(fd_.get(), "up", 0755).ok());
  EXPECT_FALSE(make_folder(fd_.get(), "up/evil", 0755).ok());
  EXPECT_NE(access((base_ + "/evil").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace urnic::cli
