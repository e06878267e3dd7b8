// A command is asked to stop by signals: once, and twice by those who signal a process and its
// group.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>

#include "cli/runtime.h"

namespace urnic::cli {
namespace {

// How a process ends that gets two signals and tidies up then.
int status_after(int first, int second, std::int64_t same_request_ms) {
  const pid_t child = fork();
  if (child == 0) {
    install_stop_signals(same_request_ms);
    raise(first);
    if (!stop_requested()) _exit(4);
    raise(second);
    _exit(3);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(StopSignals, TheSameRequestTwiceLetsTheCommandTidyUp) {
  constexpr std::int64_t kLong = std::numeric_limits<std::int64_t>::max();
  for (const int second : {SIGTERM, SIGINT, SIGHUP}) {
    const int status = status_after(SIGTERM, second, kLong);
    ASSERT_TRUE(WIFEXITED(status)) << second;
    EXPECT_EQ(WEXITSTATUS(status), 3) << second;
  }
}

TEST(StopSignals, ALaterRequestEndsTheProcessAtOnce) {
  const int status = status_after(SIGTERM, SIGINT, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

}  // namespace
}  // namespace urnic::cli
