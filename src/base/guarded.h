// Safe access to memory of the program that may disappear at any time: the program can unmap or
// protect it, or truncate its file. Such an access is made inside guarded(). If it faults, the
// access ends there and the call returns false, and the process continues.
//
// The fault is a signal. The process' handler of SIGSEGV and SIGBUS (device/fault_handler.h) calls
// recover(); without that handler a fault ends the process as usual. For x86-64 and arm64; on other
// machines guarded() only makes the call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace urnic {
namespace guard {

// State of one thread: the memory that its guarded call may access, and where the call began.
struct Thread {
  void* stack = nullptr;  // null: no guarded call is active
  std::uintptr_t begin = 0, end = 0;
  bool prepared = false;
};
// In the static TLS block, which exists from the start of the thread, because a signal handler may
// read it.
extern constinit thread_local Thread thread [[gnu::tls_model("initial-exec")]];

// Each thread whose first guarded call comes after this calls `prepare` once, at that call.
void prepare_threads_by(void (*prepare)());
void prepare_thread();

// Called by a signal handler with the address from its siginfo and its context. True if the fault
// happened in a guarded call of this thread: once the handler returns, that call returns false.
bool recover(const void* address, void* context);

#if defined(__x86_64__) || defined(__aarch64__)
extern "C" [[gnu::visibility("hidden")]] bool urnic_guarded_call(void (*f)(void*), void* arg,
                                                                 void** stack);
#endif
void left_by_fault();

}  // namespace guard

// Calls f(), which may access [at, at + n) of the program's memory, and our own memory. Returns
// false if that range is not accessible: f was then aborted in the middle. Therefore f must not own
// resources, take locks, allocate memory, or make a guarded call.
template <class F>
[[nodiscard]] inline bool guarded(const void* at, std::size_t n, F&& f) {
#if defined(__x86_64__) || defined(__aarch64__)
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
