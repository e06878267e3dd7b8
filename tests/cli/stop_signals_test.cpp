// Signals that stop a command: a single one, and two of a sender that signals both a process and
// its group.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>

#include "cli/runtime.h"

namespace urnic::cli {
namespace {

// The exit status of a process that gets two signals and then cleans up.
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

TEST(StopSignals, TheSameRequestTwiceLetsTheCommandCleanUp) {
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
