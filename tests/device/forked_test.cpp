#include "device/forked.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/private_descriptors.h"
#include "support/quiet_fork.h"

namespace urnic::device {
namespace {

TEST(PrivateDescriptors, AreTakenFromTheLowestOn) {
  using namespace private_descriptors;
  constexpr int kLast = (1 << 20) - 1;
  for (const int fd : {kLast, -1, kLast + 1, 1 << 19}) add(fd);
  std::vector<int> taken;
  for (int fd; (fd = take()) >= 0;) taken.push_back(fd);
  EXPECT_EQ(taken, (std::vector<int>{1 << 19, kLast}));
}

// The inode of a descriptor; 0 if it is not open.
ino_t behind(int fd) {
  struct stat s;
  return fstat(fd, &s) == 0 ? s.st_ino : 0;
}

// The exit status that `of_child` returns in a child.
template <class F>
int child_says(F of_child) {
  const pid_t child = test::quiet_fork();
  if (child == 0) _exit(of_child());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Forked : testing::Test {
  void SetUp() override {
    ASSERT_EQ(pipe(own), 0);
    ASSERT_EQ(pipe(other), 0);
    private_descriptors::add(own[0]);
    private_descriptors::add(own[1]);
    private_descriptors::add(other[0]);
    private_descriptors::remove(other[0]);
    is_own = behind(own[0]);
    is_other = behind(other[0]);
  }
  void TearDown() override {
    for (const int fd : own) {
      private_descriptors::remove(fd);
      close(fd);
    }
    for (const int fd : other) close(fd);
  }
  // 0 if exactly the private descriptors were released.
  int wrong_in_child() const {
    let_private_descriptors_go();
    for (const int fd : own) {
      if (behind(fd) == is_own) return 1;
      if (behind(fd) == 0) return 2;
    }
    return behind(other[0]) == is_other ? 0 : 3;
  }
  int own[2], other[2];
  // Before the fork: in a process that has had a device, the fork itself releases them.
  ino_t is_own = 0, is_other = 0;
};

TEST_F(Forked, AChildReleasesThemAndTheirNumbersStayOccupied) {
  const ino_t before = behind(own[0]);
  EXPECT_EQ(child_says([this] { return wrong_in_child(); }), 0);
  EXPECT_EQ(behind(own[0]), before);
}

TEST_F(Forked, ReleasingNeedsNoFreeNumber) {
  EXPECT_EQ(child_says([this] {
              const rlim_t open = static_cast<rlim_t>(other[1]) + 1;
              for (int fd = 0; fd < other[1]; ++fd) {
                if (behind(fd) == 0) dup2(0, fd);
              }
              const rlimit limit{open, open};
              setrlimit(RLIMIT_NOFILE, &limit);
              if (dup(0) >= 0) return 4;
              return wrong_in_child();
            }),
            0);
}

// If a child opens a file with such a number, the file is its own.
TEST_F(Forked, AGrandchildKeepsWhatTheChildOpens) {
  EXPECT_EQ(child_says([this] {
              let_private_descriptors_go();
              dup2(other[0], own[0]);
              let_private_descriptors_go();  // as in its own child
              return behind(own[0]) == behind(other[0]) ? 0 : 5;
            }),
            0);
}

}  // namespace
}  // namespace urnic::device
