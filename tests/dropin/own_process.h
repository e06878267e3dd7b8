// A process reads its configuration only once. A test with another configuration runs this program
// again, in a process of its own.
#pragma once

#include <gtest/gtest.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace own_process {

class Test : public testing::Test {
 protected:
  static bool is_within() { return getenv(kMark) != nullptr; }
  // True in that process; in the first one the test meanwhile runs there.
  bool within() {
    if (is_within()) return true;
    run_again();
    return false;
  }

 private:
  static constexpr const char* kMark = "URNIC_TEST_OWN_PROCESS";

  void run_again() const {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    std::string filter =
        std::string("--gtest_filter=") + info->test_suite_name() + "." + info->name();
    std::string quiet = "--gtest_brief=1", nowhere = "--gtest_output=";
    char self[] = "/proc/self/exe";
    char* words[] = {self, filter.data(), quiet.data(), nowhere.data(), nullptr};
    setenv(kMark, "1", 1);
    pid_t child = 0;
    const int error = posix_spawn(&child, self, nullptr, nullptr, words, environ);
    unsetenv(kMark);
    ASSERT_EQ(error, 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) abort();  // a crash there is reported as one here
    EXPECT_EQ(WEXITSTATUS(status), 0) << "in the process of its own";
  }
};

}  // namespace own_process
