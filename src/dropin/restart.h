// Waiting as a read of the kernel's would: a handler that was installed with SA_RESTART, as
// signal() does, does not end it. poll and epoll_wait end in any case.
#pragma once

#include <signal.h>

namespace urnic::dropin {

// A handler of these is for a fault of the program's own, which interrupts no wait.
inline bool tells_a_fault(int number) {
  return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
         number == SIGTRAP || number == SIGABRT || number == SIGSYS;
}

// Whether what was interrupted goes on: every handler of this process wants that.
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
