// Accesses to memory of the program that may go at any time: it can be unmapped, protected, or cut
// off with its file behind our back. Such an access is made within guarded(); if it faults, the
// access ends there and the call returns false, instead of the process.
//
// The fault is a signal. The process' handler of SIGSEGV and SIGBUS (device/fault_handler.h) calls
// recover(); without that handler a fault ends the process as it always did. x86-64; elsewhere
// guarded() only makes the call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace urnic {
namespace guard {

// Of one thread: what its guarded call may touch, and where it was begun.
struct Thread {
  void* stack = nullptr;  // null: no guarded call is going on
  std::uintptr_t begin = 0, end = 0;
  bool prepared = false;
};
// In the block of the thread that exists from its beginning: a signal handler may read it.
extern constinit thread_local Thread thread [[gnu::tls_model("initial-exec")]];

// Called once by each thread, at its first guarded call, if that comes later.
void prepare_threads_by(void (*prepare)());
void prepare_thread();

// A signal handler calls it with its siginfo's address and its context. True if the fault is one of
// a guarded call of this thread: once the handler returns, that call returns false.
bool recover(const void* address, void* context);

#if defined(__x86_64__)
extern "C" [[gnu::visibility("hidden")]] bool urnic_guarded_call(void (*f)(void*), void* arg,
                                                                 void** stack);
#endif
void left_by_fault();

}  // namespace guard

// f(), which touches [at, at + n) of the program's and memory of ours. False if that range was not
// there: f was broken off where it was. So f owns nothing, takes no lock, allocates nothing, and
// makes no guarded call.
template <class F>
[[nodiscard]] inline bool guarded(const void* at, std::size_t n, F&& f) {
#if defined(__x86_64__)
  guard::Thread& t = guard::thread;
  if (!t.prepared) [[unlikely]]
    guard::prepare_thread();
  t.begin = reinterpret_cast<std::uintptr_t>(at);
  t.end = t.begin + n;
  const auto run = [](void* arg) { (*static_cast<F*>(arg))(); };
  if (guard::urnic_guarded_call(run, &f, &t.stack)) [[likely]]
    return true;
  guard::left_by_fault();
  return false;
#else
  (void)at, (void)n;
  f();
  return true;
#endif
}

}  // namespace urnic
