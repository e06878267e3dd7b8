#include "device/fault_handler.h"

#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/guarded.h"

namespace urnic::device {
namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS};
// bound: signal handlers that a program installs over urnic's; beyond: urnic's is not put in front
// again, and a fault of a guarded access goes to the program; test:
// FaultHandlerTest.IsInstalledInFrontOfALaterHandler
constexpr unsigned kMostBefore = 8;

// The handlers installed before ours, oldest first. Entries are written before they are counted,
// and a signal handler reads only counted entries.
struct Before {
  std::array<struct sigaction, kMostBefore> actions{};
  std::atomic<unsigned> count{0};
};
std::array<Before, kSignals.size()> before;

// A handler that we call may call ours, because it replaced ours: such a call goes to the next
// older handler. If our frame is not below that of the first call, it is a new signal instead.
struct Chain {
  const void* context = nullptr;
  std::uintptr_t frame = 0;
  unsigned next = 0;  // index + 1 of the handler to call
};
constinit thread_local Chain chain [[gnu::tls_model("initial-exec")]];

Before& before_of(int number) {
  return before[number == SIGSEGV ? 0 : 1];
}

bool is_sent(const siginfo_t* info) {
  return info->si_code <= 0;
}

// The instruction is repeated under the default action, which ends the process with the registers
// of the fault in its core dump. A signal that was sent by a process is sent again.
void act_by_default(int number, const siginfo_t* info, bool ignored) {
  if (ignored && is_sent(info)) return;
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(number, &action, nullptr);
  if (is_sent(info)) raise(number);
}

void call(const struct sigaction& action, int number, siginfo_t* info, void* context) {
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(number, info, context);
  } else if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
    act_by_default(number, info, action.sa_handler == SIG_IGN);
  } else {
    action.sa_handler(number);
  }
}

void handle(int number, siginfo_t* info, void* context) {
  if (!is_sent(info) && guard::recover(info->si_addr, context)) return;
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const Before& b = before_of(number);
  const bool called = chain.context == context && frame < chain.frame;
  const unsigned next = called ? chain.next : b.count.load(std::memory_order_acquire);
  if (next == 0) return act_by_default(number, info, false);
  const Chain outer = chain;
  chain = {context, called ? chain.frame : frame, next - 1};
  call(b.actions[next - 1], number, info, context);
  chain = outer;
}

bool is_ours(const struct sigaction& a) {
  return (a.sa_flags & SA_SIGINFO) != 0 && a.sa_sigaction == handle;
}

bool same_handler(const struct sigaction& a, const struct sigaction& b) {
  if (((a.sa_flags ^ b.sa_flags) & SA_SIGINFO) != 0) return false;
  return (a.sa_flags & SA_SIGINFO) != 0 ? a.sa_sigaction == b.sa_sigaction
                                        : a.sa_handler == b.sa_handler;
}

// Index of the handler in the list, if the program has put an older one back; else the end.
unsigned place_of(const Before& b, const struct sigaction& action) {
  const unsigned n = b.count.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < n; ++i) {
    if (same_handler(b.actions[i], action)) return i;
  }
  return n;
}

// Needs the lock.
void install(int number) {
  Before& b = before_of(number);
  struct sigaction now {};
  if (sigaction(number, nullptr, &now) != 0 || is_ours(now)) return;
  const unsigned at = place_of(b, now);
  if (at == kMostBefore) return;
  b.actions[at] = now;
  b.count.store(at + 1, std::memory_order_release);
  // Use the mask and the stack that the program's handler wants: it may handle faults of a full
  // stack.
  struct sigaction ours {};
  ours.sa_sigaction = handle;
  ours.sa_mask = now.sa_mask;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (now.sa_flags & (SA_NODEFER | SA_RESTART));
  sigaction(number, &ours, nullptr);
}

void give_back(int number) {
  Before& b = before_of(number);
  struct sigaction now {};
  const unsigned n = b.count.load(std::memory_order_relaxed);
  if (n == 0 || sigaction(number, nullptr, &now) != 0 || !is_ours(now)) return;
  sigaction(number, &b.actions[n - 1], nullptr);
  b.count.store(n - 1, std::memory_order_relaxed);
}

// A fault whose signal is blocked ends the process without a handler. No program waits for such
// signals, so they can be unblocked.
void unblock() {
  sigset_t faults;
  sigemptyset(&faults);
  for (const int number : kSignals) sigaddset(&faults, number);
  pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

constinit std::mutex installing;
unsigned users = 0;

}  // namespace

FaultHandler::FaultHandler() {
  const std::lock_guard lock(installing);
  if (users++ == 0) guard::prepare_threads_by(unblock);
  for (const int number : kSignals) install(number);
}

FaultHandler::~FaultHandler() {
  const std::lock_guard lock(installing);
  if (--users != 0) return;
  for (const int number : kSignals) give_back(number);
}

void FaultHandler::look_again() {
  const std::lock_guard lock(installing);
  if (users == 0) return;
  for (const int number : kSignals) install(number);
}

}  // namespace urnic::device
