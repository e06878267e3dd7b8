// Waiting like a read() of the kernel: a handler that was installed with SA_RESTART, as signal()
// does, does not end it. poll and epoll_wait always end.
#pragma once

#include <signal.h>

namespace urnic::dropin {

// True for signals of a fault of the program itself, which do not interrupt a wait.
inline bool tells_a_fault(int number) {
  return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
         number == SIGTRAP || number == SIGABRT || number == SIGSYS;
}

// True if an interrupted wait continues: every handler of this process requests that.
inline bool restarts() {
  for (int number = 1; number < NSIG; ++number) {
    if (tells_a_fault(number)) continue;
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0) continue;
    const bool siginfo = (action.sa_flags & SA_SIGINFO) != 0;
    const bool handled = siginfo ? action.sa_sigaction != nullptr
                                 : action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    if (handled && (action.sa_flags & SA_RESTART) == 0) return false;
  }
  return true;
}

}  // namespace urnic::dropin
