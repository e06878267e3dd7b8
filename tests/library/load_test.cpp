// D11: loading liburnic.so starts no thread, touches no file and prints nothing. Checked by tracing
// the system calls of a process that only loads it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "library/load_mark.h"

namespace urnic::test {
namespace {

#if defined(__x86_64__)

struct Call {
  long number;
  std::string path;  // of an open
};

std::string string_at(pid_t pid, unsigned long long address) {
  char text[512] = "";
  iovec here{text, sizeof text - 1};
  iovec there{reinterpret_cast<void*>(address), sizeof text - 1};
  process_vm_readv(pid, &here, 1, &there, 1, 0);
  return text;
}

// The system calls between the two marks; *status as waitpid returns it.
std::vector<Call> follow(pid_t pid, int* status) {
  std::vector<Call> calls;
  bool entering = true, marked = false;
  for (;;) {
    if (ptrace(PTRACE_SYSCALL, pid, 0, 0) != 0 || waitpid(pid, status, 0) != pid) return calls;
    if (WIFEXITED(*status) || WIFSIGNALED(*status)) return calls;
    if (WSTOPSIG(*status) != (SIGTRAP | 0x80)) continue;
    if (entering) {
      user_regs_struct r{};
      ptrace(PTRACE_GETREGS, pid, 0, &r);
      const auto number = static_cast<long>(r.orig_rax);
      if (number == SYS_prctl && static_cast<long>(r.rdi) == kMark) {
        marked = !marked;
      } else if (marked) {
        Call c{number, ""};
        if (number == SYS_openat) c.path = string_at(pid, r.rsi);
        if (number == SYS_open || number == SYS_creat) c.path = string_at(pid, r.rdi);
        calls.push_back(std::move(c));
      }
    }
    entering = !entering;
  }
}

TEST(Loading, StartsNoThreadTouchesNoFilePrintsNothing_D11) {
  const pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    execl(URNIC_LOAD_PROBE, URNIC_LOAD_PROBE, URNIC_LIBRARY, nullptr);
    _exit(127);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  if (!WIFSTOPPED(status)) GTEST_SKIP() << "processes may not be traced here";
  ASSERT_EQ(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
  const std::vector<Call> calls = follow(pid, &status);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  bool loaded = false;
  for (const Call& c : calls) {
    // The loader itself opens libraries and its cache, for reading.
    if (!c.path.empty()) {
      const bool library = c.path.find(".so") != std::string::npos;
      EXPECT_TRUE(library) << c.path;
      loaded |= c.path == URNIC_LIBRARY;
    }
    for (const long never :
         {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork, SYS_execve, SYS_write, SYS_writev, SYS_socket,
          SYS_mkdir, SYS_unlink, SYS_rename, SYS_kill, SYS_rt_sigaction, SYS_rt_sigprocmask,
          SYS_sched_setaffinity, SYS_eventfd2, SYS_timerfd_create, SYS_epoll_create1}) {
      EXPECT_NE(c.number, never);
    }
  }
  EXPECT_TRUE(loaded) << "the test looks at nothing";
}

#endif

}  // namespace
}  // namespace urnic::test
